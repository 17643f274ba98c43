"""Runs: launched, watched, read, done again."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from benchwright.errors import ConnectionFailed, WaitTimeout
from benchwright.objects import Object, given, id_of, wrapped
from benchwright.pages import Page, TaskPage
from benchwright.transport import Each, Transport, filtered, path

OVER = ("ok", "failed", "halted", "deleted")
# Of a rescoring.
GOING_ON = ("queued", "running")
LONG_POLL_S = 30.0
# Connections in a row that bring nothing before a stream is given up.
MOST_SILENT = 5

Run = str | Mapping[str, Any]


class Runs:
    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    def launch(
        self,
        *,
        request: str | None = None,
        benchmark: str | Mapping[str, Any] | None = None,
        subset: str | Mapping[str, Any] | None = None,
        impl: str | Mapping[str, Any] | None = None,
        replay: Mapping[str, Any] | None = None,
        sut: str | Mapping[str, Any] | None = None,
        driver: Any = None,
        phase_models: Mapping[str, Any] | None = None,
        harness: str | None = None,
        compute: str | None = None,
        limits: Mapping[str, Any] | None = None,
        constraints: Mapping[str, Any] | None = None,
        trials: int | None = None,
        hints: Any = None,
        metadata: Mapping[str, Any] | None = None,
        tags: Sequence[str] | None = None,
        source: str | None = None,
        visibility: str | None = None,
        priority: Any = None,
        timeout: float | None = None,
        idempotency_key: str | None = None,
    ) -> Object:
        """Launches a run and gives it as it was queued: a pinned benchmark (with subset and impl), or the replay of a run.

        Shape: `replay` is {"from_run", "only_failed" or "task_ids", "subset_version"}; `sut` a name, or {"model", "provider"}, or {"collection", "mode"}.
        Errors: Unprocessable, NotFound, Gone, Conflict, NotImplementedByServer for a request in words.
        """
        said = {name: value for name, value in locals().items() if name not in ("self", "idempotency_key")}
        body = launch_body(**said)
        found: Object = self._transport.json("POST", path("runs"), body, key=idempotency_key, may_repeat=True)
        return found

    def preview(self, **launch: Any) -> Object:
        """Tells what a launch of these fields would send, to whom, and what it would cost; nothing is launched. Errors: as of launch."""
        found: Object = self._transport.json("POST", "/v1/runs:preview", launch_body(**launch))
        return found

    def get(self, run: Run, expand: Sequence[str] | None = None, fields: Sequence[str] | None = None) -> Object:
        """Gives one run. Errors: NotFound."""
        found: Object = self._transport.json("GET", path("runs", id_of(run)), query={"expand": expand, "fields": fields})
        return found

    def list(
        self,
        filters: Mapping[str, Any] | None = None,
        sort: str | None = "-started_at",
        limit: int = 50,
        page_token: str | None = None,
        expand: Sequence[str] | None = None,
    ) -> Page:
        """Lists runs, newest first; `limit` is how many are fetched at a time. Filters that there are not are refused, {"metadata.<name>": …} is one."""
        return self._transport.page(path("runs"), {**filtered(filters), "sort": sort, "limit": limit, "page_token": page_token, "expand": expand})

    # ---- watching

    def stream(self, run: Run, after_seq: int | None = None) -> Iterator[Object]:
        """Gives a run's events as they happen, and ends with the run. What breaks is taken up where it broke off. Errors: ConnectionFailed, NotFound."""
        name, last, silent = id_of(run), str(after_seq or ""), 0
        while True:
            broke: ConnectionFailed | None = None
            try:
                for event in self._transport.events(path("runs", name, "events"), last):
                    try:
                        told = json.loads(event.data)
                    except ValueError:
                        continue
                    last, silent = event.id or last, 0
                    yield wrapped(told)
            except ConnectionFailed as error:
                broke = error
            if broke is None and self.get(name, fields=["status"]).status in OVER:
                return
            silent += 1
            if silent >= MOST_SILENT:
                raise broke or ConnectionFailed(f"The stream of {name} ended {silent} times before the run did.")
            self._transport.pause(silent - 1, None)

    def events(self, run: Run, after_seq: int | None = None, types: Sequence[str] | None = None, limit: int = 500) -> Page:
        """The same events in pages."""
        where = path("runs", id_of(run), "events")
        query = {"types": types, "limit": limit}
        first: Object = self._transport.json("GET", where, query={**query, "after_seq": after_seq})
        return Page(first, lambda token: self._transport.json("GET", where, query={**query, "after_seq": token}))

    def wait(self, run: Run, timeout: float | None = None, poll_interval: float = 2.0) -> Object:
        """Waits for a run's end and gives it, however it ended.

        Units: seconds. The server holds each look back until the run ends; `poll_interval` is the least between two looks.
        Errors: WaitTimeout, which holds the run as it was then; the run itself goes on.
        """
        name = id_of(run)
        until = None if timeout is None else time.monotonic() + timeout
        while True:
            left = LONG_POLL_S if until is None else max(0.0, min(LONG_POLL_S, until - time.monotonic()))
            asked_at = time.monotonic()
            found: Object = self._transport.json("GET", path("runs", name), query={"wait": f"{left:.2f}"})
            if found.status in OVER:
                return found
            if until is not None and time.monotonic() >= until:
                raise WaitTimeout(f"{name} is {found.status} after {timeout:g} s. It goes on; wait again, or halt it.", found)
            if (pause_s := poll_interval - (time.monotonic() - asked_at)) > 0:
                self._transport.pause(0, pause_s if until is None else max(0.0, min(pause_s, until - time.monotonic())))

    # ---- what came out

    def tasks(
        self,
        run: Run,
        passed: bool | None = None,
        version: int | str | None = None,
        limit: int = 100,
        page_token: str | None = None,
        sort: str | None = None,
        filters: Mapping[str, Any] | None = None,
    ) -> TaskPage:
        """Lists a run's tasks. `summary` is of the whole run; `data` goes through all pages, `limit` rows at a time; `filters` has outcome, kind, task_id."""
        where = path("runs", id_of(run), "tasks")
        query = {**filtered(filters), "passed": passed, "version": version, "limit": limit, "page_token": page_token, "sort": sort}
        first: Object = self._transport.json("GET", where, query=query)
        return TaskPage(first, self._transport.following(where, query), lambda task: self.payload(run, task))

    def payload(self, run: Run, task: str | Mapping[str, Any]) -> Object:
        """Gives one task whole: what was asked, what was expected, each trial's output and grade. Errors: NotFound."""
        found: Object = self._transport.json("GET", path("runs", id_of(run), "tasks", id_of(task), "payload"))
        return found

    def artifacts(self, run: Run, type: str | None = None, include_versions: bool = False, limit: int = 50) -> Page:
        """Lists the files that a run left."""
        query = {"type": type, "include_versions": include_versions or None, "limit": limit}
        return self._transport.page(path("runs", id_of(run), "artifacts"), query)

    def artifact(self, run: Run, artifact: str | Mapping[str, Any]) -> Object:
        """Tells of one file."""
        found: Object = self._transport.json("GET", path("runs", id_of(run), "artifacts", id_of(artifact)))
        return found

    def artifact_content(self, run: Run, artifact: str | Mapping[str, Any]) -> bytes:
        """Gives a file's bytes."""
        return self._transport.raw("GET", path("runs", id_of(run), "artifacts", id_of(artifact), "content")).data

    def report(self, run: Run) -> str:
        """Gives the run's report, one HTML page that needs nothing else."""
        return self._transport.raw("GET", path("runs", id_of(run), "report")).data.decode("utf-8", "replace")

    def fingerprint(self, run: Run) -> Object:
        """Gives one digest of all that the result depends on: runs with equal ones are comparable."""
        found: Object = self._transport.json("GET", path("runs", id_of(run), "fingerprint"))
        return found

    def gate(self, run: Run, require: Sequence[str], confidence: float | None = None, min_coverage: float | None = None) -> Object:
        """Has the server rule whether a run meets thresholds such as "pass_rate=0.90".

        Shape: `verdict` is pass or fail by the figures; with a confidence, given or the team's, inconclusive where an interval holds the threshold.
        Errors: Conflict while the run is under way.
        """
        query = {"require": Each(require), "confidence": confidence, "min_coverage": min_coverage}
        found: Object = self._transport.json("GET", path("runs", id_of(run), "gate"), query=query)
        return found

    def cost(self, run: Run) -> Object:
        """Tells what a run cost, and on what."""
        found: Object = self._transport.json("GET", path("runs", id_of(run), "cost"))
        return found

    def blocked_hosts(self, run: Run) -> Object:
        """Tells which hosts a run was kept from. Errors: NotImplementedByServer."""
        found: Object = self._transport.json("GET", path("runs", id_of(run), "blocked-hosts"))
        return found

    def narrate(self, run: Run, slice: str = "recent", idempotency_key: str | None = None) -> Object:
        """Has what happened told in words. Errors: NotImplementedByServer."""
        found: Object = self._transport.json("POST", path("runs", id_of(run), "narrate"), {"slice": slice}, key=idempotency_key)
        return found

    # ---- changed, stopped, done again

    def fork(
        self,
        run: Run,
        description: str | None = None,
        from_phase: str | None = "atomize",
        *,
        impl: str | Mapping[str, Any] | None = None,
        code: str | None = None,
        grader: Mapping[str, Any] | None = None,
        label: str | None = None,
        idempotency_key: str | None = None,
    ) -> Object:
        """Makes a run like another with another scorer: `impl`, `code` or `grader`; by a description alone the server may not yet.

        Errors: Conflict while the parent is under way; NotImplementedByServer.
        """
        body = given(
            description=description, from_phase=from_phase, impl=None if impl is None else id_of(impl), code=code, grader=grader, label=label
        )  # fmt: skip
        found: Object = self._transport.json("POST", path("runs", id_of(run), "fork"), body, key=idempotency_key, may_repeat=True)
        return found

    def rescore(
        self,
        run: Run,
        *,
        impl: str | Mapping[str, Any] | None = None,
        code: str | None = None,
        grader: Mapping[str, Any] | None = None,
        label: str | None = None,
        wait: bool = True,
        timeout: float | None = None,
        idempotency_key: str | None = None,
    ) -> Object:
        """Grades the stored outputs again, by `impl`, `code` or `grader`, without any call of a model; the old scoring stays readable as an earlier version.

        Shape: `status` is ok, failed or cancelled, with `error`; `changed`, `now_passed`, `now_not` and the first `rows` tell what is another result now.
        What takes its time is waited for unless `wait` is false; then `status` is queued. Units: `timeout` seconds.
        Errors: Conflict while the run is under way or graded again; Unprocessable for a judge; WaitTimeout, which holds the rescoring; that itself goes on.
        """
        body = given(impl=None if impl is None else id_of(impl), code=code, grader=grader, label=label)
        found: Object = self._transport.json("POST", path("runs", id_of(run), "rescore"), body, key=idempotency_key, may_repeat=True, timeout_s=600)
        return self.wait_for_rescoring(run, found, timeout) if wait and found.status in GOING_ON else found

    def rescorings(self, run: Run, limit: int = 50) -> Page:
        """Lists the times that a run's outputs were graded again, newest first."""
        return self._transport.page(path("runs", id_of(run), "rescorings"), {"limit": limit})

    def rescoring(self, run: Run, rescoring: str | Mapping[str, Any]) -> Object:
        """Gives one rescoring. Errors: NotFound."""
        found: Object = self._transport.json("GET", path("runs", id_of(run), "rescorings", id_of(rescoring)))
        return found

    def wait_for_rescoring(self, run: Run, rescoring: str | Mapping[str, Any], timeout: float | None = None) -> Object:
        """Waits for a rescoring's end and gives it, however it ended. Units: seconds. Errors: WaitTimeout, which holds it as it was then."""
        where = path("runs", id_of(run), "rescorings", id_of(rescoring))
        until = None if timeout is None else time.monotonic() + timeout
        while True:
            left = LONG_POLL_S if until is None else max(0.0, min(LONG_POLL_S, until - time.monotonic()))
            found: Object = self._transport.json("GET", where, query={"wait": f"{left:.2f}"})
            if found.status not in GOING_ON:
                return found
            if until is not None and time.monotonic() >= until:
                raise WaitTimeout(f"{found.id} is {found.status} after {timeout:g} s. It goes on; wait again, or call it off.", found)

    def cancel_rescoring(self, run: Run, rescoring: str | Mapping[str, Any]) -> None:
        """Calls a rescoring off; what there was of it goes. Errors: Conflict where it has ended."""
        self._transport.json("DELETE", path("runs", id_of(run), "rescorings", id_of(rescoring)))

    def requeue(self, run: Run, idempotency_key: str | None = None) -> Object:
        """Asks again what failed on the way; what was answered stays. Errors: Conflict where all was answered."""
        found: Object = self._transport.json("POST", path("runs", id_of(run), "requeue"), {}, key=idempotency_key)
        return found

    def halt(self, run: Run, reason: str | None = None, idempotency_key: str | None = None) -> Object:
        """Stops a run; it stays readable. Errors: Conflict where it has ended already."""
        found: Object = self._transport.json("POST", path("runs", id_of(run), "halt"), given(reason=reason), key=idempotency_key)
        return found

    def delete(self, run: Run, if_match: str | None = None) -> None:
        """Destroys a run's data for good; its id, digests and reason stay. Errors: Conflict while it is under way."""
        name = id_of(run)
        self._transport.json("DELETE", path("runs", name), query={"confirm": name}, headers=matching(if_match))

    kill = delete

    def update(
        self,
        run: Run,
        *,
        visibility: str | None = None,
        review_resolution: str | None = None,
        metadata: Mapping[str, Any] | None = None,
        tags: Sequence[str] | None = None,
        override: str | None = None,
        if_match: str | int | None = None,
    ) -> Object:
        """Changes what is said of a run and who sees it; `override` is an admin's reason to publish a benchmark that did not stand its checks.

        Without `if_match` a change of visibility takes the state as it is now: who must not overrule somebody else says the `etag` that they saw.
        Errors: PreconditionFailed where it has changed since.
        """
        name = id_of(run)
        if visibility is not None and if_match is None:
            if_match = self.get(name, fields=["etag"]).etag
        body = given(
            visibility=visibility, review_resolution=review_resolution, metadata=metadata, tags=None if tags is None else list(tags), override=override
        )
        found: Object = self._transport.json("PATCH", path("runs", name), body, headers=matching(if_match))
        return found

    def publish(self, run: Run, visibility: str = "public", override: str | None = None, idempotency_key: str | None = None) -> Object:
        """Shows a run to the team or to everybody; its benchmark follows by itself. Errors: Conflict for a benchmark that does not stand its checks."""
        body = given(visibility=visibility, override=override)
        found: Object = self._transport.json("POST", path("runs", id_of(run), "publish"), body, key=idempotency_key)
        return found


def matching(if_match: str | int | None) -> dict[str, str]:
    """Writes an If-Match header of an etag, as the run's field or the header has it."""
    if if_match is None:
        return {}
    said = str(if_match)
    return {"if-match": said if said == "*" or said.startswith(('"', "W/")) else f'"{said}"'}


def launch_body(*, benchmark: Any = None, subset: Any = None, impl: Any = None, replay: Mapping[str, Any] | None = None, **more: Any) -> dict[str, Any]:
    """Makes the body of a launch: what stands for a thing becomes its id, and what was not said is left out."""
    named = {name: None if thing is None else id_of(thing) for name, thing in (("benchmark", benchmark), ("subset", subset), ("impl", impl))}
    again = None if replay is None else {**replay, **({"from_run": id_of(replay["from_run"])} if replay.get("from_run") else {})}
    return given(**named, replay=again, **{name: list(value) if name == "tags" and value is not None else value for name, value in more.items()})
