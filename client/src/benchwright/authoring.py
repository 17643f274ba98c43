"""What one makes: benchmarks, subsets, scorers, and corrections of what was built."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from benchwright.objects import Object, given, id_of, wrapped
from benchwright.pages import Page
from benchwright.runs import matching
from benchwright.transport import Transport, path

Named = str | Mapping[str, Any]
Task = Mapping[str, Any]
# What the server takes in one request of JSON; more goes up as NDJSON, which it takes whole or not at all as well.
MOST_TASKS = 1000


class Benchmarks:
    def __init__(self, transport: Transport) -> None:
        self._transport = transport
        self.subsets = Subsets(transport)

    def create(
        self,
        *,
        name: str,
        description: str | None = None,
        category: str | None = None,
        tags: Sequence[str] | None = None,
        parents: Sequence[Named] | None = None,
        idempotency_key: str | None = None,
    ) -> Object:
        """Makes a benchmark, private until one of its runs is shown to others."""
        body = given(
            name=name,
            description=description,
            category=category,
            tags=None if tags is None else list(tags),
            parents=None if parents is None else [id_of(p) for p in parents],
        )
        found: Object = self._transport.json("POST", path("benchmarks"), body, key=idempotency_key, may_repeat=True)
        return found

    def update(self, benchmark: Named, *, idempotency_key: str | None = None, **patch: Any) -> Object:
        """Changes name, description, category, tags or parents. Who sees it follows from its runs."""
        found: Object = self._transport.json("PATCH", path("benchmarks", id_of(benchmark)), patch, key=idempotency_key)
        return found

    def delete(self, benchmark: Named) -> None:
        """Takes a benchmark away that nothing was measured by. Errors: Conflict where runs refer to it."""
        self._transport.json("DELETE", path("benchmarks", id_of(benchmark)))


class Subsets:
    """`benchmarks.subsets`, and as `subsets` of the client."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    def create(
        self,
        *,
        benchmark: Named,
        slug: str,
        name: str | None = None,
        description: str | None = None,
        tasks: Iterable[Task] | None = None,
        rolling: bool = False,
        grader: Mapping[str, Any] | None = None,
        recipe: Mapping[str, Any] | None = None,
        idempotency_key: str | None = None,
    ) -> Object:
        """Makes a subset with at most 1,000 rows; more are appended while it is rolling. Without a grader it is run by an impl. Errors: Unprocessable."""
        body = given(
            slug=slug,
            name=name,
            description=description,
            tasks=None if tasks is None else list(tasks),
            rolling=rolling or None,
            grader=grader,
            recipe=recipe,
        )
        found: Object = self._transport.json("POST", path("benchmarks", id_of(benchmark), "subsets"), body, key=idempotency_key, may_repeat=True)
        return found

    def list(self, benchmark: Named, limit: int = 50) -> Page:
        """Lists a benchmark's subsets, the oldest first."""
        return self._transport.page(path("benchmarks", id_of(benchmark), "subsets"), {"limit": limit})

    def append_tasks(self, subset: Named, tasks: Iterable[Task], idempotency_key: str | None = None) -> Object:
        """Appends rows to a rolling subset, all or none. The same row again is nothing new; another row under its id is refused. Errors: Conflict."""
        rows = list(tasks)
        where = path("subsets", id_of(subset), "tasks")
        if len(rows) <= MOST_TASKS:
            found: Object = self._transport.json("POST", where, {"tasks": rows}, key=idempotency_key, may_repeat=True)
            return found
        lines = "".join(json.dumps(row, ensure_ascii=True) + "\n" for row in rows).encode()
        headers = {"content-type": "application/x-ndjson"}
        answer = self._transport.raw("POST", where, content=lines, headers=headers, key=idempotency_key, may_repeat=True, timeout_s=600)
        read: Object = wrapped(json.loads(answer.data))
        return read

    def update(self, subset: Named, *, idempotency_key: str | None = None, **patch: Any) -> Object:
        """Changes name or description, or freezes a rolling one for good: rolling=False."""
        found: Object = self._transport.json("PATCH", path("subsets", id_of(subset)), patch, key=idempotency_key)
        return found

    def delete(self, subset: Named) -> None:
        """Errors: Conflict where runs refer to it."""
        self._transport.json("DELETE", path("subsets", id_of(subset)))

    def distill(
        self,
        *,
        runs: Sequence[Named] | None = None,
        sweep: Named | None = None,
        rule: str = "failed_by_all",
        dry_run: bool = False,
        idempotency_key: str | None = None,
        **fields: Any,
    ) -> Object:
        """Makes a subset of the tasks that runs, or a sweep's, failed: failed_by_all, k_of_n (with k), discriminating. With `dry_run` it only counts them.

        Shape: the fields of POST /v1/subsets:distill; of a dry run `taken`, `looked_at`, `per_source`, `task_ids` (the first 20).
        """
        named = {name: id_of(value) if name == "benchmark" else value for name, value in fields.items() if value is not None}
        sources = {"runs": None if runs is None else [id_of(run) for run in runs], "sweep": None if sweep is None else id_of(sweep)}
        body = {name: value for name, value in sources.items() if value is not None} | {"rule": rule, **named}
        query = {"dry_run": dry_run or None}
        found: Object = self._transport.json("POST", "/v1/subsets:distill", body, query=query, key=idempotency_key, may_repeat=True)
        return found

    def from_verdict(self, call: Named, idempotency_key: str | None = None) -> Object:
        """Keeps the claims that one judged in an answer as private tasks, by the answer's call. The same again is nothing new."""
        found: Object = self._transport.json("POST", "/v1/subsets:from-verdict", {"call": id_of(call)}, key=idempotency_key, may_repeat=True)
        return found


class Packs:
    """Review tasks that come with the server."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    def list(self) -> Page:
        return self._transport.page(path("packs"), {})

    def load(self, pack: str, passes: bool | None = None, idempotency_key: str | None = None) -> Object:
        """Loads one; with `passes` onboarding in full and the weekly schedule run it, or no longer do."""
        body = given(passes=passes)
        found: Object = self._transport.json("POST", path("packs", pack, "load"), body, key=idempotency_key, may_repeat=True, timeout_s=600)
        return found


class Impls:
    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    def create(
        self,
        *,
        code: str,
        benchmark: Named | None = None,
        subset: Named | None = None,
        label: str | None = None,
        language: str = "python",
        description: str | None = None,
        hidden: bool = False,
        idempotency_key: str | None = None,
    ) -> Object:
        """Keeps a scorer: the same bytes are the same impl. Errors: Unprocessable for code that is no scorer, with the line."""
        body = given(
            benchmark=None if benchmark is None else id_of(benchmark),
            subset=None if subset is None else id_of(subset),
            label=label,
            language=language,
            code=code,
            description=description,
            hidden=hidden or None,
        )
        found: Object = self._transport.json("POST", path("impls"), body, key=idempotency_key, may_repeat=True)
        return found

    def create_from_run(
        self,
        *,
        from_run: Named,
        benchmark: Named | None = None,
        subset: Named | None = None,
        label: str | None = None,
        description: str | None = None,
        idempotency_key: str | None = None,
    ) -> Object:
        """Keeps the scorer of a run for another subset. Errors: Conflict for one by an external harness."""
        body = given(
            from_run=id_of(from_run),
            benchmark=None if benchmark is None else id_of(benchmark),
            subset=None if subset is None else id_of(subset),
            label=label,
            description=description,
        )
        found: Object = self._transport.json("POST", "/v1/impls:from-run", body, key=idempotency_key, may_repeat=True)
        return found

    def list(self, subset: Named, limit: int = 50) -> Page:
        """Lists a subset's scorers."""
        return self._transport.page(path("impls"), {"subset": id_of(subset), "limit": limit})

    def get(self, impl: Named) -> Object:
        found: Object = self._transport.json("GET", path("impls", id_of(impl)))
        return found

    def code(self, impl: Named) -> str:
        """Gives a scorer's code as text. Errors: NotFound."""
        return self._transport.raw("GET", path("impls", id_of(impl), "code")).data.decode("utf-8", "surrogatepass")

    def runs(self, impl: Named, limit: int = 50) -> Page:
        return self._transport.page(path("impls", id_of(impl), "runs"), {"limit": limit})

    def dry_run(self, impl: Named, *, idempotency_key: str | None = None, **fields: Any) -> Object:
        """Tries a scorer on up to three rows in the sandbox, by a right answer and an empty one, without any call of a model."""
        found: Object = self._transport.json("POST", path("impls", id_of(impl), "dry-run"), fields, key=idempotency_key, timeout_s=600)
        return found

    def update(self, impl: Named, *, idempotency_key: str | None = None, **patch: Any) -> Object:
        """Changes label, description or hidden; never the code."""
        found: Object = self._transport.json("PATCH", path("impls", id_of(impl)), patch, key=idempotency_key)
        return found

    def delete(self, impl: Named) -> None:
        """Errors: Conflict where it graded runs."""
        self._transport.json("DELETE", path("impls", id_of(impl)))


class Built:
    """Corrections of a benchmark of one's own; old runs keep the scorer and the rows that they had."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    def recipe(self, slug: str) -> Object:
        found: Object = self._transport.json("GET", path("build", "subsets", slug, "recipe"))
        return found

    def set_recipe(self, slug: str, config: Mapping[str, Any], note: str, if_match: str | int | None = None) -> Object:
        """Changes the recipe; the next run has another impl. Errors: Unprocessable without a note, PreconditionFailed."""
        body = {"config": dict(config), "note": note}
        found: Object = self._transport.json("PATCH", path("build", "subsets", slug, "recipe"), body, headers=matching(if_match))
        return found

    def samples(self, slug: str, limit: int = 100) -> Page:
        return self._transport.page(path("build", "subsets", slug, "samples"), {"limit": limit})

    def set_samples(
        self, slug: str, note: str, upsert: Iterable[Task] = (), remove: Sequence[str] = (), if_match: str | int | None = None
    ) -> Object:  # fmt: skip
        """Changes rows: that makes a new subset, and the old one retires."""
        body = given(note=note, upsert=list(upsert) or None, remove=list(remove) or None)
        found: Object = self._transport.json("PATCH", path("build", "subsets", slug, "samples"), body, headers=matching(if_match))
        return found
