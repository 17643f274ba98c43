"""The pages of models: what each role sees, sorting and filtering, what is done to one or several, and how refusals show."""

from __future__ import annotations

from datetime import timedelta
from decimal import Decimal
from urllib.parse import quote

import pytest
from django.urls import reverse
from django.utils import timezone

from access.ids import new_id
from catalog.models import Model, Price
from health.models import Errand, ModelHealth, Probe
from panels.models import Member
from panels.pages import allowances
from tests.admin import seed
from tests.pages.conftest import trail

pytestmark = pytest.mark.django_db

LIST = "/app/models"


def page(client, path: str, status: int = 200, **headers: str) -> str:
    answer = client.get(path, headers=headers)
    assert answer.status_code == status, answer.content[:2000]
    return answer.content.decode()


def of(alias: str) -> str:
    return reverse("pages:model", args=[alias])


def order(text: str) -> list[str]:
    return [part.split('"')[0] for part in text.split('name="models" value="')[1:]]


# ------------------------------------------------------------------ the list


def test_an_empty_bench_says_what_to_do_next(as_role):
    seed.people()
    assert "Discover models" in page(as_role("operator"), LIST)
    empty = page(as_role("viewer"), LIST)
    assert "The bench is empty" in empty
    assert "Discover models" not in empty


def test_the_list_shows_each_model_with_its_state_and_figures(as_role, small_bench):
    ModelHealth.objects.create(model="mercury", speed={"short": {"ttft_ms": 310, "tokens_per_s": 50.0, "of": 5, "at": timezone.now().isoformat()}})
    text = page(as_role("viewer"), LIST)
    for said in (
        "mercury",
        "slow-but-sure",
        "scout",
        "resting",
        "retired",
        "Answers in the wrong language.",
        "310 ms",
        "$0.50 / $1.50",
        "judged",
        "30 req/min",
        "4 at once",
    ):
        assert said in text, said
    assert text.count('class="interval"') >= 4


def test_who_only_reads_is_offered_no_change(as_role, small_bench):
    assert 'value="retire"' not in page(as_role("viewer"), LIST)
    assert "Compare" in page(as_role("viewer"), LIST)
    assert 'value="retire"' in page(as_role("operator"), LIST)
    whole = page(as_role("viewer"), of("mercury"))
    assert "Edit the facts" not in whole
    assert "Delete" not in whole


def test_a_list_is_sorted_and_its_head_says_which_way(operator, small_bench):
    assert order(page(operator, LIST)) == ["mercury", "scout", "slow-but-sure"]
    assert order(page(operator, f"{LIST}?sort=-alias")) == ["slow-but-sure", "scout", "mercury"]
    text = page(operator, f"{LIST}?sort=seats")
    assert order(text) == ["scout", "slow-but-sure", "mercury"]
    assert 'aria-sort="descending" class="number"><a class="sort" href="?sort=-seats">' in text
    assert order(page(operator, f"{LIST}?sort=luck")) == order(page(operator, LIST))


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ("status=retired", ["scout"]),
        ("status=resting", ["slow-but-sure"]),
        ("endpoint=local", ["mercury"]),
        ("find=SCO", ["scout"]),
        ("can=tools", ["mercury", "scout"]),
        ("can=vision", ["mercury"]),
        ("free=1", []),
    ],
)
def test_a_list_is_filtered(operator, small_bench, query, found):
    text = page(operator, f"{LIST}?{query}")
    assert order(text) == found
    assert found or "No model fits" in text


def test_htmx_is_given_the_list_alone(operator, small_bench):
    part = page(operator, f"{LIST}?find=scout", hx_request="true")
    assert "<html" not in part
    assert order(part) == ["scout"]


def test_a_long_list_comes_in_pages(operator):
    seed.bench(120)
    first = page(operator, LIST)
    assert len(order(first)) == 50
    assert "50 models shown of 120" in first
    token = first.split("page_token=")[1].split('"')[0]
    second = page(operator, f"{LIST}?page_token={token}")
    assert not set(order(first)) & set(order(second))


def test_fields_for_an_alias_are_offered_what_there_is(operator, hostile_bench):
    text = page(operator, f"{LIST}?options=members.add&members.add=img")
    assert "&lt;img src=x onerror=alert(1)&gt;" in text
    assert "<img" not in text


# ------------------------------------------------------------------ several at once


def test_several_are_retired_with_one_reason_and_restored(operator, small_bench):
    asked = page(operator, f"{LIST}?do=retire&models=mercury&models=slow-but-sure")
    assert "Retire 2 models" in asked
    answer = operator.post(LIST, {"do": "retire", "models": ["mercury", "slow-but-sure"], "reason": "too dear"})
    assert (answer.status_code, answer.url) == (302, LIST)
    assert "Retired mercury, slow-but-sure." in page(operator, LIST)
    assert set(Model.objects.values_list("status", flat=True)) == {"retired"}
    assert ("operator", "model.retire", "mercury") in trail()
    operator.post(LIST, {"do": "restore", "models": ["mercury"], "reason": "cheaper now"})
    assert Model.objects.get(alias="mercury").status == "active"


def test_nothing_is_retired_without_a_reason(operator, small_bench):
    answer = operator.post(LIST, {"do": "retire", "models": ["mercury"], "reason": "  "})
    assert answer.status_code == 400
    assert 'aria-describedby="reason-wrong"' in answer.content.decode()
    assert Model.objects.get(alias="mercury").status == "active"


def test_what_one_model_refuses_does_not_hold_up_the_others(operator, small_bench):
    operator.post(LIST, {"do": "retire", "models": ["scout", "mercury", "nobody"], "reason": "spring cleaning"})
    text = page(operator, LIST)
    assert Model.objects.get(alias="mercury").status == "retired"
    assert "There is no model nobody" in text


def test_a_probe_tells_its_cost_beforehand_and_is_queued(operator, small_bench):
    asked = page(operator, f"{LIST}?do=probe&models=mercury&models=scout")
    assert "1 call, about $0.00" in asked
    assert "Not probed" in asked
    answer = operator.post(LIST, {"do": "probe", "models": ["mercury"], "kind": "perf"})
    assert answer.url == of("mercury")
    assert Errand.objects.filter(kind="perf").exists()


def test_ad_hoc_is_set_and_taken_back(operator, small_bench):
    operator.post(LIST, {"do": "ad_hoc", "models": ["mercury", "slow-but-sure"]})
    assert Model.objects.filter(ad_hoc=True).count() == 2
    operator.post(of("mercury"), {"do": "not_ad_hoc"})
    assert not Model.objects.get(alias="mercury").ad_hoc


@pytest.mark.parametrize("role", ["viewer", "judge"])
def test_only_operators_change_models(as_role, small_bench, role):
    client = as_role(role)
    assert client.post(LIST, {"do": "retire", "models": ["mercury"], "reason": "x"}).status_code == 403
    for form in ({"do": "facts", "facts.vision": "yes"}, {"do": "limits", "limits.parallel": "1"}, {"do": "delete"}):
        assert client.post(of("mercury"), form).status_code == 403
    assert Model.objects.get(alias="mercury").status == "active"


def test_nothing_chosen_leads_back_to_the_list(operator, small_bench):
    assert operator.get(f"{LIST}?do=retire").url == LIST


# ------------------------------------------------------------------ one model


def test_a_model_shows_its_facts_with_their_sources(as_role, small_bench):
    text = page(as_role("viewer"), of("mercury"))
    for said in ("Context window", "8,192", "endpoint list", "set by hand", "Record by collection", "core", "Prices by date", "2026-01-01"):
        assert said in text, said


def test_facts_set_by_hand_go_before_the_list_and_are_taken_back(operator, small_bench):
    form = page(operator, f"{of('mercury')}?edit=facts")
    assert "endpoint list says 8192" in form
    sent = {"do": "facts", "facts.context_window": "65,536", "facts.vision": "no", "facts.output_limit": "", "facts.input_usd_per_mtok": "0.25"}
    assert operator.post(of("mercury"), sent).status_code == 302
    row = Model.objects.get(alias="mercury")
    assert row.facts == {"context_window": 65536, "vision": False}
    assert Price.objects.filter(model=row, input_usd_per_mtok=Decimal("0.25")).exists()
    assert ("operator", "model.change", "mercury") in trail()
    before = len(trail())
    operator.post(of("mercury"), {"do": "facts", "facts.context_window": "65536", "facts.vision": "no"})
    assert len(trail()) == before, "what stayed as it was is no change"


def test_a_fact_that_is_none_is_refused_at_its_field_with_what_was_typed(operator, small_bench):
    answer = operator.post(of("mercury"), {"do": "facts", "facts.context_window": "a lot", "facts.output_limit": "4096"})
    text = answer.content.decode()
    assert answer.status_code == 400
    assert 'value="a lot" inputmode="decimal" autocomplete="off" autofocus aria-invalid="true" aria-describedby="w-facts.context_window"' in text
    assert 'id="w-facts.context_window"' in text
    assert 'value="4096"' in text


def test_limits_are_set_and_shadow_limits_stay(operator, small_bench):
    Model.objects.filter(alias="mercury").update(limits={"shadow": {"parallel": 2}, "parallel": 9})
    operator.post(of("mercury"), {"do": "limits", "limits.requests.minute": "30", "limits.tokens.day": "1,000,000", "limits.parallel": ""})
    kept = {"shadow": {"parallel": 2}, "requests": {"minute": 30}, "tokens": {"day": 1_000_000}}
    assert Model.objects.get(alias="mercury").limits == kept
    assert "30 of 30 left" in page(operator, of("mercury"))
    answer = operator.post(of("mercury"), {"do": "limits", "limits.requests.minute": "-3"})
    assert answer.status_code == 400
    assert 'id="w-limits.requests.minute"' in answer.content.decode()


def test_a_model_that_a_collection_seats_cannot_be_deleted(operator, small_bench):
    answer = operator.post(of("mercury"), {"do": "delete"})
    assert answer.status_code == 400
    assert "Something still uses this" in answer.content.decode()
    Member.objects.all().delete()
    assert operator.post(of("mercury"), {"do": "delete"}).url == LIST
    assert not Model.objects.filter(alias="mercury").exists()
    page(operator, of("mercury"), 404)


def test_what_happened_and_calls_and_days_have_their_tabs(as_role, small_bench):
    now = timezone.now()
    for n in range(3):
        said = {"outcome": "failed", "fault": "server", "status": "error", "message": "503 <b>overloaded</b>"}
        Probe.objects.create(attempt=new_id("att"), model="mercury", endpoint="local", kind="word", at=now - timedelta(days=n), **said)
    viewer = as_role("viewer")
    assert "503 &lt;b&gt;overloaded" in page(viewer, f"{of('mercury')}?tab=evidence")
    assert "Answers in the wrong language." in page(viewer, f"{of('scout')}?tab=evidence")
    calls = page(viewer, f"{of('mercury')}?tab=calls")
    assert "panel" in calls
    assert page(viewer, f"{of('mercury')}?tab=calls&status=failed")
    for days in (30, 365):
        text = page(viewer, f"{of('mercury')}?tab=history&days={days}")
        assert ("Verdicts a week" if days == 365 else "Verdicts a day") in text
    assert "30 days</a>" in page(viewer, f"{of('scout')}?tab=history&days=many")
    page(viewer, f"{of('mercury')}?tab=nonsense")


def test_names_of_any_kind_have_their_page(operator, hostile_bench):
    seed.model("a/b:free", Model.objects.first().endpoint)
    seed.model("compare", Model.objects.first().endpoint)
    for alias in Model.objects.values_list("alias", flat=True):
        for tab in ("", "history", "evidence", "calls"):
            text = page(operator, f"/app/models/{quote(alias, safe='')}?tab={tab}")
            assert "<img src=x" not in text
            assert "<script>alert" not in text
            assert "<svg onload" not in text
    assert "Record by collection" in page(operator, "/app/models/compare")


def test_a_model_that_is_not_there_is_a_page_that_says_so(operator, small_bench):
    assert "There is no model nobody" in page(operator, of("nobody"), 404)


# ------------------------------------------------------------------ comparing


def test_models_stand_side_by_side(as_role, small_bench):
    Price.objects.filter(model__alias="scout").update(input_usd_per_mtok=Decimal("0.1"))
    text = page(as_role("viewer"), "/app/models/compare?models=mercury&models=scout&models=mercury&models=nobody")
    assert text.count('<th scope="col">') >= 3
    assert "There is no model nobody" in text
    assert '<td class="best">$0.10 <span class="small good">best</span></td>' in text
    assert "Useful, by collection" in page(as_role("viewer"), "/app/models/compare?models=mercury&models=slow-but-sure")


def test_comparing_begins_with_nobody_and_ends_at_six(operator):
    seed.bench(9)
    assert "Nothing to compare yet" in page(operator, "/app/models/compare")
    everybody = "&".join(f"models={quote(alias, safe='')}" for alias in Model.objects.values_list("alias", flat=True))
    assert "At most 6 models" in page(operator, f"/app/models/compare?{everybody}")


def test_comparing_escapes_names(operator, hostile_bench):
    text = page(operator, "/app/models/compare?" + "&".join(f"models={quote(name, safe='')}" for name in seed.HOSTILE[:6]))
    assert "<img src=x" not in text
    assert "<script>alert" not in text


# ------------------------------------------------------------------ limits in words


@pytest.mark.parametrize(
    ("limits", "left", "first"),
    [
        ({"requests": {"minute": 10, "day": 100}}, {"requests": {"minute": 9, "day": 3}}, ("requests a day", 3, 100, True)),
        ({"parallel": 4}, {"parallel": 0}, ("calls at once", 0, 4, True)),
        ({"tokens": {"month": 1000}}, {"tokens": {"month": 900}}, ("tokens a month", 900, 1000, False)),
    ],
)
def test_the_scarcest_limit_stands_first(limits, left, first):
    found = allowances.left_of({"limits": limits, "limits_left": {"model": left, "endpoint": {"parallel": 7}}})
    assert (found[0].title, found[0].left, found[0].limit, found[0].is_low) == first
    assert found[-1].scope == "endpoint"


def test_what_judges_say_stands_on_the_models_page(as_role, hostile_bench):
    from panels.models import Verdict

    verdict = Verdict.objects.filter(current=True).first()
    Verdict.objects.filter(pk=verdict.pk).update(note="<b>bold</b> & right", real=["it races"], false=["<script>alert(1)</script>"])
    page = as_role("viewer").get(reverse("pages:model", args=[verdict.model]), {"tab": "verdicts"}).content.decode()
    assert "&lt;b&gt;bold&lt;/b&gt; &amp; right" in page
    assert "it races" in page
    assert "<script>alert(1)" not in page


def test_nobody_judged_says_what_waits(as_role, small_bench):
    from catalog.models import Model
    from panels.models import Verdict

    Verdict.objects.all().delete()
    page = as_role("judge").get(reverse("pages:model", args=[Model.objects.first().alias]), {"tab": "verdicts"}).content.decode()
    assert "Nobody has judged" in page
