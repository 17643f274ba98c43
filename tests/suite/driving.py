"""The suite of a running server, as a client of its API drives it."""

from __future__ import annotations

from typing import Any

from tests.http import Reply
from tests.live import Bench, eventually

OVER = ("ok", "failed", "halted")


class Driver:
    """One caller of the API, by a key with the scopes that it is given; the operator without."""

    def __init__(self, bench: Bench, key: str | None = None) -> None:
        self.bench, self.key = bench, key or bench.live.operator_key

    def send(self, method: str, path: str, body: Any = None, **headers: str) -> Reply:
        return self.bench.live.send(method, f"/v1/{path}", body, key=self.key, headers={name.replace("_", "-"): value for name, value in headers.items()})

    def api(self, method: str, path: str, body: Any = None, status: int | None = None, **headers: str) -> Any:
        """Calls the API and gives the JSON. Errors: AssertionError for a status that is not expected."""
        reply = self.send(method, path, body, **headers)
        assert reply.status == status if status else reply.status < 300, f"{method} {path}: {reply.status} {reply.body[:2000]!r}"
        return reply.json if reply.body else None

    def benchmark(self, name: str = "sums") -> dict[str, Any]:
        found: dict[str, Any] = self.api("POST", "benchmarks", {"name": name}, 201)
        return found

    def subset(self, tasks: list[dict[str, Any]], benchmark: str = "", grader: Any = None, **more: Any) -> dict[str, Any]:
        parent = benchmark or self.benchmark()["id"]
        body = {"slug": more.pop("slug", "all"), "tasks": tasks, "grader": {"kind": "math"} if grader is None else grader, **more}
        found: dict[str, Any] = self.api("POST", f"benchmarks/{parent}/subsets", body, 201)
        return found

    def launch(self, subset: dict[str, Any], sut: Any, **more: Any) -> dict[str, Any]:
        found: dict[str, Any] = self.api("POST", "runs", {"benchmark": subset["benchmark"], "subset": subset["id"], "sut": sut, **more}, 201)
        return found

    def rung(self, job: str, period_s: int) -> None:
        """Has a job done for a time to come, the next that no other test rang for."""
        assert any(job in self.bench.live.order({"ring": period_s * ahead})["done"] for ahead in range(1, 100)), f"{job} was never due"

    def ended(self, run: str, status: str = "ok") -> dict[str, Any]:
        """Waits for a run's end. Errors: AssertionError for another than the one expected."""
        found: dict[str, Any] = eventually(lambda: r if (r := self.api("GET", f"runs/{run}?expand=summary"))["status"] in OVER else None, f"the end of {run}")
        assert found["status"] == status, (found["status"], found["error"], found["halt_reason"])
        return found


def sums(count: int, wrong: int = 0) -> list[dict[str, Any]]:
    """Questions whose answer is 4, but for the first few, where that is wrong."""
    return [{"task_id": f"t{i}", "input": {"question": f"What is 2 + 2? ({i})"}, "expected": {"value": 5 if i < wrong else 4}} for i in range(count)]
