"""What an external harness measured is reported as it is: nothing of it is mended, and there is no scorer to take over."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from access.caller import Caller
from suite.api.problems import Conflict
from suite.authoring import amending, inheriting, rows, subsets
from suite.models import Benchmark, Run, Subset
from suite.running import targets
from tests.suite.driving import sums

pytestmark = pytest.mark.django_db
AUTHOR = Caller(kind="user", judge="author", scopes=frozenset({"registry:publish"}))
NOW = datetime(2026, 11, 1, tzinfo=UTC)


@pytest.fixture
def subset() -> Subset:
    parent = Benchmark.objects.create(id="bm_1", name="sums", owner="author", created_at=NOW, updated_at=NOW)
    return subsets.create(parent, "all", "all", "", rows.read(sums(2), {"kind": "math"}), False, {"kind": "math"}, "author")


def run_by(subset: Subset, harness: str) -> Run:
    return Run.objects.create(
        id=f"run_{harness}",
        mode="pinned",
        launch={},
        benchmark=subset.benchmark,
        subset=subset,
        version=1,
        impl=targets.builtin_impl(AUTHOR.owner, AUTHOR.team, subset),
        subject="x",
        sut={},
        harness=harness,
        backend="local-bwrap",
        selection={},
        owner="author",
        created_at=NOW,
    )


def test_a_benchmark_that_an_external_harness_measures_is_not_mended(subset: Subset) -> None:
    run_by(subset, "inspect")
    with pytest.raises(Conflict) as recipe:
        amending.change_recipe(AUTHOR, subset, {"trials": 3})
    with pytest.raises(Conflict) as samples:
        amending.change_samples(subset, [], ["t0"], "wrong", "author")
    assert (recipe.value.code, samples.value.code) == ("external_harness_immutable", "external_harness_immutable")
    assert Subset.objects.get().recipe == {}


def test_a_harness_run_has_no_scorer_to_take_over(subset: Subset) -> None:
    with pytest.raises(Conflict) as refused:
        inheriting.inherit(subset, run_by(subset, "lmeval"))
    assert (refused.value.status, refused.value.code) == (409, "no_code")
    assert inheriting.inherit(subset, run_by(subset, "benchwright")).grader == {"kind": "math"}
