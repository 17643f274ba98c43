"""Paths of the suite, below /v1. The gateway's own paths there are taken before Django is asked."""

from __future__ import annotations

from django.urls import URLPattern, path, re_path, register_converter
from django.views.decorators.gzip import gzip_page

from suite.api import (
    account,
    again,
    amending,
    artifacts,
    benchmarks,
    billing,
    distilling,
    doors,
    dryruns,
    gating,
    impls,
    openapi,
    previews,
    registry,
    rescorings,
    reviewing,
    runs,
    settings,
    streaming,
    subsets,
    sweeps,
    tasks,
    tokens,
)
from suite.api.unknown import Unknown


class Plain:
    """A name without a colon, so that `subsets:distill` is not taken for a subset."""

    regex = "[^/:]+"

    def to_python(self, value: str) -> str:
        return value

    def to_url(self, value: str) -> str:
        return value


register_converter(Plain, "plain")

urlpatterns: list[URLPattern] = [
    path("runs", runs.Runs.as_view()),
    path("runs:preview", previews.Preview.as_view()),
    path("runs/<plain:run>", runs.OneRun.as_view()),
    path("runs/<plain:run>/halt", runs.Halt.as_view()),
    path("runs/<plain:run>/publish", runs.Publish.as_view()),
    path("runs/<plain:run>/fingerprint", runs.Fingerprint.as_view()),
    path("runs/<plain:run>/artifacts", artifacts.Artifacts.as_view()),
    path("runs/<plain:run>/artifacts/<plain:artifact>", artifacts.OneArtifact.as_view()),
    path("runs/<plain:run>/artifacts/<plain:artifact>/content", artifacts.ArtifactContent.as_view()),
    path("runs/<plain:run>/report", artifacts.Report.as_view()),
    path("runs/<plain:run>/cost", artifacts.Cost.as_view()),
    path("runs/<plain:run>/tasks", tasks.Tasks.as_view()),
    path("runs/<plain:run>/tasks/<plain:task>/payload", gzip_page(tasks.Payload.as_view())),
    path("runs/<plain:run>/events", streaming.events),
    path("runs/<plain:run>/fork", again.Fork.as_view()),
    path("runs/<plain:run>/rescore", rescorings.Rescore.as_view()),
    path("runs/<plain:run>/rescorings", rescorings.Rescorings.as_view()),
    path("runs/<plain:run>/rescorings/<plain:rescoring>", rescorings.OneRescoring.as_view()),
    path("runs/<plain:run>/requeue", again.Requeue.as_view()),
    path("registry/benchmarks", benchmarks.RegistryBenchmarks.as_view()),
    path("registry/benchmarks/<plain:benchmark>", benchmarks.RegistryBenchmark.as_view()),
    path("registry/subsets", subsets.RegistrySubsets.as_view()),
    path("registry/subsets/<plain:subset>", subsets.RegistrySubset.as_view()),
    path("registry/subsets/<plain:subset>/versions", subsets.SubsetVersions.as_view()),
    path("registry/subsets/<plain:subset>/diff", subsets.SubsetDiff.as_view()),
    path("registry/subsets/<plain:subset>/leaderboard", registry.Leaderboard.as_view()),
    path("registry/subsets/<plain:subset>/admission", registry.Admission.as_view()),
    path("registry/subsets/<plain:subset>/runs", registry.SubsetRuns.as_view()),
    path("registry/self-checks", registry.SelfChecks.as_view()),
    path("sweeps", sweeps.Sweeps.as_view()),
    path("sweeps/<plain:sweep>", sweeps.OneSweep.as_view()),
    path("compare", registry.Compare.as_view()),
    path("benchmarks/<plain:benchmark>/coverage", registry.Coverage.as_view()),
    path("benchmarks", benchmarks.Benchmarks.as_view()),
    path("benchmarks/<plain:benchmark>", benchmarks.OneBenchmark.as_view()),
    path("benchmarks/<plain:benchmark>/subsets", subsets.Subsets.as_view()),
    path("subsets/<plain:subset>", subsets.OneSubset.as_view()),
    path("subsets/<plain:subset>/tasks", subsets.SubsetTasks.as_view()),
    path("subsets:distill", distilling.Distil.as_view()),
    path("subsets:from-verdict", reviewing.FromVerdict.as_view()),
    path("packs", reviewing.Packs.as_view()),
    path("packs/<plain:pack>/load", reviewing.LoadPack.as_view()),
    path("build/subsets/<plain:slug>/recipe", amending.Recipe.as_view()),
    path("build/subsets/<plain:slug>/samples", amending.Samples.as_view()),
    path("impls", impls.Impls.as_view()),
    path("impls:from-run", impls.ImplsFromRun.as_view()),
    path("impls/<plain:impl>", impls.OneImpl.as_view()),
    path("impls/<plain:impl>/dry-run", dryruns.DryRun.as_view()),
    path("impls/<plain:impl>/code", impls.ImplCode.as_view()),
    path("impls/<plain:impl>/runs", impls.ImplRuns.as_view()),
    path("billing/balance", billing.Balance.as_view()),
    path("billing/controls", billing.Controls.as_view()),
    path("billing/topups", billing.Topups.as_view()),
    path("billing/topups/<plain:topup_id>", billing.Topup.as_view()),
    path("billing/transactions", billing.Transactions.as_view()),
    path("billing/usage-trend", billing.UsageTrend.as_view()),
    path("billing/export", billing.Export.as_view()),
    path("openapi.json", openapi.OpenApi.as_view()),
    path("schema", openapi.Schema.as_view()),
    path("me", account.Me.as_view()),
    path("doctor", account.Doctor.as_view()),
    path("backends", account.Backends.as_view()),
    path("harnesses", account.Harnesses.as_view()),
    path("settings", settings.Settings.as_view()),
    path("settings/schema", settings.SettingsSchema.as_view()),
    path("settings/<plain:key>", settings.Setting.as_view()),
    path("tokens", tokens.Tokens.as_view()),
    path("tokens/<plain:token>", tokens.OneToken.as_view()),
    path("tokens/<plain:token>/rotate", tokens.RotateToken.as_view()),
    path("runs/<plain:run>/gate", gating.Gate.as_view()),
    *doors.paths(),
    re_path(r"", Unknown.as_view()),
]
