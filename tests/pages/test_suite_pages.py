"""The suite's pages: what each shows, what each role may do there, and that what models and people wrote stays text."""

from __future__ import annotations

import json
import re
from html import unescape

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from access import preferences
from suite import ids
from suite.models import Benchmark, Impl, Run, Subset, Sweep, Task
from suite.review import packs
from suite.running import passes
from suite.sandbox import box
from tests.admin import seed
from tests.pages import suites, test_quotas
from tests.suite.test_scorers import one_method

pytestmark = pytest.mark.django_db


@pytest.fixture
def filled():
    seed.bench(3)
    return suites.fill()


def told(html):
    return unescape(test_quotas.told(html))


def page(client, name, *args, query="", status=200):
    answer = client.get(reverse(f"pages:{name}", args=args) + query)
    assert answer.status_code == status, told(answer.content.decode())[:400]
    return answer.content.decode()


# ------------------------------------------------------------------ reading


def test_the_overview_shows_runs_benchmarks_and_what_runs_by_itself(as_role, filled):
    words = told(page(as_role("viewer"), "suite"))
    assert "mercury" in words
    assert "95% 76–99%" in words or "100% 83–100%" in words
    assert "Sums / small" in words
    assert "Launch a run" not in words
    assert "Launch a run" in told(page(as_role("judge"), "suite"))


def test_an_empty_suite_leads_to_the_first_benchmark(as_role):
    seed.people()
    assert "Make a benchmark" in told(page(as_role("operator"), "suite"))
    assert "Make a benchmark" not in told(page(as_role("judge"), "suite"))


@pytest.mark.parametrize("has_passes", [False, True])
def test_an_operator_loads_the_starter_pack_and_switches_passes(as_role, has_passes):
    seed.people()
    client, rows = as_role("operator"), sum(told["rows"] for told in packs.find("starter").files.values())
    before = told(page(client, "suite"))
    assert f"not loaded Review tasks out of this project's own code and history: {rows} tasks." in before
    assert "Planted faults, each with a clean control 64 tasks" in before
    assert f"That spends money : {rows} calls a model, each time." in before
    answer = client.post(reverse("pages:pack_load", args=["starter"]), {"load": "", **({"passes": "on"} if has_passes else {})}, follow=True)
    after = told(answer.content.decode())
    assert f"The pack is loaded. Passes are {'on' if has_passes else 'off'}" in after
    assert f"Starter pack passes {'on' if has_passes else 'off'}" in after
    assert ("rebench / rebench-starter-planted" in after) is has_passes, "what runs by itself"
    assert Subset.objects.filter(benchmark__built_in="starter").count() == 3
    assert not Run.objects.exists(), "nothing is asked by loading"
    for switch in ("off", "on", "off"):
        answer = client.post(reverse("pages:pack_load", args=["starter"]), {"passes": switch}, follow=True)
        assert f"Starter pack passes {switch}" in told(answer.content.decode())
        assert {row.recipe.get("passes", False) for row in Subset.objects.all()} == {switch == "on"}


@pytest.mark.parametrize("role", ["viewer", "judge"])
def test_who_may_not_load_a_pack_is_not_offered_it_and_sees_what_is_there(as_role, role):
    seed.people()
    client = as_role(role)
    assert "Starter pack" not in told(page(client, "suite"))
    assert client.post(reverse("pages:pack_load", args=["starter"]), {"load": ""}).status_code == 403
    assert not Subset.objects.exists()
    packs.load("starter", "operator")
    html = page(client, "suite")
    assert "Starter pack passes off" in told(html)
    assert "Switch passes" not in told(html)
    assert reverse("pages:pack_load", args=["starter"]) not in html


def test_a_pack_that_a_setting_switches_on_says_so_and_has_no_switch(as_role):
    seed.people()
    preferences.change(passes.STARTER, True, "operator")
    client = as_role("operator")
    assert "By the setting suite.starter the starter pack is run" in told(page(client, "suite")) or "not loaded" in told(page(client, "suite"))
    packs.load("starter", "operator")
    words = told(page(client, "suite"))
    assert "Starter pack passes on" in words
    assert "The setting suite.starter has passes run it." in words
    assert "By the setting suite.starter the starter pack is run." in words
    assert "Nothing: no subset is marked" not in words
    assert "Switch passes" not in words


@pytest.mark.parametrize("pack", ["none", "../starter", "starter%00"])
def test_a_pack_that_is_not_there_is_not_found(as_role, pack):
    seed.people()
    assert as_role("operator").post(f"/app/suite/packs/{pack}", {"load": ""}).status_code in (400, 404)


def many(count):
    of = suites.benchmark("Many")
    for number in range(count):
        suites.subset(of, suites.task_rows(1), f"s{number:03}", name=f"Number {number}", rolling=True, recipe={"passes": True} if number % 50 == 7 else {})
    return of


def test_a_benchmark_of_many_subsets_is_read_page_by_page(as_role):
    seed.people()
    of, client = many(120), as_role("operator")
    seen, query = [], ""
    for _ in range(3):
        html = page(client, "benchmark", of.pk, query=query)
        seen += re.findall(r'<th scope="row"><a href="[^"]*/(s\d+)"', html)
        more = re.search(r'href="(\?[^"]*page_token=[^"#]*)#subsets" rel="next"', html)
        query = unescape(more[1]) if more else ""
    assert seen == [f"s{number:03}" for number in range(120)]
    assert not query, "the third page is the last"
    assert "First page" in html
    found = page(client, "benchmark", of.pk, query="?q=number+119")
    assert re.findall(r'<th scope="row"><a href="[^"]*/(s\d+)"', found) == ["s119"]
    assert "No subset is called so." in page(client, "benchmark", of.pk, query="?q=nothing")
    assert "page_token is none of this list" in told(page(client, "benchmark", of.pk, query="?page_token=x.y", status=400))
    assert "Number 119" in page(client, "subset", of.pk, "s119")
    assert "Number 119" in page(client, "subset", of.pk, Subset.objects.get(slug="s119").pk)
    assert "has no subset s120" in told(page(client, "subset", of.pk, "s120", status=404))


def test_pages_cost_the_same_for_few_subsets_and_for_many(as_role):
    seed.people()
    few, lot, client = many(3), many(60), as_role("operator")
    costs = []
    for of in (few, lot):
        costs.append([])
        whole, one = reverse("pages:benchmark", args=[of.pk]), reverse("pages:subset", args=[of.pk, "s001"])
        for address in (whole, one, f"{reverse('pages:launch')}?benchmark={of.pk}"):
            client.get(address)
            with CaptureQueriesContext(connection) as asked:
                client.get(address)
            costs[-1].append(len(asked))
    assert costs[0] == costs[1]


def test_a_form_suggests_the_first_of_many_subsets_and_takes_any(as_role, monkeypatch):
    seed.people()
    of, client = many(5), as_role("operator")
    assert '<select id="subset"' in page(client, "launch", query=f"?benchmark={of.pk}")
    monkeypatch.setattr("suite.pages.registry.MOST_OFFERED", 3)
    for name in ("launch", "sweep_new"):
        html = page(client, name, query=f"?benchmark={of.pk}&subset=s004")
        assert '<input id="subset" name="subset" list="subsets" value="s004"' in html
        assert re.findall(r'<option value="(s\d+)">', html) == ["s000", "s001", "s002"]


def test_what_runs_by_itself_is_found_among_all_benchmarks(as_role):
    seed.people()
    many(10)
    for number in range(15):
        suites.benchmark(f"Newer {number}")
    assert "Many / s007" in told(page(as_role("operator"), "suite"))


def test_a_benchmark_tells_how_it_stood_its_checks_in_words(as_role):
    seed.people()
    (of, *_) = packs.load("starter", "operator")
    words = told(page(as_role("viewer"), "benchmark", of.benchmark_id))
    assert f"{of.name} , version 1 admitted" in words or f"{of.name}, version 1 admitted" in words
    assert "The right answer passes" in words
    assert "{" not in words.partition("Checks before publishing")[2].partition("What is covered")[0], "no JSON"


@pytest.mark.parametrize("name", ["launch", "sweep_new", "registry"])
def test_where_there_is_nothing_to_run_a_form_leads_to_a_benchmark_or_the_starter_pack(as_role, name):
    seed.people()
    html = page(as_role("operator"), name)
    assert "Load the starter pack" in told(html)
    assert f'href="{reverse("pages:suite")}">Load the starter pack' in html
    assert "Load the starter pack" not in told(page(as_role("judge"), name))


def looked(client, **asked):
    answer = client.get(reverse("pages:distil"), asked, headers={"HX-Request": "true"})
    assert answer.status_code == 200
    return told(answer.content.decode())


def test_what_runs_failed_is_counted_and_made_a_subset(as_role, filled):
    client, runs = as_role("operator"), [filled.good.pk, filled.bad.pk]
    html = page(client, "compare_runs", query=f"?runs={runs[0]}&runs={runs[1]}")
    assert "Make a subset of what they failed, or of what tells them apart" in told(html)
    assert "None of the 19 tasks that every run scored." in looked(client, runs=runs, rule="failed_by_all", k="")
    words = looked(client, runs=runs, rule="discriminating", k="1")
    assert "13 tasks of the 19 that every run scored. sum-06 , sum-07" in words
    assert "13 tasks" in looked(client, runs=runs, rule="k_of_n", k="1")
    assert "must be a whole number from 1 to 2" in looked(client, runs=runs, rule="k_of_n", k="3")
    assert "must be a whole number" in looked(client, runs=runs, rule="k_of_n", k="many")
    assert not Benchmark.objects.filter(parents__isnull=False).exclude(parents=[]).exists(), "looking makes nothing"
    body = {"runs": runs, "rule": "discriminating", "k": "1", "name": "What tells them apart", "slug": "", "benchmark": "", "once": "a-key-of-this-form"}
    for _ in range(2):  # pressed twice
        answer = client.post(reverse("pages:distil"), body, follow=True)
        words = told(answer.content.decode())
        assert "What tells them apart" in words
        assert "It holds 13 of the 19 tasks that every run scored." in words
    (made,) = Subset.objects.filter(benchmark__name="What tells them apart")
    assert (made.slug, made.version, made.rows.count()) == ("distilled", 1, 13)


def test_a_sweep_leads_to_a_subset_in_a_benchmark_of_ones_own(as_role, filled):
    sweep = Sweep.objects.create(id=ids.new_id("swp"), owner="operator", launch={"models": ["mercury"]}, created_at=suites.NOW)
    Run.objects.filter(pk__in=[filled.good.pk, filled.bad.pk]).update(sweep=sweep.pk)
    client = as_role("operator")
    html = page(client, "sweep", sweep.pk)
    assert f'name="sweep" value="{sweep.pk}"' in html
    assert "13 tasks" in looked(client, sweep=sweep.pk, rule="k_of_n", k="1")
    body = {"sweep": sweep.pk, "rule": "k_of_n", "k": "1", "name": "Hard ones", "slug": "hard", "benchmark": filled.benchmark.pk}
    answer = client.post(reverse("pages:distil"), body)
    made = Subset.objects.get(slug="hard")
    assert answer.url == reverse("pages:subset", args=[filled.benchmark.pk, made.pk])
    assert made.benchmark == filled.benchmark


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ({"name": ""}, "is needed for a new benchmark"),
        ({"name": "x", "slug": "no slug"}, "is made of letters, digits"),
        ({"name": "x", "rule": "failed_by_all"}, "No task meets the rule failed_by_all"),
        ({"name": "x", "rule": "k_of_n", "k": "0"}, "must be a whole number"),
        ({"name": "x", "rule": "hardest"}, "must be one of"),
        ({"name": "\u200b"}, "shows nothing"),
    ],
)
def test_a_subset_that_cannot_be_made_says_why_and_keeps_what_was_typed(as_role, filled, more, said):
    body = {"runs": [filled.good.pk, filled.bad.pk], "rule": "discriminating", "k": "1", **more}
    answer = as_role("operator").post(reverse("pages:distil"), body)
    html = answer.content.decode()
    assert answer.status_code == 422
    assert said in told(html)
    assert f'value="{filled.bad.pk}"' in html
    assert Benchmark.objects.count() == 1


def test_who_may_make_no_subset_is_not_offered_one(as_role, filled):
    client = as_role("viewer")
    runs = f"?runs={filled.good.pk}&runs={filled.bad.pk}"
    assert "Make a subset" not in told(page(client, "compare_runs", query=runs))
    page(client, "distil", query=runs, status=403)
    assert client.post(reverse("pages:distil"), {"runs": [filled.good.pk], "rule": "failed_by_all", "name": "x"}).status_code == 403
    assert "Of which runs?" in told(page(as_role("operator"), "distil"))
    assert "13 tasks" in told(page(as_role("operator"), "distil", query=f"{runs}&rule=k_of_n&k=1")), "without script it is a page of its own"


def test_a_run_says_how_sure_its_score_is_and_what_was_not_scored(as_role, filled):
    words = told(page(as_role("viewer"), "run", filled.good.pk))
    assert "19 of 19 scored" in words
    assert "100% 83–100%" in words
    assert "1 truncated without a score" in words
    assert "19 passed 1 cut off" in words
    assert "run cost 5.0" in words


def test_a_halted_run_says_why_and_offers_to_ask_what_is_missing(as_role, filled):
    assert "limit_exceeded:run.cost. It costs too much." in told(page(as_role("viewer"), "run", filled.halted.pk))
    assert "Ask again what is missing" in told(page(as_role("operator"), "run", filled.halted.pk))
    assert "Ask again what is missing" not in told(page(as_role("judge"), "run", filled.halted.pk)), "the run is somebody else's"


@pytest.mark.parametrize(
    ("query", "count"),
    [("", 20), ("passed=false", 14), ("passed=true", 6), ("outcome=refused", 1), ("task_id=sum-00", 1), ("outcome=limit", 0), ("sort=score", 20)],
)
def test_tasks_are_filtered(as_role, filled, query, count):
    answer = as_role("viewer").get(reverse("pages:run_tasks", args=[filled.bad.pk]) + f"?{query}", headers={"HX-Request": "true"})
    assert answer.content.decode().count('<th scope="row">') == count


def test_a_task_shows_what_was_asked_what_was_expected_and_what_came(as_role, filled):
    task = Task.objects.filter(run=filled.bad, outcome="refused").get()
    words = told(page(as_role("viewer"), "task", filled.bad.pk, task.pk))
    assert "What is 18 + 18?" in words
    assert '"value": 36' in words
    assert "I add both." in words
    assert "after 1 attempt" in words


def test_what_is_private_is_not_there_for_others(as_role, filled):
    hidden = suites.run(filled.small, "mercury", ["passed"], visibility="private", owner="somebody")
    page(as_role("judge"), "run", hidden.pk, status=404)
    page(as_role("admin"), "run", hidden.pk)
    mine = suites.subset(suites.benchmark("Mine", owner="somebody"), suites.task_rows(1))
    page(as_role("operator"), "benchmark", mine.benchmark_id, status=404)
    page(as_role("operator"), "subset", mine.benchmark_id, mine.slug, status=404)


def test_a_board_never_mixes_what_was_measured_differently(as_role, filled):
    other = Impl.objects.create(
        id="imp_OTHER", digest="o" * 64, language="builtin", grader={"kind": "math"}, owner="operator", created_at=suites.NOW, updated_at=suites.NOW
    )
    elsewhere = suites.run(filled.small, "venus", ["passed"] * 20)
    Run.objects.filter(pk=elsewhere.pk).update(impl=other)
    html = page(as_role("viewer"), "subset", filled.benchmark.pk, "small")
    boards = [told(board) for board in html.split('class="cards suite board"')[1:]]
    assert len(boards) == 2
    assert sum("venus" in board.split("Newest runs")[0] for board in boards) == 1
    both = next(board for board in boards if "slow-but-sure" in board.split("Newest runs")[0])
    assert "venus" not in both.split("Newest runs")[0]


def test_kinds_stand_apart_on_a_board_and_a_benchmark_says_what_is_covered(as_role, filled):
    words = told(page(as_role("viewer"), "subset", filled.benchmark.pk, "mixed"))
    assert "exact math Coverage" in words
    words = told(page(as_role("viewer"), "benchmark", filled.benchmark.pk, query="?range=0-30"))
    assert "Every task there is in 0 to 30 was asked by a run." in words
    assert "range reads like 0-5" in told(page(as_role("viewer"), "benchmark", filled.benchmark.pk, query="?range=five"))


def test_the_contracts_own_addresses_lead_to_the_pages(as_role, filled):
    client = as_role("viewer")
    assert client.get(f"/registry/{filled.benchmark.pk}").url == reverse("pages:benchmark", args=[filled.benchmark.pk])
    assert client.get(f"/registry/{filled.benchmark.pk}/small").url == reverse("pages:subset", args=[filled.benchmark.pk, "small"])
    assert client.get(f"/v1/runs/{filled.good.pk}").json()["links"]["dashboard"] == reverse("pages:run", args=[filled.good.pk])


def test_a_comparison_says_who_is_better_by_how_much_and_on_which_tasks(as_role, filled):
    client = as_role("viewer")
    words = told(page(client, "compare_runs", query=f"?runs={filled.good.pk}&runs={filled.bad.pk}"))
    assert "mercury is better than slow-but-sure" in words
    assert "exact McNemar" in words
    assert "13" in words.split("mercury did better")[1][:4]
    assert "p < 0.001" in words
    assert "a difference of" in words
    assert "sum-06 only mercury" in words
    side = told(page(client, "compare_task", query=f"?runs={filled.good.pk}&runs={filled.bad.pk}&task_id=sum-06"))
    assert "mercury passed" in side
    assert "slow-but-sure failed" in side


@pytest.mark.parametrize("is_unpriced", [True, False])
def test_a_cost_of_which_a_part_is_unknown_has_its_plus_wherever_it_stands(as_role, filled, is_unpriced):
    client = as_role("judge")
    Run.objects.update(has_unpriced=is_unpriced)
    said = {"benchmark": filled.benchmark.pk, "subset": filled.small.pk, "models": ["mercury", "slow-but-sure"], "once": "k2"}
    sweep = client.post(reverse("pages:sweep_new"), said).url
    Run.objects.filter(status="queued", sweep=sweep.rstrip("/").rpartition("/")[2]).update(status="ok", has_unpriced=is_unpriced, done=20)
    compared = page(client, "compare_runs", query=f"?runs={filled.good.pk}&runs={filled.bad.pk}")
    swept = client.get(sweep).content.decode()
    assert "Board" in told(swept), "and runs without a scored task differ by nothing that can be told"
    for html in (compared, swept, page(client, "runs")):
        assert ("Some calls have no known price" in html) == is_unpriced


def test_many_runs_are_compared_with_the_first_and_told_to_be_many(as_role, filled):
    replay = Run.objects.get(mode="replay")
    words = told(page(as_role("viewer"), "compare_runs", query=f"?runs={filled.good.pk}&runs={filled.bad.pk}&runs={replay.pk}"))
    assert "after Holm, since 2 are compared" in words
    assert "mercury cannot be told from mercury" in words


def test_comparing_begins_with_a_choice(as_role, filled):
    words = told(page(as_role("viewer"), "compare_runs", query=f"?runs={filled.good.pk}"))
    assert "Compare with another" in words
    assert "scout" in words
    assert "There is no run run_nope" in told(page(as_role("viewer"), "compare_runs", query=f"?runs={filled.good.pk}&runs=run_nope"))


def test_the_self_check_tells_its_rate_of_false_alarms(as_role, filled):
    words = told(page(as_role("viewer"), "self_checks"))
    assert "False alarms 4%" in words
    assert "sound" in words


# ------------------------------------------------------------------ launching


def look(client, **said):
    return client.get(reverse("pages:launch"), {"look": "1", **said})


def test_a_launch_is_looked_at_first_and_made_once(as_role, filled):
    client, before = as_role("judge"), Run.objects.count()
    said = {"benchmark": filled.benchmark.pk, "subset": filled.small.pk, "sut": "mercury", "tasks": "5", "cost": "2.5", "tags": "a, b", "trials": "2"}
    html = look(client, **said).content.decode()
    words = told(html)
    assert "mercury 5 tasks, 2 times each: 10 calls" in words
    assert "about $0.00" in words
    assert "at most $" in words
    assert "groq-eu" in words or "local" in words
    assert "What is 0 + 0?" in words
    assert Run.objects.count() == before, "looking makes nothing"
    once = re.search(r'name="once" value="(\w+)"', html)[1]
    first, second = (client.post(reverse("pages:launch"), {**said, "once": once}) for _ in range(2))
    assert first.url == second.url
    made = Run.objects.exclude(pk__in=[]).latest("created_at")
    assert Run.objects.count() == before + 1
    assert (made.owner, made.total, made.trials, made.tags, made.limits["run"]["cost"], made.scope) == ("judge", 5, 2, ["a", "b"], 2.5, "limited")
    assert first.url == reverse("pages:run", args=[made.pk])


def test_a_collection_is_reckoned_with_all_its_seats(as_role, filled):
    words = told(look(as_role("judge"), benchmark=filled.benchmark.pk, subset=filled.small.pk, sut="bench/core:merged").content.decode())
    assert "bench/core:merged 20 tasks" in words
    assert words.count(" at groq-eu") + words.count(" at local") >= 2


@pytest.mark.parametrize(
    ("said", "expected"),
    [
        ({"sut": "mercuri"}, "There is no model mercuri"),
        ({"sut": ""}, "sut says whom the run tests"),
        ({"sut": "mercury", "trials": "0"}, "must be a whole number from 1 to 100"),
        ({"sut": "mercury", "cost": "-1"}, "must be a number above 0"),
        ({"sut": "mercury", "minutes": "soon"}, "must be a number above 0"),
        ({"sut": "mercury", "impl": "imp_nope"}, "There is no impl"),
    ],
)
def test_what_a_launch_cannot_be_is_said_at_its_field(as_role, filled, said, expected):
    answer = look(as_role("judge"), benchmark=filled.benchmark.pk, subset=filled.small.pk, **said)
    assert answer.status_code in (404, 422)
    assert expected in told(answer.content.decode())
    assert 'value="mercur' in answer.content.decode() or not said.get("sut"), "what was typed stays"


def test_a_replay_may_take_only_what_failed(as_role, filled):
    client = as_role("operator")
    words = told(look(client, from_run=filled.bad.pk, only="failed").content.decode())
    assert "slow-but-sure 14 tasks: 14 calls" in words
    answer = client.post(reverse("pages:launch"), {"from_run": filled.bad.pk, "only": "ids", "task_ids": "sum-07\nsum-08"})
    made = Run.objects.latest("created_at")
    assert answer.url == reverse("pages:run", args=[made.pk])
    assert (made.mode, made.total, made.scope, made.parent_id) == ("replay", 2, "ids", filled.bad.pk)


def test_who_only_reads_launches_nothing(as_role, filled):
    assert as_role("viewer").get(reverse("pages:launch")).status_code == 403
    assert as_role("viewer").post(reverse("pages:run", args=[filled.going.pk]), {"do": "halt"}).status_code == 403
    assert as_role("judge").get(reverse("pages:benchmark_new")).status_code == 403


def test_a_sweep_launches_one_run_for_each(as_role, filled):
    client = as_role("judge")
    said = {"benchmark": filled.benchmark.pk, "subset": filled.small.pk, "models": ["mercury", "slow-but-sure", "nobody"], "name": "Two of them", "once": "k1"}
    answer = client.post(reverse("pages:sweep_new"), said)
    assert answer.status_code == 302
    words = told(client.get(answer.url).content.decode())
    assert "Two of them" in words
    assert "0 of 2 have ended" in words
    assert "There is no model nobody." in words
    assert client.post(reverse("pages:sweep_new"), said).url == answer.url
    assert "Two of them" in told(page(client, "sweeps"))
    refused = client.post(reverse("pages:sweep_new"), {"benchmark": filled.benchmark.pk, "subset": filled.small.pk})
    assert refused.status_code == 422
    assert "1 to 50 subjects" in told(refused.content.decode())


# ------------------------------------------------------------------ what is done with a run


def test_a_run_is_halted_shared_reviewed_asked_again_and_deleted(as_role, filled):
    client = as_role("operator")

    def do(run, **said):
        answer = client.post(reverse("pages:run", args=[run.pk]), said, follow=True)
        assert answer.status_code == 200
        run.refresh_from_db()
        return told(answer.content.decode())

    assert "It is halting." in do(filled.going, do="halt")
    assert filled.going.status == "halted"
    assert "halted already" in do(filled.going, do="halt")
    assert "It is shared" in do(filled.good, do="share", visibility="team")
    assert filled.good.visibility == "team"
    do(filled.good, do="review", resolution="accepted")
    assert filled.good.review_resolution == "accepted"
    assert "17 tasks are asked again" in do(filled.halted, do="requeue")
    assert filled.halted.status == "queued"
    assert "The run's data is gone." in do(filled.bad, do="delete")
    assert filled.bad.status == "deleted"
    assert "This run was deleted" in told(page(client, "run", filled.bad.pk))


def test_stored_answers_are_graded_again_and_the_old_scoring_stays(as_role, filled):
    client = as_role("operator")
    answer = client.post(reverse("pages:run_again", args=[filled.good.pk]), {"do": "rescore", "by": "grader", "grader": '{"kind": "math"}'}, follow=True)
    words = told(answer.content.decode())
    assert "Scoring 2: of 20 tasks 0 pass now that did not, 18 no longer do." in words
    assert "Scoring" in words
    assert "19 of 19 scored" not in words
    assert "Scoring 2: 0 pass now that did not, 18 no longer do" in told(page(client, "run", filled.good.pk))
    wrong = client.post(reverse("pages:run_again", args=[filled.good.pk]), {"do": "rescore", "by": "grader", "grader": "{kind"})
    assert wrong.status_code == 422
    assert "This is no JSON" in told(wrong.content.decode())


@pytest.mark.skipif(bool(box.trouble()), reason=f"no sandbox here: {box.trouble()}")
def test_stored_answers_wait_for_a_scorer_as_code_and_it_is_called_off(as_role, filled):
    client = as_role("operator")
    form = {"do": "rescore", "by": "code", "code": one_method()}
    answer = client.post(reverse("pages:run_again", args=[filled.good.pk]), form, follow=True)
    words = told(answer.content.decode())
    assert "The stored answers of 20 tasks are being graded again." in words
    assert "queued 0 of 20 tasks" in words
    one = filled.good.rescorings.get()
    answer = client.post(reverse("pages:run", args=[filled.good.pk]), {"do": "call_off", "rescoring": one.pk}, follow=True)
    assert "It is called off." in told(answer.content.decode())
    assert "cancelled 0 of 20 tasks" in told(page(client, "run", filled.good.pk))


def test_a_fork_asks_the_same_model_with_another_scorer(as_role, filled):
    client = as_role("judge")
    answer = client.post(reverse("pages:run_again", args=[filled.good.pk]), {"do": "fork", "by": "grader", "grader": '{"kind": "math", "tolerance": 0.5}'})
    made = Run.objects.get(mode="fork")
    assert answer.url == reverse("pages:run", args=[made.pk])
    assert (made.parent_id, made.subject, made.impl.grader["tolerance"]) == (filled.good.pk, "mercury", 0.5)
    assert "Fork" in told(page(client, "run", filled.good.pk))


# ------------------------------------------------------------------ authoring


def test_a_benchmark_is_made_with_a_subset_of_pasted_rows(as_role):
    client = as_role("operator")
    made = client.post(reverse("pages:benchmark_new"), {"name": "New one", "tags": "a, b", "category": "math"})
    row = Benchmark.objects.get(name="New one")
    assert made.url == reverse("pages:subset_new", args=[row.pk])
    assert row.tags == ["a", "b"]
    text = "\n".join(json.dumps(one) for one in suites.task_rows(3))
    answer = client.post(made.url, {"slug": "first", "by": "kind", "kind": "math", "rows": text, "options": '{"tolerance": 0.1}', "passes": "1"})
    assert answer.url == reverse("pages:subset", args=[row.pk, "first"])
    subset = Subset.objects.get(benchmark=row)
    assert (subset.grader, subset.recipe, subset.rolling, subset.version) == ({"kind": "math", "tolerance": 0.1}, {"passes": True}, False, 1)
    assert "No whole run yet" in told(client.get(answer.url).content.decode())


def test_more_rows_than_one_request_takes_come_from_a_file_and_are_one_version(as_role):
    client, of = as_role("operator"), suites.benchmark()
    file = SimpleUploadedFile("rows.jsonl", "\n".join(json.dumps(one) for one in suites.task_rows(1200)).encode())
    client.post(reverse("pages:subset_new", args=[of.pk]), {"slug": "long", "by": "kind", "kind": "math", "file": file})
    subset = Subset.objects.get(benchmark=of)
    assert (subset.version, subset.rows.count(), subset.rolling) == (1, 1200, False)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('{"task_id": "a"\n', "line 1"),
        ('{"task_id": "a", "input": {"question": "1?"}, "expected": {"value": NaN}}', "NaN is no JSON."),
        ('{"task_id": "a", "input": {"question": "1?"}, "expected": {"value": 1}}\n' * 2, "stands at 0 too"),
        ('{"task_id": "a", "input": {}, "expected": {"value": 1}}', "must be a text that is not empty"),
        ('[{"task_id": "a", "input": {"question": "1?"}, "expected": {"value": 1}, "extra": 1}]', "is no field of a row"),
    ],
)
def test_rows_that_cannot_be_used_are_named_and_none_is_taken(as_role, text, expected):
    client, of = as_role("operator"), suites.benchmark()
    answer = client.post(reverse("pages:subset_new", args=[of.pk]), {"slug": "bad", "by": "kind", "kind": "math", "rows": text})
    assert answer.status_code == 422
    assert expected in told(answer.content.decode())
    assert text.strip() in unescape(answer.content.decode()), "what was typed stays"
    assert not Subset.objects.filter(benchmark=of).exists()


def test_a_subset_grows_is_mended_with_a_note_and_frozen(as_role, filled):
    client, here = as_role("operator"), reverse("pages:subset_edit", args=[filled.benchmark.pk, filled.small.pk])
    more = json.dumps({"task_id": "later", "input": {"question": "1 + 1?"}, "expected": {"value": 2}})
    assert "1 new rows; 0 were there already. It is version 2 now." in told(client.post(here, {"do": "append", "rows": more}, follow=True).content.decode())
    etag = re.search(r'name="etag" value="(\w+)"', client.get(here).content.decode())[1]
    without = client.post(here, {"do": "recipe", "trials": "3", "grader": '{"kind": "math"}', "etag": etag})
    assert without.status_code == 422
    said = {"do": "recipe", "trials": "3", "grader": '{"kind": "math"}', "passes": "1", "note": "More trials", "etag": etag}
    assert "Changed: trials." in told(client.post(here, said, follow=True).content.decode())
    assert client.post(here, {**said, "trials": "4"}).status_code == 412, "somebody else changed it meanwhile"
    mended = client.post(here, {"do": "mend", "rows": more.replace("1 + 1", "1+1"), "remove": "sum-03", "note": "A typo"}, follow=True)
    assert "1 changed, 0 added, 1 removed." in told(mended.content.decode())
    old, new = Subset.objects.get(pk=filled.small.pk), Subset.objects.get(slug="small", retired_at=None)
    assert old.replaced_by == new.pk
    client.post(reverse("pages:subset_edit", args=[filled.benchmark.pk, new.pk]), {"do": "freeze"})
    new.refresh_from_db()
    assert new.rolling is False


def test_a_scorer_is_kept_and_shown(as_role, filled):
    client = as_role("operator")
    methods = [f"    def {name}: return 1.0\n" for name in ("extract(self, path, index)", "solve(self, index, input)", "score(self, index, output, expected)")]
    code = f"from bench_task import BenchTask\n\nclass Mine(BenchTask):\n{''.join(methods)}"
    here = reverse("pages:subset_edit", args=[filled.benchmark.pk, filled.small.pk])
    answer = client.post(here, {"do": "scorer", "code": code, "label": "Mine <b>"}, follow=True)
    html = answer.content.decode()
    assert "Mine &lt;b&gt;" in html
    assert "class Mine(BenchTask)" in html
    wrong = client.post(here, {"do": "scorer", "code": "def broken(:"})
    assert wrong.status_code == 422
    assert "def broken(:" in wrong.content.decode()


def test_a_benchmark_that_was_measured_by_is_not_taken_away(as_role, filled):
    client = as_role("operator")
    answer = client.post(reverse("pages:benchmark_edit", args=[filled.benchmark.pk]), {"delete": "1"})
    assert answer.status_code == 409
    client.post(reverse("pages:benchmark_edit", args=[filled.benchmark.pk]), {"name": "Sums, renamed", "tags": ""})
    filled.benchmark.refresh_from_db()
    assert filled.benchmark.name == "Sums, renamed"
    empty = suites.benchmark("Nothing")
    assert client.post(reverse("pages:benchmark_edit", args=[empty.pk]), {"delete": "1"}).url == reverse("pages:registry")


def test_somebody_elses_benchmark_is_read_and_not_changed(as_role, filled):
    Benchmark.objects.filter(pk=filled.benchmark.pk).update(owner="somebody")
    client = as_role("operator")
    words = told(page(client, "benchmark", filled.benchmark.pk))
    assert "Add a subset" not in words
    assert client.post(reverse("pages:benchmark_edit", args=[filled.benchmark.pk]), {"name": "Mine now"}).status_code == 404


# ------------------------------------------------------------------ hostile


def test_what_models_and_people_wrote_stays_text(as_role):
    seed.bench(3)
    filled = suites.fill(hostile=True)
    client = as_role("admin")
    task = Task.objects.filter(run=filled.bad).first()
    addresses = [
        reverse("pages:suite"), reverse("pages:runs"), reverse("pages:registry"), reverse("pages:run", args=[filled.bad.pk]),
        reverse("pages:task", args=[filled.bad.pk, task.pk]), reverse("pages:benchmark", args=[filled.benchmark.pk]),
        reverse("pages:subset", args=[filled.benchmark.pk, "small"]), reverse("pages:run_again", args=[filled.bad.pk]),
        reverse("pages:subset_edit", args=[filled.benchmark.pk, filled.small.pk]),
        f"{reverse('pages:compare_runs')}?runs={filled.good.pk}&runs={filled.bad.pk}",
    ]  # fmt: skip
    for address in addresses:
        answer = client.get(address)
        assert answer.status_code == 200, address
        for bad in ("<img src=x", "<script>alert", "<svg onload", "49}"):
            assert bad not in answer.content.decode(), address


# ------------------------------------------------------------------ money


def test_an_admin_grants_and_caps_and_everybody_sees_what_is_left(as_role, filled):
    admin, here = as_role("admin"), reverse("pages:money") + "?account=owner:operator"
    assert "no limit neither grants nor a cap" in told(admin.get(here).content.decode())
    once = re.search(r'name="once" value="(\w+)"', admin.get(here).content.decode())[1]
    for _ in range(2):
        admin.post(here, {"do": "grant", "amount": "12.50", "kind": "grant", "note": "For <b>tests</b>", "once": once})
    admin.post(here, {"do": "controls", "cap": "20", "alert": "1", "alert_at": "60", "refill": "", "threshold": ""})
    html = page(as_role("operator"), "money")
    words = told(html)
    assert "Left $12.50 of $12.50 granted" in words, "granted once, however often it is pressed"
    assert "$20.00" in words
    assert "alerts at 60%" in words
    assert "For <b>tests</b>" in words
    assert "<b>tests" not in html
    assert "asking a run" in words, "ended runs are lines, too"
    assert "Enter it" not in words


@pytest.mark.parametrize(
    ("said", "expected"),
    [
        ({"do": "grant", "amount": "ten"}, "must be a whole number of cents"),
        ({"do": "grant", "amount": "-1"}, "must be a whole number of cents"),
        ({"do": "controls", "alert_at": "200"}, "must be a whole number of percent from 1 to 100"),
        ({"do": "controls", "alert_at": "80", "auto": "1"}, "must say how much each allowance is"),
    ],
)
def test_what_money_cannot_be_is_said(as_role, said, expected):
    answer = as_role("admin").post(reverse("pages:money"), said)
    assert answer.status_code == 422
    assert expected in told(answer.content.decode())
    assert as_role("viewer").post(reverse("pages:money"), said).status_code == 403


def test_money_is_shown_by_kind(as_role, filled):
    assert "None yet." in told(page(as_role("operator"), "money", query="?kind=refund"))
    assert "asking" in told(page(as_role("operator"), "money", query="?kind=trace_debit"))


def test_a_models_page_and_a_collections_record_show_the_score_and_lead_to_the_runs(as_role, filled):
    client = as_role("viewer")
    html = page(client, "model", "mercury")
    assert "of tasks passed" in told(html)
    assert f"{reverse('pages:runs')}?subject=mercury" in html
    html = page(client, "collection", "core")
    assert f"{reverse('pages:runs')}?subject=mercury" in html
    listed = told(page(client, "runs", query="?subject=mercury"))
    assert "mercury" in listed
    assert "slow-but-sure" not in listed
