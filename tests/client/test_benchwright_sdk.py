"""The SDK against the running server: each call that a program makes, and what comes back."""

from __future__ import annotations

import hashlib
import textwrap
from collections.abc import Iterator
from typing import Any

import benchwright
import pytest
from benchwright import Benchwright

from suite.sandbox import box
from tests.fake import reply
from tests.live import Bench
from tests.suite.driving import sums
from tests.suite.test_scorers import one_method

ANSWER = reply("ANSWER: 4", usage=(20, 8))


@pytest.fixture
def bw(bench: Bench) -> Iterator[Benchwright]:
    with Benchwright(api_key=bench.live.operator_key, base_url=bench.live.url) as client:
        yield client


def made(bw: Benchwright, tag: str, count: int = 4, wrong: int = 1, **more: Any) -> tuple[Any, Any]:
    bm = bw.benchmarks.create(name=f"{tag} sums", category=tag, tags=["math", tag])
    return bm, bw.benchmarks.subsets.create(benchmark=bm, slug="small", tasks=sums(count, wrong), grader={"kind": "math"}, **more)


def run_of(bw: Benchwright, bench: Bench, count: int = 4, wrong: int = 1, **more: Any) -> Any:
    """A run that has ended."""
    model = bench.model("calm", ANSWER, facts={"input_usd_per_mtok": "1", "output_usd_per_mtok": "2"})
    bench.load()
    bm, sub = made(bw, bench.tag, count, wrong)
    return bw.runs.wait(bw.runs.launch(benchmark=bm.id, subset=sub.id, sut=model, **more).id)


def test_a_run_is_launched_watched_and_read(bench: Bench, bw: Benchwright) -> None:
    model = bench.model("calm", ANSWER, facts={"input_usd_per_mtok": "1", "output_usd_per_mtok": "2"})
    bench.load()
    bm, sub = made(bw, bench.tag)
    run = bw.runs.launch(benchmark=bm.id, subset=sub.id, sut=model, limits={"run": {"cost": 5.0}}, metadata={"sweep": "x"}, tags=["nightly"])
    assert run.id.startswith("run_")
    seen = list(bw.runs.stream(run.id))
    assert [e.seq for e in seen] == list(range(1, len(seen) + 1))
    assert [e.data.phase for e in seen if e.type == "PhaseStarted"][:1] == ["Materialize"]
    results = [e for e in seen if e.type == "MaterializeTaskResult"]
    assert sorted((e.data.task_id, e.data.score) for e in results) == [("t0", 0.0), ("t1", 1.0), ("t2", 1.0), ("t3", 1.0)]
    assert seen[-1].type == "RunFinished"
    assert [e.seq for e in bw.runs.stream(run.id, after_seq=3)] == [e.seq for e in seen if e.seq > 3]
    assert [e.seq for e in bw.runs.events(run.id, limit=2)] == [e.seq for e in seen]
    assert {e.type for e in bw.runs.events(run.id, types=["RunFinished", "RunQueued"])} == {"RunFinished", "RunQueued"}
    run = bw.runs.get(run.id, expand=["summary", "subset"])
    assert (run.status, run.model.identifier, run.metadata.sweep, run.subset.id) == ("ok", model, "x", sub.id)
    assert run.cost.billed.amount_cents == 0
    assert run.summary.pass_rate == 0.75
    assert set(bw.runs.get(run.id, fields=["status"])) == {"object", "id", "status"}
    with pytest.raises(benchwright.Unprocessable) as refused:
        bw.runs.get(run.id, expand=["nonsense"])
    assert refused.value.code == "unknown_expand"
    assert [r.id for r in bw.runs.list(filters={"metadata.sweep": "x", "tag": "nightly", "benchmark": bm.id})] == [run.id]
    with pytest.raises(benchwright.Unprocessable) as refused:
        bw.runs.list(filters={"colour": "red"})
    assert refused.value.code == "unknown_filter"


def test_tasks_are_paged_by_themselves_and_read_whole(bench: Bench, bw: Benchwright) -> None:
    run = run_of(bw, bench, count=7, wrong=2)
    tasks = bw.runs.tasks(run.id, limit=3)
    assert (tasks.summary.total, tasks.summary.passed, tasks.summary.failed) == (7, 5, 2)
    assert [t.task_id for t in tasks.data] == [f"t{i}" for i in range(7)]
    assert (len(tasks.page), tasks.has_more) == (3, True)
    failed = bw.runs.tasks(run.id, passed=False)
    assert failed.summary == tasks.summary
    assert [t.task_id for t in failed.data[:5]] == ["t0", "t1"]
    whole = failed.payload(failed.data[0].id)
    assert (whole.input.question, whole.expected["value"], whole.output[:120]) == ("What is 2 + 2? (0)", 5, "ANSWER: 4")
    assert failed.payload(failed.data[0]).id == whole.id
    assert [t.score for t in bw.runs.tasks(run, sort="-score")] == [1.0] * 5 + [0.0] * 2


def test_a_run_is_replayed_forked_graded_again_and_shown(bench: Bench, bw: Benchwright) -> None:
    run = run_of(bw, bench)
    again = bw.runs.wait(bw.runs.launch(replay={"from_run": run}))
    assert (again.derived_from, again.impl.id, again.scope) == (run.id, run.impl.id, "full")
    some = bw.runs.wait(bw.runs.launch(replay={"from_run": run.id, "only_failed": True}))
    assert (some.scope, some.progress.total) == ("failed", 1)
    forked = bw.runs.wait(bw.runs.fork(run.id, "whatever is 5", grader={"kind": "math", "tolerance": 0.5}, idempotency_key=f"fork-{run.id}"))
    assert forked.impl.id != run.impl.id
    assert forked.derived_from == run.id
    assert bw.runs.fork(run.id, "whatever is 5", grader={"kind": "math", "tolerance": 0.5}, idempotency_key=f"fork-{run.id}").id == forked.id
    with pytest.raises(benchwright.Unprocessable) as refused:
        bw.runs.fork(run.id, "something else", grader={"kind": "math"}, idempotency_key=f"fork-{run.id}")
    assert refused.value.code == "idempotency_key_reused"
    assert bw.runs.fingerprint(run).fingerprint == bw.runs.fingerprint(again).fingerprint != bw.runs.fingerprint(forked).fingerprint
    compared = bw.compare([run, again])
    assert [r.id for r in compared.runs] == [run.id, again.id]
    assert compared.pairs[0].verdict == "inconclusive"
    found = bw.runs.rescore(again, grader={"kind": "math", "tolerance": 0.5}, idempotency_key=f"again-{again.id}")
    assert (found.object, found.status, found.version, found.now_passed) == ("rescoring", "ok", 2, 1)
    assert bw.runs.rescore(again, grader={"kind": "math", "tolerance": 0.5}, idempotency_key=f"again-{again.id}").id == found.id
    assert [one.id for one in bw.runs.rescorings(again)] == [bw.runs.rescoring(again, found).id]
    with pytest.raises(benchwright.Conflict) as late:
        bw.runs.cancel_rescoring(again, found)
    assert late.value.code == "rescoring_over"
    assert (bw.runs.tasks(again).summary.version, bw.runs.tasks(again, version=1).summary.version) == (2, 1)
    with pytest.raises(benchwright.Conflict):
        bw.runs.requeue(run)
    shown = bw.runs.update(run.id, visibility="public", review_resolution="accepted", metadata={"pr": 7})
    assert (shown.visibility, shown.review_resolution, shown.metadata.pr) == ("public", "accepted", 7)
    assert bw.registry.benchmarks.get(run.benchmark_id).visibility == "public"
    with pytest.raises(benchwright.PreconditionFailed) as stale:
        bw.runs.update(run.id, visibility="private", if_match=run.etag)
    assert stale.value.status == 412
    assert bw.runs.publish(run.id, visibility="team").visibility == "team"


@pytest.mark.skipif(bool(box.trouble()), reason=f"no sandbox here: {box.trouble()}")
def test_a_scorer_as_code_grades_what_is_stored_and_is_waited_for(bench: Bench, bw: Benchwright) -> None:
    run = run_of(bw, bench)
    queued = bw.runs.rescore(run, code=one_method(score="import time; time.sleep(30); return 1.0"), wait=False)
    assert queued.status == "queued"
    with pytest.raises(benchwright.WaitTimeout) as late:
        bw.runs.wait_for_rescoring(run, queued, timeout=0.2)
    assert late.value.run.id == queued.id
    bw.runs.cancel_rescoring(run, queued)
    assert bw.runs.wait_for_rescoring(run, queued).status == "cancelled"
    found = bw.runs.rescore(run, code=one_method(score="return 0.5"), label="half")
    assert (found.status, found.done, found.now_passed) == ("ok", found.tasks, 0)
    assert {task.score for task in bw.runs.tasks(run).data} == {0.5}


def test_a_run_is_stopped_and_destroyed(bench: Bench, bw: Benchwright) -> None:
    run = run_of(bw, bench)
    with pytest.raises(benchwright.Conflict) as over:
        bw.runs.halt(run.id, reason="enough")
    assert over.value.code == "run_over"
    bw.runs.kill(run.id)
    left = bw.runs.get(run.id)
    assert (left.status, left.fingerprint) == ("deleted", run.fingerprint)
    assert run.id not in [r.id for r in bw.runs.list(filters={"benchmark": run.benchmark_id})]
    assert bw.runs.wait(run.id).status == "deleted"


def test_benchmarks_are_made_found_and_changed(bench: Bench, bw: Benchwright) -> None:
    bm, sub = made(bw, bench.tag, rolling=True)
    assert (bm.id[:3], bm.visibility, sub.id[:4]) == ("bm_", "private", "sub_")
    assert bw.registry.benchmarks.find(name=bm.name).id == bm.id
    with pytest.raises(benchwright.NotFound):
        bw.registry.benchmarks.find(name=f"{bm.name}?")
    assert [b.id for b in bw.registry.benchmarks.list(tag=bench.tag)] == [bm.id]
    assert [b.id for b in bw.registry.benchmarks.list(q=bench.tag)] == [bm.id]
    assert [s.id for s in bw.registry.benchmarks.get(bm.id, expand="subsets").subsets] == [sub.id]
    assert bw.benchmarks.update(bm.id, description="New.", idempotency_key="x").description == "New."
    with pytest.raises(benchwright.Unprocessable) as refused:
        bw.benchmarks.update(bm.id, visibility="public")
    assert refused.value.errors[0].pointer == "/visibility"
    assert bw.benchmarks.subsets.append_tasks(sub.id, sums(5, 1), idempotency_key="day-1").added == 1
    assert [s.id for s in bw.subsets.list(bm)] == [sub.id]
    assert bw.registry.subsets.get(sub.id).rolling is True
    with pytest.raises(benchwright.Conflict) as frozen:
        bw.subsets.append_tasks(bw.subsets.update(sub, rolling=False), sums(9))
    assert frozen.value.code == "subset_frozen"
    bw.subsets.delete(sub)
    bw.benchmarks.delete(bm)
    with pytest.raises(benchwright.NotFound):
        bw.registry.benchmarks.get(bm)


def test_many_rows_go_up_in_one_stream(bench: Bench, bw: Benchwright) -> None:
    bm = bw.benchmarks.create(name=f"{bench.tag} many")
    with pytest.raises(benchwright.Unprocessable) as refused:
        bw.subsets.create(benchmark=bm, slug="all", tasks=sums(1001), grader={"kind": "math"})
    assert (refused.value.code, refused.value.body["max"]) == ("too_many_tasks", 1000)
    sub = bw.subsets.create(benchmark=bm, slug="all", rolling=True, grader={"kind": "math"})
    assert bw.subsets.append_tasks(sub, sums(1500)).added == 1500
    again = bw.subsets.append_tasks(sub, sums(1501))
    assert (again.added, again.unchanged, again.tasks) == (1, 1500, 1501)
    assert [v.version for v in bw.registry.subsets.versions(sub)] == [2, 1]
    assert [d.task_id for d in bw.registry.subsets.diff(sub).data] == ["t1500"]


def test_boards_runs_and_what_is_covered_are_read(bench: Bench, bw: Benchwright) -> None:
    run = run_of(bw, bench)
    (board,) = bw.registry.subsets.leaderboard(run.subset_id)
    assert board.rows[0].run == run.id
    assert [r.id for r in bw.registry.subsets.runs(run.subset_id)] == [run.id]
    assert run.id in [r.id for r in bw.registry.impls.runs(run.impl.id)]
    covered = bw.registry.benchmarks.coverage(run.benchmark_id, "0-3")
    assert ([r.run for r in covered.data], covered.uncovered) == ([run.id], [])
    assert isinstance(list(bw.registry.self_checks()), list)
    with pytest.raises(benchwright.NotFound):
        bw.registry.impls.code(run.impl.id)


def test_a_run_leaves_files_a_report_and_a_bill(bench: Bench, bw: Benchwright) -> None:
    run = run_of(bw, bench)
    files = list(bw.runs.artifacts(run))
    assert {"dataset", "report"} <= {file.type for file in files}
    (dataset,) = bw.runs.artifacts(run, type="dataset")
    assert bw.runs.artifact(run, dataset).digest == dataset.digest
    data = bw.runs.artifact_content(run, dataset.id)
    assert hashlib.sha256(data).hexdigest() == dataset.digest.removeprefix("sha256:")
    assert len(data) == dataset.size
    report = bw.runs.report(run.id)
    assert report.lstrip().lower().startswith("<!doctype html>")
    assert run.id in report
    assert bw.runs.cost(run).run == run.id
    with pytest.raises(benchwright.NotFound):
        bw.runs.artifact_content(run, "art_01M8PHCT10QCRDCHSMGPT39BFZ")


def test_the_server_rules_on_a_gate(bench: Bench, bw: Benchwright) -> None:
    run = run_of(bw, bench, count=10, wrong=2)
    plain = bw.runs.gate(run, ["pass_rate=0.8", "coverage=1"])
    assert (plain.verdict, [r.verdict for r in plain.rulings]) == ("pass", ["pass", "pass"])
    assert bw.runs.gate(run, ["pass_rate=0.8"], confidence=0.95).verdict == "inconclusive"
    assert bw.runs.gate(run, ["pass_rate=0.9", "coverage=1"]).verdict == "fail"


def test_who_one_is_and_what_the_team_set(bench: Bench, bw: Benchwright) -> None:
    assert "admin" in bw.me().scopes
    assert {"token", "database", "sandbox"} <= {check.name for check in bw.doctor().checks}
    assert "default_gate_confidence" in bw.settings.schema().properties
    key = next(one.key for one in bw.settings.list().data if one.key == "default_trials")
    assert bw.settings.set(key, 3).value == 3
    assert bw.settings.get(key).is_set is True
    bw.settings.delete(key)
    assert bw.settings.get(key).value == 1
    with pytest.raises(benchwright.Unprocessable) as unknown:
        bw.settings.set("colour", "red")
    assert unknown.value.code == "unknown_setting"
    assert "local-bwrap" in [b.name for b in bw.backends().data]
    assert "benchwright" in [h.name for h in bw.harnesses().data]


def test_the_budget_is_read_granted_and_put_out(bench: Bench) -> None:
    key = bench.key(owner=f"{bench.tag}-kim", scopes=["admin"])
    with Benchwright(api_key=key, base_url=bench.live.url) as bw:
        assert bw.billing.balance.get().object == "balance"
        granted = bw.billing.topups.create(2500, note="June", idempotency_key="june")
        assert bw.billing.topups.create(2500, note="June", idempotency_key="june").id == granted.id
        assert bw.was_replayed
        assert (granted.id[:4], granted.status, granted.amount.amount_cents) == ("top_", "completed", 2500)
        assert bw.billing.topups.get(granted.id).id == granted.id
        assert bw.billing.balance.get().balance.amount_cents == 2500
        run = run_of(bw, bench)
        assert bw.billing.controls.update(monthly_cap_cents=10_000, alert_enabled=True, alert_at_cap_pct=80).monthly_cap_cents == 10_000
        debits = bw.billing.transactions.list(filters={"kind": "trace_debit"}, limit=200)
        assert [d.reference_id for d in debits] == [run.id]
        assert {t.kind for t in bw.billing.transactions.list()} == {"trace_debit", "grant"}
        with pytest.raises(benchwright.Unprocessable):
            bw.billing.transactions.list(filters={"kind": "nonsense"})
        assert len(bw.billing.usage_trend(days=7).data) == 7
        header, *lines = bw.billing.export(type="transactions").decode("utf-8-sig").splitlines()
        assert header.startswith("id,kind,created_at")
        assert len(lines) == 2
        assert run.id in bw.billing.export(type="runs").decode()


CODE = textwrap.dedent("""
    import json
    from bench_task import BenchTask

    class Task(BenchTask):
        def extract(self, path, index):
            return json.loads(open(path).readlines()[index])
        def solve(self, index, input):
            return "4"
        def score(self, index, output, expected):
            return 1.0 if output == str(expected["value"]) else 0.0
""").strip()


@pytest.mark.skipif(bool(box.trouble()), reason=f"no sandbox here: {box.trouble()}")
def test_a_scorer_is_kept_read_back_and_taken_over(bench: Bench, bw: Benchwright) -> None:
    code = f"# {bench.tag}\n{CODE}"
    model = bench.model("calm", ANSWER)
    bench.load()
    bm, sub = made(bw, bench.tag)
    impl = bw.impls.create(benchmark=bm.id, subset=sub.id, label="strict", code=code, description="Compares texts.")
    assert bw.impls.create(subset=sub.id, label="the same", code=code).id == impl.id
    assert bw.registry.impls.code(impl.id) == bw.impls.code(impl) == code
    assert bw.impls.update(impl, label="stricter").label == "stricter"
    with pytest.raises(benchwright.Unprocessable) as refused:
        bw.impls.create(subset=sub.id, label="x", code="def x(:")
    assert (refused.value.code, refused.value.body["line"]) == ("invalid_impl", 1)
    run = bw.runs.wait(bw.runs.launch(benchmark=bm, subset=sub, impl=impl, sut=model))
    assert bw.runs.tasks(run).summary.pass_rate == 0.75
    other = bw.subsets.create(benchmark=bm, slug="other", tasks=sums(2))
    assert bw.impls.create_from_run(from_run=run, benchmark=bm, subset=other, label="inherited").id == impl.id
    with pytest.raises(benchwright.Conflict):
        bw.impls.delete(impl)


def test_refusals_have_their_types(bench: Bench, bw: Benchwright) -> None:
    nobody = Benchwright(api_key="bw_live_pat_nothing", base_url=bench.live.url)
    with pytest.raises(benchwright.AuthenticationError):
        nobody.runs.list()
    reader = Benchwright(api_key=bench.key(owner="somebody", scopes=["runs:read"]), base_url=bench.live.url)
    with pytest.raises(benchwright.PermissionDenied) as refused:
        reader.benchmarks.create(name="x")
    assert refused.value.required_scope == "registry:publish"
    assert "runs:read" in refused.value.granted
    run = run_of(bw, bench)
    with pytest.raises(benchwright.NotFound):
        reader.runs.get(run.id)
    with pytest.raises(benchwright.ConnectionFailed, match="BW_BASE_URL"):
        Benchwright(base_url="http://127.0.0.1:1", retries=0).runs.list()
    for body in ({"request": "Run MMLU", "benchmark": run.benchmark_id}, {}, {"replay": {"from_run": run.id}, "benchmark": run.benchmark_id}):
        with pytest.raises(benchwright.Unprocessable) as mode:
            bw.runs.launch(**body)
        assert mode.value.code in ("mode_conflict", "mode_missing")


LATER = [
    ("a request in words", lambda bw: bw.runs.launch(request="Run MMLU Abstract Algebra on openai/gpt-4o-mini via OpenRouter")),
    ("a host policy", lambda bw: bw.host_policy.list()),
    ("a host policy's default", lambda bw: bw.host_policy.default("block")),
    ("secrets", lambda bw: bw.secrets.create(name="OPENROUTER_API_KEY", value="sk-or-1", rules=[{"host_pattern": "openrouter.ai", "inject_kind": "bearer"}])),
    ("webhooks", lambda bw: bw.webhooks.create(url="https://ci.example/hook", events=["run.finished"])),
]


@pytest.mark.parametrize("call", [c for _, c in LATER], ids=[n for n, _ in LATER])
def test_what_the_server_does_not_do_yet_has_a_name(bw: Benchwright, call: Any) -> None:
    with pytest.raises(benchwright.NotImplementedByServer) as later:
        call(bw)
    assert later.value.status == 501
    assert later.value.feature


def test_a_list_is_walked_by_token_while_rows_arrive(bench: Bench, bw: Benchwright) -> None:
    """Every row that was there is met once; a token that was changed, or is of another list, is refused (sd-03)."""
    there = [bw.benchmarks.create(name=f"{bench.tag} {n}", category=bench.tag).id for n in range(120)]
    mine = {"category": bench.tag}
    page = bw.registry.benchmarks.list(filters=mine, limit=50)
    found: list[str] = []
    for place, row in enumerate(page):
        found.append(row.id)
        if place in (49, 99):
            for n in range(5):
                bw.benchmarks.create(name=f"{bench.tag} late {place} {n}", category=bench.tag)
    assert sorted(found) == sorted(there)
    token = page.next
    assert token
    places = range(0, len(token), max(1, len(token) // 12))
    changed = [token[:at] + ("A" if token[at] != "A" else "B") + token[at + 1 :] for at in places]
    for wrong in (*changed, token[:-1], "x", "x.y", "ü.1"):
        with pytest.raises(benchwright.InvalidRequest) as refused:
            bw.registry.benchmarks.list(filters=mine, page_token=wrong)
        assert (refused.value.status, refused.value.code) == (400, "invalid_page_token"), wrong
    for other in ({"filters": {"category": "another"}}, {"filters": mine, "q": "late"}, {"filters": mine, "sort": "name"}, {}):
        with pytest.raises(benchwright.InvalidRequest):
            bw.registry.benchmarks.list(page_token=token, **other)
    with pytest.raises(benchwright.InvalidRequest):
        bw.registry.benchmarks.list(filters=mine, limit=0)
    whole = bw.registry.benchmarks.list(filters=mine, limit=100_000)
    assert (len(whole.page), whole.has_more) == (130, False)
