"""Whether a changed function behaves otherwise: its repository's tests in the sandbox, which also tell what lines each of them runs."""

from __future__ import annotations

import asyncio
import json
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from suite.review.repository import Place
from suite.sandbox import box

RUNNER, CALLER = "/opt/kit/run_repo_tests.py", "/opt/kit/run_calls.py"
# One sandbox for so many changes: what it costs to start is shared, and a stuck one loses little.
BATCH = 12
CHANGE_S = 60
BASELINE_S = 1200
MOST_TESTS = 300
LIMITS = box.Limits(wall_s=BASELINE_S + 60, cpu_s=BASELINE_S, memory_mb=2048, disk_mb=512, processes=256, output_bytes=1024 * 1024)


class NoTests(Exception):
    """The tests could not be run. The message says why."""


@dataclass(frozen=True, slots=True)
class Tested:
    """How a repository's tests are at a commit. Shape: `covering` gives the passing tests that run a line, by path and line; `examples` calls by path:line."""

    passing: frozenset[str]
    covering: Mapping[str, Mapping[int, frozenset[str]]]
    examples: Mapping[str, Sequence[str]]
    failing: int = 0
    modules: Sequence[str] = ()

    def of_lines(self, path: str, lines: range) -> frozenset[str]:
        known = self.covering.get(path, {})
        return frozenset().union(*(known.get(line, frozenset()) for line in lines))


@dataclass(frozen=True, slots=True)
class Change:
    """A file as it would be, and the tests that run what was changed in it."""

    id: str
    files: Mapping[str, str]
    tests: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Came:
    """What the tests said of a change. Shape: `failed` of the `tests` that passed before; `is_import` where nothing could be collected any more."""

    failed: frozenset[str]
    tests: int
    is_import: bool = False
    is_late: bool = False
    outcomes: Mapping[str, str] = field(default_factory=dict)

    @property
    def is_killed(self) -> bool:
        return bool(self.failed) or self.is_late or self.is_import

    @property
    def is_subtle(self) -> bool:
        """Seen by a test, but neither by an import nor by more than half of those that run it."""
        return bool(self.failed) and not self.is_import and not self.is_late and 2 * len(self.failed) <= self.tests


def environment(place: Place) -> tuple[dict[str, Path], dict[str, str]]:
    """Gives the folders of packages that the tests need, and where Python looks for them."""
    folders: dict[str, Path] = {}
    path = ["/opt/kit"]
    if place.packages is not None:
        folders["/opt/packages"] = place.packages
        path.append("/opt/packages")
    return folders, {"PYTHONPATH": ":".join([*path, "/opt/site"]), "PYTHONDONTWRITEBYTECODE": "", "LC_ALL": "C.UTF-8"}


def asked(place: Place, tree: Path, runner: str, plan: Mapping[str, Any], wall_s: float) -> list[dict[str, Any]]:
    """Runs one plan in a sandbox and gives its lines. Errors: NoTests, box.SandboxUnavailable."""
    word = secrets.token_hex(16)
    folders, env = environment(place)
    limits = box.Limits(wall_s, LIMITS.cpu_s, LIMITS.memory_mb, LIMITS.disk_mb, LIMITS.processes, LIMITS.output_bytes)
    files = {"plan.json": json.dumps(plan).encode("utf-8", "surrogatepass")}
    ended = asyncio.run(
        box.run([box.PYTHON, "-s", runner], files, limits, env=env, folders={"/repo": tree, **folders}, stdin=f"{word}\n".encode(), with_results=True)
    )
    found = []
    for line in ended.results.splitlines():
        try:
            said = json.loads(line)
        except ValueError:
            continue
        if isinstance(said, dict) and said.get("word") == word:
            found.append(said)
    if not found:
        raise NoTests(f"Nothing came back ({ended.why or f'exit code {ended.exit_code}'}): {ended.stderr.decode(errors='replace').strip()[-400:]}")
    return found


def source_folders(tree: Path) -> list[str]:
    return ["/box/repo/src"] if (tree / "src").is_dir() else []


def baseline(place: Place, tree: Path, files: Sequence[str], examples: int = 0) -> Tested:
    """Runs the tests as they are, with the lines that each runs. Errors: NoTests where none passes."""
    plan = {"tests": list(place.tests), "trace": True, "files": list(files), "examples": examples, "timeout": BASELINE_S, "paths": source_folders(tree)}
    said = asked(place, tree, RUNNER, plan, BASELINE_S + 60)[0]
    outcomes: dict[str, str] = said.get("outcomes", {})
    passing = frozenset(test for test, outcome in outcomes.items() if outcome == "passed")
    if not passing:
        raise NoTests(f"No test passes ({len(outcomes)} ran; {said.get('error', 'see tests and packages in config/repos.json')}).")
    covering: dict[str, dict[int, set[str]]] = {}
    for test, paths in said.get("lines", {}).items():
        if test in passing:
            for path, lines in paths.items():
                known = covering.setdefault(path, {})
                for line in lines:
                    known.setdefault(line, set()).add(test)
    frozen = {path: {line: frozenset(tests) for line, tests in known.items()} for path, known in covering.items()}
    return Tested(passing, frozen, said.get("examples", {}), sum(outcome == "failed" for outcome in outcomes.values()), said.get("modules", ()))


def changes(place: Place, tree: Path, wanted: Sequence[Change], modules: Sequence[str] = (), change_s: int = CHANGE_S) -> dict[str, Came]:
    """Runs for each change the tests that run it. What gives no answer is not in what comes back."""
    found: dict[str, Came] = {}
    for start in range(0, len(wanted), BATCH):
        part = wanted[start : start + BATCH]
        plan = {
            "changes": [{"id": change.id, "files": dict(change.files), "tests": list(change.tests)} for change in part],
            "timeout": change_s,
            "modules": list(modules),
            "paths": source_folders(tree),
        }
        try:
            lines = asked(place, tree, RUNNER, plan, change_s * len(part) + 30)
        except NoTests:
            continue
        by_id = {change.id: change for change in part}
        for said in lines:
            if (change := by_id.get(str(said.get("id")))) is not None:
                found[change.id] = came_of(change, said)
    return found


def came_of(change: Change, said: Mapping[str, Any]) -> Came:
    outcomes: Mapping[str, str] = said.get("outcomes", {})
    failed = frozenset(test for test in change.tests if outcomes.get(test) == "failed")
    is_import = any(name.startswith("collecting ") for name in outcomes) or not any(test in outcomes for test in change.tests)
    return Came(failed, len(change.tests), is_import and not said.get("is_late"), bool(said.get("is_late")), outcomes)
