"""A program against its tests, in two sandboxes: the program in one, the tests in another that calls it over a line. Neither reaches anything else.

The tests are not where the program is, so it can neither read nor change them, and what it gives back is data: exit codes, printed words, patched
built-ins, operators of its own and results that it writes decide nothing. See suite/sandbox/kit/run_tests.py.
"""

from __future__ import annotations

import asyncio
import json
import secrets
import socket
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from suite.grading.contract import Program
from suite.grading.outcomes import Grade, Outcome, right, undecided
from suite.sandbox import box

TIMEOUT_S, MEMORY_MB = 30.0, 512
# What a sandbox takes to start and to end, besides the tests' own time.
AROUND_S = 15.0
TRIES = 2


def limits_of(grader: Mapping[str, Any], caps: Mapping[str, int]) -> box.Limits:
    """Gives a program's limits: the grader's, below what the backend allows."""
    timeout_s = float(grader.get("timeout") or TIMEOUT_S)
    memory_mb = min(int(grader.get("memory_mb") or MEMORY_MB), caps.get("memory_mb", 8192))
    return box.Limits(wall_s=timeout_s + AROUND_S, cpu_s=int(timeout_s) + 2, **{**caps, "memory_mb": memory_mb})


async def tested(program: Program, grader: Mapping[str, Any], caps: Mapping[str, int]) -> Grade:
    """Runs the tests and gives the grade. A sandbox that fails to start is tried once more, then is what failed, not the program."""
    grade = undecided("sandbox_failed", "")
    for _ in range(TRIES):
        try:
            grade = await once(program, limits_of(grader, caps))
        except (box.SandboxUnavailable, OSError) as error:
            grade = Grade(Outcome.INFRASTRUCTURE, None, reason="sandbox_failed", explanation=f"{type(error).__name__}: {str(error)[:300]}")
        if grade.outcome is not Outcome.INFRASTRUCTURE:
            break
    return grade


async def once(program: Program, limits: box.Limits) -> Grade:
    tests, candidate = socket.socketpair()
    word = secrets.token_hex(16)
    said = json.dumps({"tests": program.tests, "entry_point": program.entry_point}).encode()
    within = {"BENCH_LINE": str(tests.fileno()), "BENCH_WITHIN_S": str(limits.wall_s - AROUND_S)}
    ends = (tests.detach(), candidate.detach())
    of_program = asyncio.create_task(
        box.run(
            [box.PYTHON, "-s", "/opt/kit/run_candidate.py"],
            {"candidate.py": program.code.encode("utf-8", "surrogatepass")},
            limits,
            env={"BENCH_LINE": str(ends[1])},
            given_fds=(ends[1],),
        )
    )
    try:
        of_tests = await box.run(
            [box.PYTHON, "-s", "/opt/kit/run_tests.py"],
            {"program.json": said},
            replace(limits, memory_mb=max(limits.memory_mb, MEMORY_MB)),
            env=within,
            given_fds=(ends[0],),
            stdin=f"{word}\n".encode(),
            with_results=True,
        )
        found = last_of(of_tests.results, word)
        # Its line is cut, so it ends by itself, unless it is busy with something else; then it is not waited for.
        done, _ = await asyncio.wait({of_program}, timeout=0 if found.get("outcome") == "late" else 1.0)
        ended = of_program.result() if done else None
    finally:
        if not of_program.done():
            of_program.cancel()
        await asyncio.gather(of_program, return_exceptions=True)
    return verdict(program, found, of_tests, ended)


def last_of(results: bytes, word: str) -> dict[str, Any]:
    """Reads the last line that carries the word."""
    found: dict[str, Any] = {}
    for line in results.splitlines():
        try:
            value = json.loads(line)
        except (ValueError, RecursionError):
            continue
        if isinstance(value, dict) and value.get("word") == word:
            found = value
    return found


def verdict(program: Program, found: Mapping[str, Any], of_tests: box.Ended, ended: box.Ended | None) -> Grade:
    """Says what it amounts to.

    passed      the tests ran to their end, asked the program something, and none failed
    failed      they did not hold, or the program was not there any more
    limit       the program broke a limit of its sandbox, or did not answer in time
    """
    answer = program.code[:500]
    if not found.get("hello"):
        return Grade(Outcome.INFRASTRUCTURE, None, answer, "sandbox_failed", f"The sandbox did not start: {said_by(of_tests) or said_by(ended)}"[:500])
    outcome, told = str(found.get("outcome", "")), str(found.get("explanation", ""))
    why = ended.why if ended is not None else ""
    if outcome == "passed":
        if not found.get("asked"):
            return undecided("tests_ask_nothing", "The tests ended without asking the program anything.", answer)
        return right(True, answer)
    if outcome == "late" or why == "timeout":
        return limit(answer, "timeout", f"The program did not answer in time{f' ({told})' if told else ''}.")
    if why:
        return limit(answer, why, f"The program broke its limit of {why}.")
    if not outcome:  # the tests began, and their process is gone: what they were given back did that, or they themselves
        return (
            limit(answer, of_tests.why, f"The tests broke off at their limit of {of_tests.why}.")
            if of_tests.why
            else right(False, answer, "The tests broke off.")
        )
    words = {"unloaded": "The program cannot be loaded", "gone": "The program ended before its tests did", "failed": "Its tests do not hold"}
    return right(False, answer, f"{words.get(outcome, outcome)}: {told}"[:500])


def limit(answer: str, name: str, told: str) -> Grade:
    return Grade(Outcome.LIMIT, 0.0, answer, f"limit_exceeded:code.{name}", told)


def said_by(ended: box.Ended | None) -> str:
    return "" if ended is None else ended.stderr.decode(errors="replace").strip()[-300:]
