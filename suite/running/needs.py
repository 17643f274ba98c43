"""What grading takes besides the answers: a sandbox, judges. Known when a run is launched, and again when it is worked on."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from panels.snapshot import Snapshot, load_snapshot
from suite.api.problems import Problem, Unprocessable, Wrong
from suite.grading import every
from suite.models import Impl, Row
from suite.running import codehosts, judging


@dataclass(frozen=True, slots=True)
class Needs:
    """Shape: `sandbox` for a scorer's code or for programs that models write, `judge` for models that grade."""

    sandbox: bool
    judge: bool


def kinds_of(impl: Impl, subset: str, version: int) -> set[str]:
    """Names the built-in kinds that a run grades by; where the grader names none, its rows do."""
    if impl.language != "builtin":
        return set()
    kind = str((impl.grader or {}).get("kind") or "")
    return {kind} if kind else set(Row.objects.filter(subset_id=subset, since__lte=version).order_by().values_list("kind", flat=True).distinct())


def of_kinds(kinds: Iterable[str]) -> Needs:
    found = [kind for name in kinds if (kind := every().get(name)) is not None]
    return Needs(any(kind.needs_sandbox for kind in found), any(kind.needs_judge for kind in found))


def of(impl: Impl, subset: str, version: int) -> Needs:
    needed = of_kinds(kinds_of(impl, subset, version))
    return Needs(True, needed.judge) if impl.language != "builtin" else needed


def check(impl: Impl, subset: str, version: int) -> None:
    """Looks whether this server can grade by an impl. Errors: Unprocessable."""
    check_kinds(impl, subset, version)
    needed = of(impl, subset, version)
    if needed.sandbox:
        check_sandbox()
    if needed.judge:
        judges(impl, load_snapshot())


def check_kinds(impl: Impl, subset: str, version: int) -> None:
    """Looks whether the built-in graders that an impl names are there. Errors: Unprocessable."""
    unknown = sorted(name for name in kinds_of(impl, subset, version) if name not in every())
    if unknown:
        told = f"This server has no grader {unknown[0]}." if unknown[0] else "Some rows say no kind, so the grader must name one."
        raise Unprocessable("grader_unknown", told, [Wrong("/impl", "grader_unknown", "is none of this server's.")])


def check_sandbox() -> None:
    """Looks whether code can be run. Errors: Unprocessable with what to do."""
    if missing := codehosts.trouble():
        raise Unprocessable(
            "sandbox_unavailable", f"Grading runs code, and there is no sandbox to run it in: {missing}", [Wrong("/impl", "sandbox_unavailable", missing)]
        )


def judges(impl: Impl, snapshot: Snapshot) -> list[dict[str, object]]:
    """Says who judges, as they stand now: a part of what a result depends on. Errors: Unprocessable naming the one that is none."""
    try:
        return [judge.said() for judge in judging.resolved(impl.grader or {}, snapshot)]
    except Problem as error:
        raise Unprocessable("judge_unknown", f"The grader's judge cannot be asked: {error.message}", [Wrong("/impl", "judge_unknown", error.message)]) from None
