"""Reads public catalogs: once a day by a job, when Discover is opened, and when somebody says so. What a catalog sends never harms what is there.

Nothing of ours is sent: no key, no cookie, no list of what this server has.
"""

from __future__ import annotations

import hashlib
import logging
import threading
import time
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field, replace
from datetime import datetime, timedelta
from typing import Any
from urllib.parse import urljoin, urlsplit

from django.conf import settings
from django.db import connection
from django.db.models import Q
from django.utils import timezone

from catalog import layering, models, sources, taking, web
from catalog.sources import Skipped, Source
from catalog.taking import Refused, Shrunk

log = logging.getLogger(__name__)

# To be moved on when `read` of a source changes, so that a body which did not change is read again.
READER = 1
DAY = timedelta(days=1)
# A reading that failed is tried again by whoever opens Discover, not before.
AGAIN = timedelta(minutes=15)
LEASE = timedelta(minutes=5)
# For all pages of one catalog together; within the lease.
TIMEOUT_S = 120.0
MOST_PAGES = 20


@dataclass(frozen=True, slots=True)
class Read:
    """How the reading of one catalog went.

    Shape: `state` is changed, unchanged, failed (`error` says why, what is kept stays), busy (somebody else reads it) or off.
    """

    source: str
    state: str
    offers: int = 0
    added: int = 0
    changed: int = 0
    gone: int = 0
    skipped: tuple[Skipped, ...] = ()
    error: str = ""
    seconds: float = 0.0


@dataclass(frozen=True, slots=True)
class SourceState:
    """How one catalog stands. Shape: `read_at` is the age of what is kept, `error` why the last try failed, `is_on` the setting, `url` where it is read."""

    name: str
    title: str
    url: str
    is_on: bool
    read_at: datetime | None
    changed_at: datetime | None
    tried_at: datetime | None
    error: str
    offers: int
    version: str
    skipped: tuple[Mapping[str, Any], ...] = field(default=())


# ------------------------------------------------------------------ when


def check_sources(given: Any) -> dict[str, bool]:
    """Gives the setting of which catalogs are read, all of them named. Errors: ValueError."""
    names = [source.name for source in sources.every()]
    if not isinstance(given, Mapping) or not all(name in names and isinstance(on, bool) for name, on in given.items()):
        raise ValueError(f"must be an object of {', '.join(names)}, each true or false.")
    return {name: given.get(name, True) for name in names}


def run(now: datetime) -> dict[str, Any]:
    """Reads every catalog that is on, for the schedule named catalog; gives the report as JSON holds it."""
    done = read_all(now)
    applied = layering.apply_offers(now)
    return {
        "sources": {one.source: {**asdict(one), "skipped": [asdict(entry) for entry in one.skipped[: taking.MOST_SKIPPED]]} for one in done},
        "models": list(applied.models),
        "prices": applied.prices,
        "skipped": [asdict(one) for one in applied.left[: taking.MOST_SKIPPED]],
    }


def read_all(now: datetime) -> list[Read]:
    """Reads every catalog that is on, one after another: one that fails keeps no other from being read."""
    return [read_one(source.name, now) for source in sources.every()]


def read_source(name: str, now: datetime) -> Read:
    """Reads one catalog and lays it over the roster. Errors: KeyError for a name that no file stands for."""
    done = read_one(name, now)
    if done.state == "changed":
        layering.apply_offers(now)
    return done


def read_due(now: datetime, wait_s: float = 3.0) -> list[str]:
    """Reads what is older than a day, for whoever opens Discover, and gives the names; a catalog that is being read already is left to whoever reads it.

    In a thread of this process and not in the queue: the page must work with the scheduler off and without a queue, too. The page waits a moment, since a
    near mirror is read by then, and else shows what is kept; the thread goes on.
    """
    if not (due := names_due(now)):
        return []
    return read_aside(due, now, wait_s)


def names_due(now: datetime) -> list[str]:
    """Lists the catalogs that are on, older than a day, and not tried a moment ago."""
    rows = {row.name: row for row in models.Source.objects.all()}
    on = [name for name in layering.switched_on() if url_of(sources.get(name))[0]]
    fresh = {name for name, row in rows.items() if (row.read_at and row.read_at > now - DAY) or (row.tried_at and row.tried_at > now - AGAIN)}
    return [name for name in on if name not in fresh]


def read_aside(names: Iterable[str], now: datetime, wait_s: float) -> list[str]:
    """Reads catalogs in a thread, waits a moment for it, and gives the names."""
    wanted = list(names)
    thread = threading.Thread(target=read_quietly, args=(wanted, now), name="catalog-reading", daemon=True)
    thread.start()
    thread.join(wait_s)
    return wanted


def read_quietly(names: Iterable[str], now: datetime) -> None:
    try:
        done = [read_one(name, now) for name in names]
        if any(one.state == "changed" for one in done):
            layering.apply_offers(now)
    except Exception:
        log.exception("Public catalogs could not be read; what is kept stays.")
    finally:
        connection.close()


def states() -> list[SourceState]:
    """Tells how every catalog stands. Two queries."""
    on = set(layering.switched_on())
    rows = {row.name: row for row in models.Source.objects.all()}
    found = []
    for source in sources.every():
        row = rows.get(source.name) or models.Source(name=source.name)
        url = url_of(source)[0]
        found.append(
            SourceState(
                source.name,
                source.title,
                url,
                source.name in on and bool(url),
                row.read_at,
                row.changed_at,
                row.tried_at,
                row.error,
                row.offers,
                row.version,
                tuple(row.skipped),
            )
        )
    return found


# ------------------------------------------------------------------ one reading


def read_one(name: str, now: datetime) -> Read:
    """Reads one catalog under its lease. Never raises for what the catalog does. Errors: KeyError for a name that no file stands for."""
    source = sources.get(name)
    url, named = url_of(source)
    if not url or not layering.is_on(name):
        return Read(name, "off")
    models.Source.objects.get_or_create(name=name)
    if not claimed(name, now):
        return Read(name, "busy")
    began = time.monotonic()
    try:
        done = taken_over(source, url, named, now)
    except (web.WebError, Refused) as error:
        if isinstance(error, Shrunk):
            models.Source.objects.filter(name=name, doubted_at=None).update(doubted_at=now)
        done = Read(name, "failed", error=f"{source.title}: {error}")
    except Exception as error:
        # A catalog may hold anything; its next reading, and the other catalogs, must not suffer for it.
        log.exception("The catalog %s could not be read.", name)
        done = Read(name, "failed", error=f"{source.title}: it could not be read ({type(error).__name__}).")
    finally:
        models.Source.objects.filter(name=name).update(leased_until=None)
    if done.error:
        log.warning("A public catalog was not taken over, what is kept stays. %s", done.error)
        models.Source.objects.filter(name=name).update(error=done.error[:500])
    return replace(done, seconds=round(time.monotonic() - began, 2))


def claimed(name: str, now: datetime) -> bool:
    """Takes the lease on a catalog, unless somebody holds it."""
    clock = timezone.now()
    free = models.Source.objects.filter(Q(leased_until=None) | Q(leased_until__lte=clock), name=name)
    return bool(free.update(leased_until=clock + LEASE, tried_at=now))


def url_of(source: Source) -> tuple[str, bool]:
    """Gives where a catalog is read, and whether an admin named that place, which may then be private. Empty: never read here."""
    if source.name in settings.CATALOG_URLS:
        return settings.CATALOG_URLS[source.name], True
    return source.url, False


def taken_over(source: Source, url: str, named: bool, now: datetime) -> Read:
    """Fetches a catalog and takes it over. Errors: web.WebError, Refused."""
    row = models.Source.objects.get(name=source.name)
    # A newer reading of ours, or a doubt that has become believable, finds something else in the same body.
    is_known = row.reader == READER and not any(taking.is_ripe(note, now) for note in row.skipped)
    pages = Pages(source, url, named)
    bodies = pages.fetch(row if is_known else None)
    stamps: dict[str, Any] = {"read_at": now, "error": "", "doubted_at": None}
    if bodies is not None:
        stamps |= {"etag": pages.etag, "last_modified": pages.last_modified}
    if bodies is None or (is_known and pages.digest == row.digest):
        models.Source.objects.filter(name=source.name).update(**stamps)
        return Read(source.name, "unchanged", offers=row.offers)
    catalog = taking.together(source, bodies)
    before = taking.offers_before(source)
    found = taking.sifted(catalog, before, row.skipped, now)
    taking.check_size(found.size, sum(one.gone_at is None for one in before.values()), row.doubted_at, now)
    written = taking.write(source, catalog, found, before, now)
    models.Source.objects.filter(name=source.name).update(
        **stamps,
        reader=READER,
        digest=pages.digest,
        version=catalog.version,
        changed_at=now,
        offers=found.size,
        skipped=taking.noted(found.skipped, row.skipped, now),
    )
    return Read(source.name, "changed", found.size, written.added, written.changed, written.gone, found.skipped)


class Pages:
    """One catalog's pages as they come. Afterwards it knows the digest, and what asks for changes only (of a catalog of one page)."""

    def __init__(self, source: Source, url: str, named: bool) -> None:
        self.source, self.url, self.named = source, url, named
        self.etag = self.last_modified = self.digest = ""

    def fetch(self, row: models.Source | None) -> list[Any] | None:
        """Fetches all pages; None where the catalog says that nothing changed since the row was written. Errors: web.WebError, Refused."""
        headers = {}
        if row is not None and row.digest:
            headers = {"If-None-Match": row.etag, "If-Modified-Since": row.last_modified}
        headers = {name: said for name, said in headers.items() if said}
        bodies: list[Any] = []
        left, digest, url = self.source.limit_bytes, hashlib.sha256(), self.url
        ends = time.monotonic() + TIMEOUT_S
        for number in range(MOST_PAGES):
            fetched = web.fetch(url, headers if number == 0 else {}, named=self.named, limit_bytes=left, timeout_s=max(ends - time.monotonic(), 0.1))
            if number == 0 and headers and fetched.status == 304:
                return None
            body = web.json_of(fetched, "a catalog")
            bodies.append(body)
            digest.update(fetched.body)
            left -= len(fetched.body)
            if not (following := self.source.next_page(body)):
                break
            url = self.next_url(url, following)
        else:
            raise Refused(f"it has more than {MOST_PAGES} pages.")
        self.digest = digest.hexdigest()
        if len(bodies) == 1:
            self.etag, self.last_modified = printable(fetched.headers.get("etag", ""), 300), printable(fetched.headers.get("last-modified", ""), 100)
        return bodies

    @staticmethod
    def next_url(url: str, following: str) -> str:
        found = urljoin(url, following)
        here, there = urlsplit(url), urlsplit(found)
        if (here.scheme, here.netloc) != (there.scheme, there.netloc):
            raise Refused("its next page is at another host, which is not followed.")
        return found


def printable(said: str, longest: int) -> str:
    """Keeps a header that can be sent back as it is, and no other."""
    return said if len(said) <= longest and said.isascii() and said.isprintable() else ""
