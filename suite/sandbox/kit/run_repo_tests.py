"""Runs a repository's tests inside the sandbox: once as they are, telling which lines each test runs, or once for each changed file that is handed in.

plan.json ─▶ a copy of /repo in memory ─▶ for each change: the file is written, a child of its own runs the tests, the file is put back

Shape of plan.json: {"tests": pytest's arguments, "trace": whether to tell lines, "files": paths to tell lines of, "examples": how many calls to keep of a
function, "changes": [{"id", "files": {path: text}, "tests": [node id]}], "timeout": seconds for each child}.
What it finds goes out on a descriptor of its own, a line of JSON each, after a word that only the server and this process know.
"""

from __future__ import annotations

import ast
import importlib
import json
import os
import shutil
import signal
import sys
import time
import unittest
from importlib.util import find_spec
from typing import Any

REPO, COPY = "/repo", "/box/repo"
LONGEST = 300
# Calls of one function in one test whose lines are followed.
LOOKED_AT = 5
# What must not be there before pytest comes: its plugins, whose assertions it rewrites.
NOT_EARLY = ("pytest", "hypothesis", "xdist", "anyio", "execnet")


class Told:
    """What one run of tests came to: an outcome by test, the lines that each ran, and calls as examples."""

    def __init__(self, plan: dict[str, Any]) -> None:
        self.outcomes: dict[str, str] = {}
        self.lines: dict[str, dict[str, set[int]]] = {}
        self.examples: dict[str, list[str]] = {}
        self.files = {f"{COPY}/{path}": path for path in plan.get("files", ())}
        self.most_examples = plan.get("examples", 0)
        self.is_traced = bool(plan.get("trace"))
        self.current = ""
        self.times: dict[Any, int] = {}

    def begin(self, test: str) -> None:
        self.current = test
        self.times = {}
        if self.is_traced:
            sys.settrace(self.trace)

    def end(self) -> None:
        if self.is_traced:
            sys.settrace(None)
        self.current = ""

    def trace(self, frame: Any, event: str, argument: Any) -> Any:
        path = self.files.get(frame.f_code.co_filename)
        if path is None:
            return None
        seen = self.lines.setdefault(self.current, {}).setdefault(path, set())
        seen.add(frame.f_lineno)
        times = self.times.get(frame.f_code, 0)
        if times >= LOOKED_AT:
            return None  # to follow every line of every call takes twenty times as long
        self.times[frame.f_code] = times + 1
        if self.most_examples:
            self.keep(frame, path)

        def local(frame: Any, event: str, argument: Any) -> Any:
            seen.add(frame.f_lineno)
            return local

        return local

    def keep(self, frame: Any, path: str) -> None:
        """Keeps a call's arguments where they can be written down and read again."""
        code = frame.f_code
        place = f"{path}:{code.co_firstlineno}"
        kept = self.examples.setdefault(place, [])
        if len(kept) >= self.most_examples or code.co_flags & 0x0C:
            return
        names = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
        try:
            said = {name: repr(frame.f_locals[name]) for name in names}
            if sum(map(len, said.values())) > LONGEST or any(ast.literal_eval(text) != frame.f_locals[name] for name, text in said.items()):
                return
        except Exception:
            return
        written = json.dumps([said, code.co_argcount])
        if written not in kept:
            kept.append(written)

    def said(self) -> dict[str, Any]:
        lines = {test: {path: sorted(found) for path, found in paths.items()} for test, paths in self.lines.items()}
        found: dict[str, Any] = {"outcomes": self.outcomes, "lines": lines, "examples": self.examples}
        return {**found, "modules": foreign_modules()} if self.is_traced else found


def foreign_modules() -> list[str]:
    """Lists the modules that came from elsewhere than the repository: whoever begins with them saves every change the time to import them."""
    own = (COPY, "/box")
    kept = []
    for name, module in list(sys.modules.items()):
        path = getattr(module, "__file__", None) or ""
        if path and not path.startswith(own) and name != "__main__" and not any(part in name for part in NOT_EARLY):
            kept.append(name)
    return kept


class Plugin:
    """Tells pytest's tests one by one."""

    def __init__(self, told: Told) -> None:
        self.told = told

    def pytest_runtest_logstart(self, nodeid: str, location: Any) -> None:
        self.told.begin(nodeid)

    def pytest_runtest_logreport(self, report: Any) -> None:
        before = self.told.outcomes.get(report.nodeid)
        if report.failed:
            self.told.outcomes[report.nodeid] = "failed"
        elif before is None and (report.when == "call" or report.skipped):
            self.told.outcomes[report.nodeid] = "skipped" if report.skipped else "passed"

    def pytest_runtest_logfinish(self, nodeid: str, location: Any) -> None:
        self.told.end()

    def pytest_collectreport(self, report: Any) -> None:
        if report.failed:
            self.told.outcomes[f"collecting {report.nodeid}"] = "failed"


class Result(unittest.TestResult):
    """Tells unittest's tests one by one."""

    def __init__(self, told: Told) -> None:
        super().__init__()
        self.told = told

    def startTest(self, test: Any) -> None:
        super().startTest(test)
        self.told.begin(test.id())

    def stopTest(self, test: Any) -> None:
        self.told.end()
        failed = {one[0].id() for one in (*self.failures, *self.errors)}
        skipped = {one[0].id() for one in self.skipped}
        self.told.outcomes[test.id()] = "failed" if test.id() in failed else "skipped" if test.id() in skipped else "passed"
        super().stopTest(test)


def run(plan: dict[str, Any], tests: list[str]) -> dict[str, Any]:
    """Runs tests in this process, by pytest where the repository's packages have it, else by unittest."""
    told = Told(plan)
    if not find_spec("pytest"):
        loader = unittest.TestLoader()
        if tests and all("/" not in test and not test.endswith(".py") for test in tests):
            suite = loader.loadTestsFromNames(tests)
        else:
            suite = unittest.TestSuite([loader.discover(place, top_level_dir=COPY) for place in tests or ["."]])
        suite.run(Result(told))
        for failure in loader.errors:
            told.outcomes[f"collecting {str(failure)[:80]}"] = "failed"
        return told.said()
    pytest = importlib.import_module("pytest")
    alone = ["-n0"] if find_spec("xdist") else []
    pytest.main(["-q", "-p", "no:cacheprovider", "--tb=no", *alone, *tests], plugins=[Plugin(told)])
    return told.said()


def in_a_child(plan: dict[str, Any], tests: list[str]) -> dict[str, Any]:
    """Runs tests in a process of their own, so that each change is imported anew; what takes too long is ended with all that it began."""
    read_end, write_end = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(read_end)
        os.setpgid(0, 0)
        try:
            found = run(plan, tests)
        except BaseException as error:
            found = {"outcomes": {"collecting all": "failed"}, "error": f"{type(error).__name__}: {error}"[:500]}
        with os.fdopen(write_end, "wb") as out:
            out.write(json.dumps(found).encode())
        os._exit(0)
    os.close(write_end)
    signal.signal(signal.SIGALRM, lambda *_: end(child))
    signal.setitimer(signal.ITIMER_REAL, plan.get("timeout", 60))
    with os.fdopen(read_end, "rb") as source:
        said = source.read()
    signal.setitimer(signal.ITIMER_REAL, 0)
    end(child)
    os.waitpid(child, 0)
    try:
        found = json.loads(said)
    except ValueError:
        return {"outcomes": {}, "is_late": True}
    return found if isinstance(found, dict) else {"outcomes": {}}


def end(child: int) -> None:
    try:
        os.killpg(child, signal.SIGKILL)
    except (ProcessLookupError, PermissionError):
        pass


def write(files: dict[str, str], moment: int) -> None:
    """Writes files, each time with another date: what was compiled of a text of the same length would be taken for it else."""
    for path, text in files.items():
        with open(f"{COPY}/{path}", "w", encoding="utf-8", newline="") as file:
            file.write(text)
        os.utime(f"{COPY}/{path}", (moment, moment))


def main() -> None:
    descriptor = int(os.environ.pop("BENCH_RESULTS"))
    word = sys.stdin.readline().strip()
    os.set_inheritable(descriptor, False)
    with open("plan.json", encoding="utf-8") as file:
        plan = json.load(file)
    shutil.copytree(REPO, COPY, symlinks=True)
    os.chdir(COPY)
    sys.path[:0] = [COPY, *plan.get("paths", ())]
    sys.argv = ["pytest"]
    for name in plan.get("modules", ()):
        try:
            importlib.import_module(name)
        except Exception:  # noqa: S112
            continue  # it wants what only its own caller has set up
    devnull = os.open(os.devnull, os.O_RDWR)
    for number in (0, 1, 2):
        os.dup2(devnull, number)

    def tell(found: dict[str, Any]) -> None:
        data = json.dumps({"word": word, **found}).encode() + b"\n"
        while data:
            data = data[os.write(descriptor, data) :]

    for i, change in enumerate(plan.get("changes") or [{"id": "", "files": {}, "tests": plan["tests"]}]):
        before = {}
        for path in change["files"]:
            with open(f"{COPY}/{path}", encoding="utf-8", newline="") as file:
                before[path] = file.read()
        write(change["files"], 1_000_000_000 + 2 * i)
        began = time.monotonic()
        found = in_a_child(plan, change["tests"])
        write(before, 1_000_000_001 + 2 * i)
        tell({"id": change["id"], "seconds": round(time.monotonic() - began, 3), "cpu_s": round(sum(os.times()[2:4]), 3), **found})
    os.close(descriptor)
    os._exit(0)


main()
