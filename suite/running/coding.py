"""A scorer's own way with a task: `solve` in one sandbox that reaches the model, then, after that is gone, `score` in another that reaches nothing."""

from __future__ import annotations

import asyncio
import json
import os
import secrets
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from suite.grading.contract import Options, Output
from suite.grading.outcomes import Grade, scored, undecided
from suite.running.asking import Said
from suite.running.lines import Item
from suite.running.proxy import Pass, Proxy
from suite.sandbox import box
from wire.errors import CallerError

RUNNER = "/opt/kit/run_task.py"
BOXES = max(2, 2 * (os.cpu_count() or 1))


class Coding:
    """What runs the code of one impl."""

    def __init__(self, code: str, proxy: Proxy | None, limits: box.Limits) -> None:
        self.code, self.proxy, self.limits = code, proxy, limits
        self.places = asyncio.Semaphore(BOXES)

    async def solve(self, item: Item, granted: Pass) -> Said:
        """Lets the scorer ask the model. What fails on the way to the model is infrastructure; what the scorer itself does wrong is told as such."""
        assert self.proxy is not None
        files = {"task_impl.py": self.code.encode("utf-8", "surrogatepass"), "tasks.jsonl": line_of(item, None)}
        async with self.places, self.proxy.passing(granted) as key:
            env = {"BW_MODEL_PROXY_URL": "http://127.0.0.1:8080", "BW_MODEL_MODEL": granted.model, "BW_MODEL_PROXY_KEY": key}
            found, ended = await run_stage("solve", files, self.limits, env, self.proxy)
        results = granted.results
        costs = [r.cost_pusd for r in results]
        said = Said(
            Output(str(found.get("output", ""))),
            finish_reason=granted.finish,
            is_truncated=granted.finish == "length",
            is_refused=granted.finish == "content_filter",
            seconds=ended.wall_s,
            input_tokens=sum(r.usage.input for r in results),
            output_tokens=sum(r.usage.output for r in results),
            reasoning_tokens=sum(r.usage.reasoning for r in results),
            cost_pusd=None if None in costs else sum(cost or 0 for cost in costs),
            calls=tuple(dict.fromkeys([r.call for r in results if r.tries])),
        )
        if found.get("ok"):
            return said
        # A model that could not be reached is the first cause, whatever the scorer made of it.
        if granted.errors and not any(r.status in ("ok", "truncated") for r in results):
            return replace_error(said, granted.errors[-1])
        return replace_error(said, CallerError("scorer_failed", f"solve: {found.get('error') or told(ended)}"[:1000], status=500))

    async def extract(self, item: Item) -> tuple[Any, str]:
        """Has the scorer read a row. Shape: what it made of it, and what went wrong, "" for nothing."""
        files = {"task_impl.py": self.code.encode("utf-8", "surrogatepass"), "tasks.jsonl": line_of(item, item.expected)}
        async with self.places:
            found, ended = await run_stage("extract", files, self.limits, {}, None)
        return found.get("row"), "" if found.get("ok") else f"extract: {found.get('error') or told(ended)}"[:1000]

    async def score(self, item: Item, said: Said, options: Options) -> Grade:
        files = {
            "task_impl.py": self.code.encode("utf-8", "surrogatepass"),
            "tasks.jsonl": line_of(item, item.expected),
            "output.json": json.dumps(said.output.text).encode(),
        }
        async with self.places:
            found, ended = await run_stage("score", files, self.limits, {}, None)
        if not found.get("ok"):
            return undecided("scorer_failed", f"score: {found.get('error') or told(ended)}"[:1000], said.output.text[:200])
        grade = scored(found.get("score"), str(found.get("answer", ""))[:500], str(found.get("explanation", "")), options.threshold)
        metadata = found.get("metadata")
        return replace(grade, metadata=metadata) if isinstance(metadata, dict) else grade


def replace_error(said: Said, error: CallerError) -> Said:
    return replace(said, error=error)


def line_of(item: Item, expected: Any) -> bytes:
    """Writes the one row that a stage sees. What is expected is not there while the model is asked."""
    return (json.dumps({"task_id": item.task_id, "input": item.input, "expected": expected}) + "\n").encode()


def told(ended: box.Ended) -> str:
    why = {
        "timeout": "it took too long",
        "memory": "it used too much memory",
        "processes": "it made too many processes",
        "files": "it made too many files",
        "output": "it wrote without end",
    }
    said = ended.stderr.decode(errors="replace").strip()[-300:]
    return f"{why.get(ended.why, f'it ended without a result (exit code {ended.exit_code})')}{': ' + said if said else ''}"


async def run_stage(
    stage: str, files: Mapping[str, bytes], limits: box.Limits, env: Mapping[str, str], proxy: Proxy | None
) -> tuple[dict[str, Any], box.Ended]:
    """Runs one stage and reads its result. What does not carry the word of this very stage is none."""
    word = secrets.token_hex(16)
    sockets = {"/run/proxy.sock": proxy.socket} if proxy is not None else None
    command = [box.PYTHON, "-s", RUNNER, stage]
    ended = await box.run(command, files, limits, env=env, sockets=sockets, stdin=f"{word}\n".encode(), with_results=True)
    for line in ended.results.splitlines():
        try:
            found = json.loads(line)
        except ValueError:
            continue
        if isinstance(found, dict) and found.get("word") == word:
            return found, ended
    return {}, ended
