"""Holds tests against a candidate that lives in another sandbox: its functions are called over a line, what comes back is plain data, compared here.

What it finds goes out as a scorer's result does, after a word that the candidate cannot know, since it never was where it is said.
"""

from __future__ import annotations

import ast
import builtins
import importlib
import inspect
import io
import json
import os
import socket
import sys
import time
import traceback
import types
import unittest
from collections.abc import Callable
from typing import Any

from bench_hide import hide  # type: ignore[import-not-found]  # it lies beside this file in the sandbox
from bench_peer import ARITHMETIC, IN_PLACE, ORDER, Gone, Handle, Late, Peer  # type: ignore[import-not-found]
from bench_values import FromCandidate, decode, error_class  # type: ignore[import-not-found]

# Modules of Python's own that tests may use because the candidate imported them; they come from here, not from there.
SHARED = frozenset(
    {
        *("math", "cmath", "re", "itertools", "functools", "collections", "heapq", "bisect", "string", "random", "datetime", "decimal", "fractions"),
        *("statistics", "operator", "copy", "typing", "json", "time"),
    }
)
OUTSIDE = frozenset(
    {
        *ARITHMETIC,
        *(f"r{name}" for name in ARITHMETIC),
        *ORDER,
        *IN_PLACE,
        "neg",
        "pos",
        "abs",
        "invert",
        "hash",
        "attr",
        "set",
        "call",
        "item",
        "set_item",
        "del_item",
        "contains",
        "len",
        "iter",
        "next",
        "bool",
        "str",
        "repr",
        "eq",
    }
)


# What is done with views, iterators and other values of Python's own that do not go over whole.
LOOKED = frozenset({"len", "contains", "bool", "eq", "hash"})


class Failed(Exception):
    """The tests do not hold."""


def may(op: str, of: Any, args: list[Any]) -> bool:
    """Whether a candidate may do that with something of the tests: call what it was handed, and use objects of the tests' own classes, by public names."""
    if op not in OUTSIDE:
        return False
    if type(of).__module__ == "unittest.mock" or type(of) in (io.StringIO, io.BytesIO):
        return op in ("call", "iter", "next") or (op == "attr" and isinstance(args[0], str) and not args[0].startswith(("_", "assert", "reset", "mock")))
    if op == "call":
        return inspect.isroutine(of) or isinstance(of, type) or type(of).__module__ == "__main__"
    if op in ("attr", "set"):
        if op == "attr" and isinstance(of, types.FunctionType) and args[0] in ("__name__", "__qualname__", "__doc__"):
            return True
        return type(of).__module__ == "__main__" and not isinstance(of, type) and isinstance(args[0], str) and not args[0].startswith("_")
    return (
        type(of).__module__ == "__main__"
        or op in ("iter", "next")
        or (op in LOOKED and type(of).__module__ in ("builtins", "collections") and not isinstance(of, type))
    )


def offered(peer: Peer, names: dict[str, Any], entry_point: str, tests: str) -> dict[str, Any]:
    """Gives tests what the candidate defines. Python's own names stay Python's: a candidate's `abs` or `all` judges nothing."""
    found: dict[str, Any] = {}
    loaded, reached = wanted(tests)
    # Tests that want nothing else of it want what it calls like one of Python's own.
    is_own = not entry_point and not any(name in loaded and name not in vars(builtins) for name in names)
    for name, what in names.items():
        if not name.isidentifier() or name.startswith("__") or (name in vars(builtins) and name != entry_point and not (is_own and name in loaded)):
            continue
        if name in SHARED and name in reached and name != entry_point and what["is"] != "value" and hasattr(importlib.import_module(name), reached[name]):
            found[name] = importlib.import_module(name)  # a class of the candidate's named math is not what tests mean by math.isclose
        elif what["is"] == "module":
            if what["name"] in SHARED:
                found[name] = importlib.import_module(what["name"])
        elif what["is"] == "error":
            found[name] = error_class(str(what["type"]["name"]), str(what["type"]["is"]), [str(of) for of in what["type"].get("of", ())][:8])
        elif what["is"] == "value":
            found[name] = peer.value(what["value"])
        else:
            found[name] = Handle(peer, name)
    return found


def wanted(tests: str) -> tuple[set[str], dict[str, str]]:
    """Reads what tests call and what they reach into. Shape: names that are called, and an attribute for each name of which one is asked."""
    nodes = list(ast.walk(ast.parse(tests)))
    called = {node.func.id for node in nodes if isinstance(node, ast.Call) and isinstance(node.func, ast.Name)}
    return called, {node.value.id: node.attr for node in nodes if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name)}


def run(tests: str, space: dict[str, Any], entry_point: str) -> None:
    """Runs the tests. Errors: whatever they raise where they do not hold."""
    exec(compile(tests, "tests.py", "exec", dont_inherit=True), space)  # noqa: S102  # in a sandbox of its own
    check = space.get("check")
    if entry_point and isinstance(check, types.FunctionType):
        if entry_point not in space:
            raise Failed(f"The code defines no {entry_point}.")
        check(space[entry_point])
    for name, value in list(space.items()):
        if name.startswith("test") and isinstance(value, types.FunctionType) and not inspect.signature(value).parameters:
            value()
    cases = [v for v in space.values() if isinstance(v, type) and issubclass(v, unittest.TestCase) and v.__module__ == "__main__"]
    for case in cases:
        result = unittest.TestResult()
        unittest.defaultTestLoader.loadTestsFromTestCase(case).run(result)
        if wrong := [*result.failures, *result.errors]:
            raise Failed(wrong[0][1].strip().splitlines()[-1])
        if result.skipped or not result.testsRun:
            raise Failed(f"{case.__name__}: tests were skipped, or there are none.")


class Asking(Peer):  # type: ignore[misc]
    def value(self, said: Any) -> Any:
        return decode(said, self.handle)


def found(line: int, timeout_s: float, begun: Callable[[], None]) -> dict[str, Any]:
    """Gives what became of it. Shape: `begun` is called once the candidate is there: what happens from then on is no trouble of the sandbox."""
    with open("program.json", encoding="utf-8") as file:
        program = json.load(file)
    peer = Asking(socket.socket(fileno=line), may, time.monotonic() + timeout_s)
    peer.may_stop = "StopIteration" in program["tests"]
    said: dict[str, Any] = {"hello": False}
    try:
        said["hello"] = bool(peer.receive().get("hello"))
        begun()
        first = peer.receive()
        if "names" not in first:
            return {**said, "outcome": "unloaded", "explanation": str(first.get("failed", ""))[:500]}
        names = first["names"]
        space = vars(main_module(offered(peer, names if isinstance(names, dict) else {}, program["entry_point"], program["tests"])))
    except (Gone, Late):
        return {**said, "outcome": peer.lost, "explanation": "while it was loaded"}
    except (KeyError, TypeError, ValueError, AttributeError):
        return {**said, "outcome": "gone", "explanation": "it said what it cannot say"}
    told, outcome = "", "passed"
    try:
        run(program["tests"], space, program["entry_point"])
    except SystemExit as error:  # the tests' own: one of the candidate comes as another exception
        is_own = not isinstance(error, FromCandidate)
        outcome, told = ("passed", "") if is_own and error.code in (None, 0) else ("failed", f"The tests ended with {str(error.code)[:100]}.")
    except BaseException as error:
        at = next((f.lineno for f in reversed(traceback.extract_tb(error.__traceback__)) if f.filename == "tests.py"), None)
        outcome, told = "failed", f"{type(error).__name__}{f' at line {at} of the tests' if at else ''}: {error}"[:500]
    # Tests that swallow every exception swallow these two as well; the line knows.
    return {**said, "outcome": peer.lost or outcome, "explanation": told, "asked": peer.asked}


def main_module(space: dict[str, Any]) -> types.ModuleType:
    """Makes the module that tests run as, and the names by which they may import the candidate."""
    module = types.ModuleType("__main__")
    vars(module).update(space)
    for name in ("candidate", "solution"):
        sys.modules[name] = types.ModuleType(name)
        vars(sys.modules[name]).update(space)
    sys.modules["run_tests"], sys.modules["__main__"] = sys.modules["__main__"], module
    return module


def main() -> None:
    descriptor, line, timeout_s = int(os.environ.pop("BENCH_RESULTS")), int(os.environ.pop("BENCH_LINE")), float(os.environ.pop("BENCH_WITHIN_S"))
    word = sys.stdin.readline().strip()
    os.set_inheritable(descriptor, False)
    os.set_inheritable(line, False)
    hide()

    def say(result: dict[str, Any]) -> None:
        os.write(descriptor, json.dumps({"word": word, **result}).encode() + b"\n")

    say(found(line, timeout_s, lambda: say({"hello": True, "outcome": ""})))
    sys.stdout.flush()
    os._exit(0)


main()
