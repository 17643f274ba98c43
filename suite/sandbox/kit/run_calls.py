"""Calls functions of a repository inside the sandbox, once for each variant of their file, and tells what each call gave.

Shape of plan.json: {"variants": [{"id", "files": {path: text}}], "module", "function", "calls": [{argument: literal}], "paths": [folder]}.
Each variant runs in a child of its own; a call that takes too long, or whose answer cannot be told from one run to the next, tells nothing.
"""

from __future__ import annotations

import ast
import importlib
import json
import os
import shutil
import signal
import sys
from typing import Any

REPO, COPY = "/repo", "/box/repo"
CALL_S, LONGEST = 2, 2000


class Late(BaseException):
    """A call took too long. No code under test catches it by accident."""


def late(*_: object) -> None:
    raise Late


def told(function: Any, arguments: dict[str, str]) -> str:
    """Calls once. Shape: `= repr` of what came, `! name` of what was raised, "" for what tells nothing."""
    given = {name: ast.literal_eval(text) for name, text in arguments.items()}
    signal.signal(signal.SIGALRM, late)
    signal.setitimer(signal.ITIMER_REAL, CALL_S)
    try:
        found = f"= {function(**given)!r}"
        if given != {name: ast.literal_eval(text) for name, text in arguments.items()}:
            found += f" | {given!r}"  # what was handed over was changed, which is an answer too
    except Late:
        return ""
    except Exception as error:
        found = f"! {type(error).__name__}"
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
    return found if len(found) <= LONGEST and " at 0x" not in found else ""


def answers(plan: dict[str, Any]) -> dict[str, Any]:
    module = importlib.import_module(plan["module"])
    function: Any = module
    for name in plan["function"].split("."):
        function = getattr(function, name)
    return {"answers": [told(function, arguments) for arguments in plan["calls"]], "again": [told(function, arguments) for arguments in plan["calls"]]}


def in_a_child(plan: dict[str, Any]) -> dict[str, Any]:
    read_end, write_end = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(read_end)
        try:
            found = answers(plan)
        except BaseException as error:
            found = {"error": f"{type(error).__name__}: {error}"[:500]}
        with os.fdopen(write_end, "wb") as out:
            out.write(json.dumps(found).encode())
        os._exit(0)
    os.close(write_end)
    with os.fdopen(read_end, "rb") as source:
        said = source.read()
    os.waitpid(child, 0)
    try:
        found = json.loads(said)
    except ValueError:
        return {"error": "It ended its process."}
    return found if isinstance(found, dict) else {}


def main() -> None:
    descriptor = int(os.environ.pop("BENCH_RESULTS"))
    word = sys.stdin.readline().strip()
    os.set_inheritable(descriptor, False)
    with open("plan.json", encoding="utf-8") as file:
        plan = json.load(file)
    shutil.copytree(REPO, COPY, symlinks=True)
    os.chdir(COPY)
    sys.path[:0] = [COPY, *plan.get("paths", ())]
    devnull = os.open(os.devnull, os.O_RDWR)
    for number in (0, 1, 2):
        os.dup2(devnull, number)
    for i, variant in enumerate(plan["variants"]):
        for path, text in variant["files"].items():
            with open(f"{COPY}/{path}", "w", encoding="utf-8", newline="") as file:
                file.write(text)
            os.utime(f"{COPY}/{path}", (1_000_000_000 + 2 * i, 1_000_000_000 + 2 * i))
        for one in plan.get("functions") or [plan]:
            data = json.dumps({"word": word, "id": variant["id"], "function": one["function"], **in_a_child({**plan, **one})}).encode() + b"\n"
            while data:
                data = data[os.write(descriptor, data) :]
    os.close(descriptor)
    os._exit(0)


main()
