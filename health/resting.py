"""Who is left alone after a failure, and for how long: pure rules, and the commit of what they decide.

the key's fault (401, 402, 403, 429)      the endpoint rests: all its models share the key; where a 429 says that it is about one model, that model
overloaded (503, 529), no connection      the model rests, longer each time, until a call succeeds
anything else                             nobody rests
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.db import connection

from health.models import Rest
from wire.errors import Fault, UpstreamError

# Seconds. A provider that says nothing is asked again after the first, then after longer each time.
LIMIT_STEPS = (120, 600, 3600, 86_400)
KEY_STEPS = (120, 600, 3600, 3600)
OVERLOAD_STEPS = (30, 120, 600, 600)
LONGEST_S = 7 * 86_400
LIMIT, KEY, OVERLOAD = "limit", "key", "overload"


@dataclass(frozen=True, slots=True)
class Resting:
    """One rest. Shape: `scope` is `endpoint:<name>` or `model:<alias>`; `kind` limit, key or overload; `step` counts rests in a row."""

    scope: str
    kind: str
    step: int
    until: datetime
    reason: str
    since: datetime


def rest_after(error: UpstreamError, endpoint: str, alias: str, standing: Mapping[str, Resting], now: datetime) -> Resting | None:
    """The rest that a failure earns, None where it earns none. `standing` are the rests known so far, over or not: a new one goes on from their step."""
    if error.fault is Fault.KEY:
        scope = f"model:{alias}" if error.about_model else f"endpoint:{endpoint}"
        kind = LIMIT if error.code == "rate_limit_exceeded" else KEY
    elif error.fault is Fault.NETWORK or error.code == "upstream_overloaded":
        scope, kind = f"model:{alias}", OVERLOAD
    else:
        return None
    steps = {LIMIT: LIMIT_STEPS, KEY: KEY_STEPS, OVERLOAD: OVERLOAD_STEPS}[kind]
    before = standing.get(scope)
    step = before.step + 1 if before and before.kind == kind and before.until <= now else before.step if before and before.kind == kind else 0
    asked = error.retry_after_s
    seconds = min(max(asked, 1.0), LONGEST_S) if asked is not None else steps[min(step, len(steps) - 1)]
    return Resting(scope, kind, step, now + timedelta(seconds=seconds), error.message[:300], now)


def load_rests() -> dict[str, Resting]:
    """All rests, over or not: one that is over still tells how long the next one is. One query."""
    return {r.scope: Resting(r.scope, r.kind, r.step, r.until, r.reason, r.since) for r in Rest.objects.all()}


def line_of(rest: Resting) -> dict[str, Any]:
    times = {"until": rest.until.isoformat(), "since": rest.since.isoformat()}
    return {"rests": [{"scope": rest.scope, "kind": rest.kind, "step": rest.step, "reason": rest.reason[:300], **times}]}


def line_of_success(scopes: Sequence[str], at: datetime) -> dict[str, Any]:
    """What ends rests: a call that went through."""
    return {"rests": [{"scope": scope, "over": at.isoformat()} for scope in scopes]}


# A later deadline wins, whoever writes first; a call that went through ends only what began before it.
PUT = (
    "INSERT INTO health_rest (scope, kind, step, until, reason, since) VALUES (%s, %s, %s, %s, %s, %s) ON CONFLICT (scope) DO UPDATE SET"
    " kind = excluded.kind, step = excluded.step, until = excluded.until, reason = excluded.reason, since = excluded.since"
    " WHERE excluded.until > health_rest.until"
)


def commit_rests(cursor: Any, items: Sequence[dict[str, Any]]) -> None:
    adapt = connection.ops.adapt_datetimefield_value
    for item in items:
        if "over" in item:
            cursor.execute("DELETE FROM health_rest WHERE scope = %s AND since <= %s", [item["scope"], adapt(datetime.fromisoformat(item["over"]))])
        else:
            times = [adapt(datetime.fromisoformat(item[name])) for name in ("until", "since")]
            cursor.execute(PUT, [item["scope"], item["kind"], item["step"], times[0], item["reason"], times[1]])
