"""Who may see what of the suite. What is somebody else's and private is as if it were not there."""

from __future__ import annotations

from typing import Any

from django.db.models import Exists, OuterRef, Q

from access.caller import Caller
from suite.models import Benchmark, Impl, Run


def is_admin(caller: Caller) -> bool:
    return caller.may("admin")


def owns(caller: Caller, row: Benchmark | Impl | Run) -> bool:
    """Whether a caller may change it. A test token changes no run that is real."""
    if caller.is_dry and isinstance(row, Run) and not row.is_dry:
        return False
    return is_whose(caller, row)


def is_whose(caller: Caller, row: Benchmark | Impl | Run) -> bool:
    return is_admin(caller) or row.owner == caller.owner


def readable_runs(caller: Caller) -> Any:
    """Runs that a caller may read: their own, their team's that are shared with it, public ones; an admin all."""
    if is_admin(caller):
        return Run.objects.all()
    mine = Q(owner=caller.owner) | Q(visibility=Run.Visibility.PUBLIC)
    if caller.team:
        mine |= Q(team=caller.team, visibility=Run.Visibility.TEAM)
    return Run.objects.filter(mine)


def may_read_run(caller: Caller, run: Run) -> bool:
    if is_whose(caller, run) or run.visibility == Run.Visibility.PUBLIC:
        return True
    return bool(caller.team) and run.team == caller.team and run.visibility == Run.Visibility.TEAM


def readable_benchmarks(caller: Caller) -> Any:
    """Benchmarks that a caller may read: their own, built-in ones, and those that a run which they may read refers to."""
    rows = Benchmark.objects.filter(deleted_at=None)
    if is_admin(caller):
        return rows
    shared = Run.objects.filter(benchmark=OuterRef("pk"), deleted_at=None).filter(shared_with(caller))
    return rows.filter(Q(owner=caller.owner) | ~Q(built_in="") | Exists(shared))


def shared_with(caller: Caller) -> Q:
    found = Q(visibility=Run.Visibility.PUBLIC)
    if caller.team:
        found |= Q(team=caller.team, visibility=Run.Visibility.TEAM)
    return found


def may_read_benchmark(caller: Caller, row: Benchmark) -> bool:
    if owns(caller, row) or row.built_in:
        return True
    return Run.objects.filter(benchmark=row, deleted_at=None).filter(shared_with(caller)).exists()


def visibility_of(row: Benchmark) -> str:
    """Derives a benchmark's visibility from its runs: the widest of them. What comes with the server is everybody's."""
    if row.built_in:
        return Run.Visibility.PUBLIC.value
    levels = set(Run.objects.filter(benchmark=row, deleted_at=None).values_list("visibility", flat=True).distinct())
    return next((level for level in ("public", "team") if level in levels), "private")


def may_read_impl(caller: Caller, row: Impl) -> bool:
    """An impl is for its owner, whoever sees its benchmark, and whoever may read a run that it scored."""
    if owns(caller, row) or (row.benchmark is not None and may_read_benchmark(caller, row.benchmark)):
        return True
    return bool(readable_runs(caller).filter(Q(impl=row) | Q(rescorings__impl=row)).exists())
