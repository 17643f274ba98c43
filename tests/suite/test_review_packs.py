"""The packs that ship: what they are made of, what answers that know nothing earn, and that loading them spends nothing."""

from __future__ import annotations

import json
from collections import Counter
from io import StringIO
from typing import Any

import pytest
from django.core.management import call_command

from access import preferences
from suite.grading import every
from suite.models import Admission, Benchmark, Row, Run, Subset
from suite.review import baselines, functions, packs
from suite.running import passes

PACKS = packs.every()


@pytest.mark.parametrize("name", PACKS)
def test_a_pack_is_what_its_manifest_says_and_holds_up(name: str) -> None:
    pack = packs.find(name)
    for file, told in pack.files.items():
        rows = pack.rows(file)
        figures = baselines.of_claims(rows) if told["kind"] == "claim" else baselines.of_review(rows)
        assert figures == told["validation"]
        assert baselines.objections(figures) == []
        assert figures["oracle"] == 1.0
        assert told["slug"].startswith(f"{told['benchmark']}-")
        for row in rows:
            every()[told["kind"]].check(row["input"], row["expected"])
            assert row["source"]["licence"]
            assert len(row["source"]["commit"]) == 40
            assert row["source"]["verified"] in ("tests", "run", "text"), "nothing unverified ships"


@pytest.mark.parametrize("name", PACKS)
def test_halves_of_a_pair_are_two_and_no_comment_stands_at_a_fault(name: str) -> None:
    pack = packs.find(name)
    for file, told in pack.files.items():
        if told["kind"] != "review_line":
            continue
        rows = pack.rows(file)
        assert set(Counter(row["source"]["pair"] for row in rows).values()) == {2}
        assert set(Counter((row["source"]["pair"], bool(row["expected"]["lines"])) for row in rows).values()) == {1}
        for row in rows:
            said = functions.words(row["input"]["code"])
            assert not {line for fault in row["expected"]["lines"] for line in (fault - 1, fault)} & set(said.comments)
            asked = every()["review_line"].ask(row["input"]).messages[0]["content"]
            assert not any(row["source"][hidden] in asked for hidden in ("pair", "commit", "operator", "path"))


@pytest.mark.django_db
def test_loading_makes_benchmarks_for_everybody_once_and_asks_nobody() -> None:
    for _ in range(2):
        call_command("suite", "load", "starter", stdout=StringIO())
    pack = packs.find("starter")
    assert {(s.benchmark.name, s.slug, s.benchmark.built_in, s.rolling) for s in Subset.objects.all()} == {
        (told["benchmark"], told["slug"], "starter", False) for told in pack.files.values()
    }
    assert Row.objects.count() == sum(told["rows"] for told in pack.files.values())
    assert not passes.is_set_up()
    assert not Run.objects.exists()
    # It is everybody's from the start, so it is tried as what is published is: once.
    tried = {row.subset.slug: json.loads(row.found) for row in Admission.objects.select_related("subset")}
    assert {slug: found["status"] for slug, found in tried.items()} == {told["slug"]: "admitted" for told in pack.files.values()}
    for benchmark in Benchmark.objects.all():
        assert {found["subset"]: found for found in benchmark.admission["checked"].values()} == {
            found["subset"]: found for slug, found in tried.items() if slug.startswith(f"{benchmark.name}-")
        }


@pytest.mark.django_db
def test_passes_run_it_only_where_somebody_said_so() -> None:
    assert passes.subsets() == []
    assert not Benchmark.objects.exists(), "it is not even loaded"
    preferences.change(passes.STARTER, True, "somebody")
    slugs = {told["slug"] for told in packs.find("starter").files.values()}
    assert passes.is_set_up()
    assert {row.slug for row in passes.subsets()} == slugs
    preferences.change(passes.STARTER, False, "somebody")
    assert passes.subsets() == []
    packs.load("starter", "somebody", True)
    assert {row.slug for row in passes.subsets()} == slugs
    packs.load("starter", "somebody", False)
    assert passes.subsets() == []


@pytest.mark.django_db
def test_the_api_lists_and_loads_packs(client: Any, django_user_model: Any) -> None:
    user = django_user_model.objects.create_user(username="op", role="operator")
    client.force_login(user)
    (listed,) = client.get("/v1/packs").json()["data"]
    assert (listed["name"], listed["is_loaded"], listed["passes"]) == ("starter", False, False)
    loaded = client.post("/v1/packs/starter/load", {"passes": True}, content_type="application/json").json()
    assert (loaded["is_loaded"], loaded["passes"], len(loaded["subsets"])) == (True, True, len(listed["files"]))
    assert {row["visibility"] for row in client.get("/v1/registry/benchmarks").json()["data"]} == {"public"}, "what comes with the server is everybody's"
    assert client.post("/v1/packs/starter/load", {"passes": "yes"}, content_type="application/json").status_code == 422
    assert client.post("/v1/packs/none/load", {}, content_type="application/json").status_code == 404
    user.role = "viewer"
    user.save()
    assert client.post("/v1/packs/starter/load", {}, content_type="application/json").status_code == 403
