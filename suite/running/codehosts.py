"""Who runs code: this process where it has a sandbox, else hosts that do nothing else (`manage.py scorers`) and show themselves while they live.

A server in a container may make no namespaces, and should not: what needs them runs in a container of its own, which may. Both have one database.
"""

from __future__ import annotations

import json
import os
import socket
import threading
from collections.abc import Sequence
from dataclasses import asdict
from datetime import timedelta
from typing import Any

from django.db.models import Exists, OuterRef, Q
from django.utils import timezone

from suite import ids
from suite.api.problems import Problem
from suite.grading import every
from suite.models import CodeHost, DryRun, Impl, Row
from suite.running import dryrun
from suite.running.lines import Item
from suite.sandbox import box

# A host shows itself every half second; so long it may be without its database.
SEEN_WITHIN = timedelta(seconds=180)
ANSWERED_WITHIN_S, LOOK_S = 120.0, 0.25
KEPT = timedelta(minutes=10)
ALL, PLAIN, CODE = "all", "plain", "code"


def lane() -> str:
    """Says which runs this process takes: without a sandbox only those that need none; the rest waits for a host that has one."""
    return PLAIN if box.trouble() else ALL


def of_lane(name: str) -> Q:
    """Selects the runs of a lane."""
    if name == ALL:
        return Q()
    boxed = [kind.name for kind in every().values() if kind.needs_sandbox]
    by_row = Q(impl__grader__kind__isnull=True) & Q(Exists(Row.objects.filter(subset=OuterRef("subset_id"), kind__in=boxed)))
    code = ~Q(impl__language="builtin") | Q(impl__grader__kind__in=boxed) | by_row
    return code if name == CODE else ~code


def trouble() -> str:
    """Says why nobody can run code, "" where somebody can."""
    here = box.trouble()
    if not here:
        return ""
    hosts = list(CodeHost.objects.filter(seen_at__gte=timezone.now() - SEEN_WITHIN).order_by("name"))
    if not hosts:
        return f"{here} No other host runs code for this one either (manage.py scorers)."
    troubles = [host.trouble for host in hosts if host.trouble]
    return "" if len(troubles) < len(hosts) else f"{hosts[0].name}: {troubles[0]}"


# ------------------------------------------------------------------ of a host that runs code


def announce() -> str:
    """Shows that this process runs code. Shape: why it cannot, "" where it can."""
    said = box.trouble()
    now = timezone.now()
    name = f"{socket.gethostname()}:{os.getpid()}"[:200]
    CodeHost.objects.update_or_create(name=name, defaults={"trouble": said[:500], "seen_at": now})
    CodeHost.objects.filter(seen_at__lt=now - timedelta(days=1)).delete()
    return said


def leave() -> None:
    CodeHost.objects.filter(name=f"{socket.gethostname()}:{os.getpid()}"[:200]).delete()


def answer_dry_runs() -> int:
    """Tries the scorers that wait for it; gives how many."""
    done = 0
    name = f"{socket.gethostname()}:{os.getpid()}"[:200]
    DryRun.objects.filter(created_at__lt=timezone.now() - KEPT).delete()
    for row in DryRun.objects.filter(worker="").select_related("impl").order_by("created_at")[:4]:
        if not DryRun.objects.filter(pk=row.pk, worker="").update(worker=name):
            continue
        items = [Item(**item) for item in json.loads(row.rows)]
        DryRun.objects.filter(pk=row.pk).update(answer=json.dumps(dryrun.tried(row.impl, items)))
        done += 1
    return done


# ------------------------------------------------------------------ of a server without a sandbox


def tried(impl: Impl, items: Sequence[Item]) -> dict[str, Any]:
    """Tries a scorer here, or has a host that runs code do it. Errors: Problem."""
    if not box.trouble():
        return dryrun.tried(impl, items)
    row = DryRun.objects.create(id=ids.new_id("dry"), impl=impl, rows=json.dumps([asdict(item) for item in items]), created_at=timezone.now())
    pause = threading.Event()
    until = timezone.now() + timedelta(seconds=ANSWERED_WITHIN_S)
    while timezone.now() < until:
        if answer := DryRun.objects.filter(pk=row.pk).values_list("answer", flat=True).first():
            found: dict[str, Any] = json.loads(answer)
            row.delete()
            return found
        pause.wait(LOOK_S)
    row.delete()
    raise Problem(503, "dry_run_late", "The hosts that run code are busy. Ask again in a while.", retry_after_s=30)
