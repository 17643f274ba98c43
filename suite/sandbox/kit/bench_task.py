"""The contract of a scorer: one class `Task(BenchTask)` with three methods. Goes into the sandbox, where `from bench_task import BenchTask` finds it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any


class BenchTask:
    """Shape: `path` is a file with one task a line, as JSON. A model is asked at BW_MODEL_PROXY_URL, by the name in BW_MODEL_MODEL, with BW_MODEL_PROXY_KEY."""

    def extract(self, path: str, index: int) -> dict[str, Any]:
        """Gives one task: {"task_id", "input", "expected"}."""
        raise NotImplementedError

    def solve(self, index: int, input: Any) -> Any:
        """Asks the model and gives its answer."""
        raise NotImplementedError

    def score(self, index: int, output: Any, expected: Any) -> Any:
        """Gives a number from 0 to 1, or {"value", "answer", "explanation", "metadata"}."""
        raise NotImplementedError

    def extract_all(self, path: str) -> Iterator[dict[str, Any]]:
        """Gives every task in order, reading the file once."""
        with open(path, encoding="utf-8") as lines:
            for line in lines:
                row = json.loads(line)
                yield {name: row.get(name) for name in ("task_id", "input", "expected")}
