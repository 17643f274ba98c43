"""What each path below /v1 is called, takes and gives, for the OpenAPI description. What stands on the views themselves is read from them."""

from __future__ import annotations

from dataclasses import dataclass, field

from suite.api.openapi_shapes import ANY, BOOL, INT, NAMED, OBJECT, STR, Schema, body, many, maybe, one_of, page_of, ref


@dataclass(frozen=True, slots=True)
class Told:
    """One operation. Shape: `gives` None for an answer without a body, `more` further statuses with the same; `query` parameters beyond filters and pages."""

    id: str
    gives: Schema | None = field(default_factory=lambda: OBJECT)
    takes: Schema | None = None
    status: int = 200
    query: dict[str, Schema] = field(default_factory=dict)
    media: str = "application/json"
    if_match: bool = False
    more: tuple[int, ...] = ()


FILE = {"type": "string", "contentMediaType": "application/octet-stream"}
TEXT = "text/plain"
RUN, RUNS = ref("Run"), page_of(ref("Run"))
SHARED = {"visibility": one_of("private", "team", "public")}

# Route as `suite.urls` has it, and method.
PATHS: dict[tuple[str, str], Told] = {
    ("runs", "get"): Told("list_runs", RUNS, query={"sort": one_of("created_at", "-created_at", "started_at", "-started_at"), "expand": STR}),
    ("runs", "post"): Told("launch_run", RUN, ref("Launch"), 201),
    ("runs:preview", "post"): Told("preview_launch", OBJECT, ref("Launch")),
    ("runs/{run}", "get"): Told(
        "get_run", {"anyOf": [RUN, ref("Tombstone"), OBJECT]}, query={"wait": {"type": "number", "maximum": 60}, "expand": STR, "fields": STR}
    ),
    ("runs/{run}", "patch"): Told("change_run", RUN, body((), **SHARED, review_resolution=STR, metadata=OBJECT, tags=many(STR)), if_match=True),
    ("runs/{run}", "delete"): Told("delete_run", None, status=204, query={"confirm": STR}),
    ("runs/{run}/halt", "post"): Told("halt_run", RUN, body((), reason=STR), 202),
    ("runs/{run}/publish", "post"): Told("publish_run", RUN, body((), **SHARED), if_match=True),
    ("runs/{run}/fork", "post"): Told("fork_run", RUN, body((), description=STR, from_phase=STR, impl=STR, code=STR, grader=OBJECT, label=STR), 201),
    ("runs/{run}/rescore", "post"): Told("rescore_run", ref("Rescoring"), body((), impl=STR, code=STR, grader=OBJECT, label=STR), more=(202,)),
    ("runs/{run}/rescorings", "get"): Told("list_rescorings", page_of(ref("Rescoring"))),
    ("runs/{run}/rescorings/{rescoring}", "get"): Told("get_rescoring", ref("Rescoring"), query={"wait": {"type": "number", "maximum": 60}}),
    ("runs/{run}/rescorings/{rescoring}", "delete"): Told("cancel_rescoring", None, status=204),
    ("runs/{run}/requeue", "post"): Told("requeue_run", RUN, body(()), 202),
    ("runs/{run}/events", "get"): Told("list_events", page_of(ref("Event"), last_seq=INT)),
    ("runs/{run}/tasks", "get"): Told("list_tasks", page_of(ref("Task"), summary=ref("Summary")), query={"sort": STR}),
    ("runs/{run}/tasks/{task}/payload", "get"): Told("get_task_payload", ref("Task")),
    ("runs/{run}/artifacts", "get"): Told("list_artifacts", page_of(ref("Artifact"))),
    ("runs/{run}/artifacts/{artifact}", "get"): Told("get_artifact", ref("Artifact")),
    ("runs/{run}/artifacts/{artifact}/content", "get"): Told("get_artifact_content", FILE, media="application/octet-stream"),
    ("runs/{run}/report", "get"): Told("get_report", STR, media="text/html"),
    ("runs/{run}/fingerprint", "get"): Told("get_fingerprint", ref("Fingerprint")),
    ("runs/{run}/gate", "get"): Told("rule_on_run", ref("Gate")),
    ("registry/benchmarks", "get"): Told("list_benchmarks", page_of(ref("Benchmark")), query={"name": STR, "q": STR, "sort": STR}),
    ("registry/benchmarks/{benchmark}", "get"): Told("get_benchmark", ref("Benchmark"), query={"expand": STR}),
    ("registry/subsets", "get"): Told("list_all_subsets", page_of(ref("Subset")), query={"q": STR}),
    ("registry/subsets/{subset}", "get"): Told("get_subset", ref("Subset")),
    ("registry/subsets/{subset}/versions", "get"): Told("list_versions", page_of(ref("SubsetVersion"))),
    ("registry/subsets/{subset}/leaderboard", "get"): Told("get_leaderboard", page_of(ref("Leaderboard"))),
    ("registry/subsets/{subset}/runs", "get"): Told("list_runs_of_subset", RUNS),
    ("registry/subsets/{subset}/diff", "get"): Told("diff_versions"),
    ("registry/subsets/{subset}/admission", "get"): Told("check_admission", query={"impl": STR, "fresh": BOOL}),
    ("registry/self-checks", "get"): Told("list_self_checks", page_of(OBJECT)),
    ("benchmarks/{benchmark}/coverage", "get"): Told("get_coverage"),
    ("subsets:distill", "post"): Told("distil_subset", {"anyOf": [ref("Subset"), OBJECT]}, OBJECT, 201, query={"dry_run": BOOL}),
    ("subsets:from-verdict", "post"): Told("keep_verdict_as_tasks", OBJECT, body(("call",), call=STR), 201),
    ("packs", "get"): Told("list_packs", page_of(OBJECT)),
    ("packs/{pack}/load", "post"): Told("load_pack", OBJECT, body((), passes=BOOL)),
    ("build/subsets/{slug}/recipe", "get"): Told("get_recipe"),
    ("build/subsets/{slug}/samples", "get"): Told("get_samples"),
    ("impls", "get"): Told("list_impls", page_of(ref("Impl"))),
    ("runs/{run}/cost", "get"): Told("get_cost"),
    ("schema", "get"): Told("get_schema"),
    ("compare", "get"): Told("compare_runs", ref("Comparison")),
    ("sweeps", "get"): Told("list_sweeps", page_of(ref("Sweep"))),
    ("sweeps", "post"): Told("launch_sweep", ref("Sweep"), OBJECT, 201),
    ("sweeps/{sweep}", "get"): Told("get_sweep", ref("Sweep")),
    ("benchmarks", "post"): Told("make_benchmark", ref("Benchmark"), body(("name",), **NAMED, category=STR, tags=many(STR), parents=many(STR)), 201),
    ("benchmarks/{benchmark}", "patch"): Told("change_benchmark", ref("Benchmark"), body((), **NAMED, category=STR, tags=many(STR), parents=many(STR))),
    ("benchmarks/{benchmark}", "delete"): Told("delete_benchmark", None, status=204),
    ("benchmarks/{benchmark}/subsets", "get"): Told("list_subsets", page_of(ref("Subset"))),
    ("benchmarks/{benchmark}/subsets", "post"): Told(
        "make_subset",
        ref("Subset"),
        body(("slug",), slug=STR, **NAMED, tasks={"type": "array", "items": ref("Row"), "maxItems": 1000}, rolling=BOOL, grader=OBJECT, recipe=OBJECT),
        201,
    ),
    ("subsets/{subset}", "patch"): Told(
        "change_subset", ref("Subset"), body((), **NAMED, rolling={"const": False}, retired=BOOL, note=STR, replaced_by=maybe(STR))
    ),
    ("subsets/{subset}", "delete"): Told("delete_subset", None, status=204),
    ("subsets/{subset}/tasks", "post"): Told("append_tasks", OBJECT, body(("tasks",), tasks=many(ref("Row")))),
    ("build/subsets/{slug}/recipe", "patch"): Told("change_recipe", OBJECT, body(("config", "note"), config=OBJECT, note=STR), if_match=True),
    ("build/subsets/{slug}/samples", "patch"): Told(
        "change_samples", OBJECT, body(("note",), upsert=many(ref("Row")), remove=many(STR), note=STR), if_match=True
    ),
    ("impls", "post"): Told(
        "make_impl", ref("Impl"), body(("code",), benchmark=STR, subset=STR, label=STR, language=STR, code=STR, description=STR, hidden=BOOL), 201
    ),
    ("impls:from-run", "post"): Told(
        "make_impl_from_run", ref("Impl"), body(("from_run",), from_run=STR, benchmark=STR, subset=STR, label=STR, description=STR), 201
    ),
    ("impls/{impl}", "get"): Told("get_impl", ref("Impl")),
    ("impls/{impl}", "patch"): Told("change_impl", ref("Impl"), body((), label=STR, description=STR, hidden=BOOL)),
    ("impls/{impl}", "delete"): Told("delete_impl", None, status=204),
    ("impls/{impl}/code", "get"): Told("get_impl_code", STR, media=TEXT),
    ("impls/{impl}/runs", "get"): Told("list_runs_of_impl", RUNS),
    ("billing/balance", "get"): Told("get_balance", ref("Balance")),
    ("billing/controls", "get"): Told("get_controls", ref("Controls")),
    ("billing/controls", "patch"): Told(
        "change_controls",
        ref("Controls"),
        body(
            (),
            monthly_cap_cents=maybe(INT),
            auto_refill_enabled=BOOL,
            auto_refill_amount_cents=maybe(INT),
            auto_refill_threshold_cents=maybe(INT),
            alert_enabled=BOOL,
            alert_at_cap_pct={"type": "integer", "minimum": 1, "maximum": 100},
        ),
    ),
    ("billing/topups", "get"): Told("list_topups", page_of(ref("Topup"))),
    ("billing/topups", "post"): Told(
        "make_topup",
        ref("Topup"),
        body(("amount_cents",), amount_cents=INT, flow=one_of("hosted", "manual"), kind=one_of("grant", "adjustment", "refund"), note=STR, account=STR),
        201,
    ),
    ("billing/topups/{topup_id}", "get"): Told("get_topup", ref("Topup")),
    ("billing/transactions", "get"): Told("list_transactions", page_of(ref("Transaction"))),
    ("billing/usage-trend", "get"): Told("get_usage_trend", ref("UsageTrend")),
    ("billing/export", "get"): Told("export_billing", STR, media="text/csv"),
    ("me", "get"): Told("get_me", ref("Me")),
    ("doctor", "get"): Told("run_doctor", ref("Doctor")),
    ("backends", "get"): Told("list_backends", page_of(ref("Backend"))),
    ("harnesses", "get"): Told("list_harnesses", page_of(ref("Harness"))),
    ("settings", "get"): Told("list_team_settings", page_of(ref("Setting"))),
    ("settings/schema", "get"): Told("get_settings_schema", OBJECT),
    ("settings/{key}", "get"): Told("get_team_setting", ref("Setting")),
    ("settings/{key}", "put"): Told("set_team_setting", ref("Setting"), body(("value",), value=ANY)),
    ("settings/{key}", "delete"): Told("reset_team_setting", None, status=204),
    ("tokens", "get"): Told("list_tokens", page_of(ref("Token"), grantable=OBJECT)),
    ("tokens", "post"): Told("make_token", ref("Token"), body(("name", "scopes"), name=STR, scopes=many(STR), expires_at=maybe(STR), test=BOOL), 201),
    ("tokens/{token}", "get"): Told("get_token", ref("Token")),
    ("tokens/{token}", "delete"): Told("revoke_token", None, status=204),
    ("tokens/{token}/rotate", "post"): Told("rotate_token", ref("Token"), body(())),
    ("openapi.json", "get"): Told("get_openapi", OBJECT),
}
