"""When a cron text is due, right over both clock changes: reckoned on the zone's clock, told in UTC. Pure.

As Debian's cron does it: a fixed time that the clock jumps over is due right after the jump, one that comes twice is due the first time, and what
is due every so many minutes or hours goes on through both.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from cronsim import CronSim, CronSimError

FIELDS = "minute, hour, day of month, month, day of week"
LONGEST = 100
ANY_TIME = datetime(2026, 1, 1, tzinfo=UTC)


class CronError(ValueError):
    """A cron text or time zone that is none. The message says what is wrong, to be put behind the field's name."""

    code = "invalid_request"


def check_cron(text: object) -> str:
    """Gives a cron text with single spaces. Errors: CronError."""
    if not isinstance(text, str):
        raise CronError(f'must be text of five fields ({FIELDS}), for example "30 4 * * *".')
    parts = text.split()
    if len(parts) != 5 or len(text) > LONGEST:
        raise CronError(f'must have five fields ({FIELDS}), for example "30 4 * * *" for every day at 4:30; it has {len(parts)}.')
    try:
        found = next(CronSim(" ".join(parts), ANY_TIME), None)
    except CronSimError as error:
        raise CronError(f'cannot be read: {str(error).lower()}. It has five fields: {FIELDS}; "30 4 * * *" is every day at 4:30.') from None
    if found is None:
        raise CronError("never comes about: no month has such a day.")
    return " ".join(parts)


def check_zone(name: object) -> str:
    """Errors: CronError."""
    if isinstance(name, str) and name:
        try:
            return ZoneInfo(name).key
        except (ZoneInfoNotFoundError, ValueError, OSError):
            pass
    raise CronError("must be a time zone's name, for example Europe/Paris or UTC.")


def next_run(cron: str, zone: str, after: datetime) -> datetime:
    """Gives the first moment after one, in UTC. Shape: a cron text and zone that were checked."""
    return next(runs(cron, zone, after))


def runs(cron: str, zone: str, after: datetime) -> Iterator[datetime]:
    """Gives one moment after another, each later than the last."""
    last = after
    for local in CronSim(cron, after.astimezone(ZoneInfo(zone))):
        # On a clock that was set back, a wall time may lie before the moment that it was reckoned from.
        if (moment := local.astimezone(UTC)) > last:
            last = moment
            yield moment


def runs_back(cron: str, zone: str, until: datetime) -> Iterator[datetime]:
    """Gives the moments up to one, itself among them, newest first."""
    last = datetime.max.replace(tzinfo=UTC)
    start = until.replace(microsecond=0)
    if start == until and next_run(cron, zone, datetime.fromtimestamp(start.timestamp() - 1, UTC)) == start:
        last = start
        yield start.astimezone(UTC)
    for local in CronSim(cron, until.astimezone(ZoneInfo(zone)), reverse=True):
        if (moment := local.astimezone(UTC)) < last and moment <= until:
            last = moment
            yield moment


def words(cron: str) -> str:
    """Says in English when it is due: "At 04:30 every day"."""
    return str(CronSim(cron, ANY_TIME).explain())
