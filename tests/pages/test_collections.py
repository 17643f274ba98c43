"""The pages of collections: making one, who sits in which order, settings, what the record suggests, and what nobody but an operator may do."""

from __future__ import annotations

import json
from datetime import timedelta
from urllib.parse import quote

import pytest
from django.urls import reverse
from django.utils import timezone

from catalog.models import Model
from panels.models import Collection, Member, Panel
from panels.verdicts import record_verdict
from tests.admin import seed
from tests.pages.conftest import trail

pytestmark = pytest.mark.django_db

LIST = "/app/collections"


def page(client, path: str, status: int = 200, **headers: str) -> str:
    answer = client.get(path, headers=headers)
    assert answer.status_code == status, answer.content[:2000]
    return answer.content.decode()


def of(name: str) -> str:
    return reverse("pages:collection", args=[name])


def seated(name: str = "core", place: str = "member") -> list[str]:
    return list(Member.objects.filter(collection__name=name, place=place).order_by("position").values_list("model__alias", flat=True))


def press(client, do: str, name: str = "core", **more: str):
    """Presses a button of a list as it stands."""
    place = do.partition(":")[0]
    was = seated(name, place.removesuffix("s"))
    return client.post(of(name), {"do": do, f"{place}.was": json.dumps(was), **more})


# ------------------------------------------------------------------ the list


def test_an_empty_bench_says_what_to_do_next(as_role):
    seed.people()
    assert "New collection" in page(as_role("operator"), LIST)
    assert "New collection" not in page(as_role("viewer"), LIST)


def test_the_list_shows_who_sits_what_is_asked_and_what_it_costs(as_role, small_bench):
    text = page(as_role("judge"), LIST)
    for said in ("core", "design", "Adversarial review", "in order", "+ 1 exploring", "Panels, 30 days", "$0.00"):
        assert said in text, said
    assert f'href="{reverse("pages:ask")}?collection=core"' in text
    assert "?collection=core" not in page(as_role("viewer"), LIST)


def test_a_collection_is_made_and_then_seated(operator, small_bench):
    assert 'name="description"' in page(operator, f"{LIST}?new=1")
    answer = operator.post(LIST, {"name": "محكمة", "description": "for hard cases", "shape": ""})
    assert answer.url == of("محكمة")
    row = Collection.objects.get(name="محكمة")
    assert (row.description, row.shape) == ("for hard cases", "review")
    assert ("operator", "collection.add", "محكمة") in trail()


@pytest.mark.parametrize("name", ["", "a/b", "core", "x:merged"])
def test_a_name_that_cannot_be_is_refused_at_its_field(operator, small_bench, name):
    answer = operator.post(LIST, {"name": name, "description": "kept as typed"})
    text = answer.content.decode()
    assert answer.status_code == 400
    assert 'id="w-name"' in text
    assert "kept as typed" in text


# ------------------------------------------------------------------ members


def test_members_move_up_and_down_and_leave(operator, small_bench):
    assert seated() == ["mercury", "slow-but-sure", "scout"]
    answer = press(operator, "members:down:0")
    assert seated() == ["slow-but-sure", "mercury", "scout"]
    assert answer.url == f"{of('core')}?focus=members-down-1#members"
    press(operator, "members:up:2")
    assert seated() == ["slow-but-sure", "scout", "mercury"]
    press(operator, "members:remove:1")
    assert seated() == ["slow-but-sure", "mercury"]
    assert [entry for entry in trail() if entry[1] == "collection.change"] == [("operator", "collection.change", "core")] * 3


def test_the_button_that_was_pressed_keeps_the_keyboard(operator, small_bench):
    was = json.dumps(seated())
    answer = operator.post(of("core"), {"do": "members:up:1", "members.was": was}, headers={"hx-request": "true"})
    text = answer.content.decode()
    assert "<html" not in text
    # At the top it can go no higher: the button beside has the focus.
    assert 'id="members-down-0" autofocus' in text
    assert "slow-but-sure is member number 1 of 3." in text


def test_a_model_is_added_by_its_alias(operator, small_bench):
    seed.model("fresh", Model.objects.first().endpoint)
    press(operator, "members:add", **{"members.add": " fresh "})
    assert seated()[-1] == "fresh"
    press(operator, "mergers:add", **{"mergers.add": "fresh"})
    assert seated(place="merger") == ["mercury", "fresh"]


@pytest.mark.parametrize("alias", ["nobody", "", "<script>alert(1)</script>"])
def test_an_alias_that_is_none_is_refused_at_its_field(operator, small_bench, alias):
    answer = press(operator, "members:add", **{"members.add": alias})
    text = answer.content.decode()
    assert answer.status_code == 400
    assert 'id="w-members"' in text
    assert "<script>alert" not in text
    assert seated() == ["mercury", "slow-but-sure", "scout"]


def test_a_list_that_somebody_else_changed_is_left_as_it_is(operator, small_bench):
    stale = json.dumps(["mercury", "slow-but-sure"])
    answer = operator.post(of("core"), {"do": "members:remove:0", "members.was": stale})
    assert answer.status_code == 400
    assert "Somebody else changed this list meanwhile" in answer.content.decode()
    assert seated() == ["mercury", "slow-but-sure", "scout"]


@pytest.mark.parametrize("do", ["members:up:9", "members:up:-1", "members:fly:0", "members:", "nonsense", "members:remove:x"])
def test_a_button_that_there_is_not_changes_nothing(operator, small_bench, do):
    assert press(operator, do).status_code == 400
    assert seated() == ["mercury", "slow-but-sure", "scout"]


# ------------------------------------------------------------------ settings


def test_settings_are_changed_in_place(operator, small_bench):
    form = page(operator, f"{of('core')}?edit=settings")
    assert 'name="shadow_share" value="0.0"' in form
    sent = {"do": "settings", "description": "new", "shape": "review", "picking": "record", "seats": "2", "explorers": "0", "quorum": "", "grace_s": "5"}
    sent |= {"timeout_s": "120", "first_token_timeout_s": "30", "idle_timeout_s": "60", "wait_max_s": "0", "shadow_share": "0.25"}
    sent |= {"failover_on_refusal": "yes", "keep_text": "no", "merge_prompt": ""}
    assert operator.post(of("core"), sent).status_code == 302
    row = Collection.objects.get(name="core")
    assert (row.picking, row.seats, row.explorers, row.quorum, row.grace_s) == ("record", 2, 0, None, 5)
    assert (row.timeout_s, row.wait_max_s, row.shadow_share, row.failover_on_refusal, row.keep_text, row.merge_prompt) == (120, 0, 0.25, True, False, None)
    shown = page(operator, of("core"))
    assert "by record" in shown
    assert "<dt>Explorers</dt><dd>0</dd>" in shown
    operator.post(of("core"), {"do": "settings", "seats": "", "keep_text": ""})
    row.refresh_from_db()
    assert (row.seats, row.keep_text) == (None, None)


@pytest.mark.parametrize(
    ("field", "said"), [("timeout_s", "soon"), ("seats", "0"), ("shadow_share", "2"), ("quorum", "-1"), ("merge_prompt", "{% nonsense %}")]
)
def test_a_setting_that_cannot_be_is_refused_at_its_field_with_what_was_typed(operator, small_bench, field, said):
    answer = operator.post(of("core"), {"do": "settings", field: said, "description": "typed meanwhile"})
    text = answer.content.decode()
    assert answer.status_code == 400
    assert f'id="w-{field}"' in text
    assert "typed meanwhile" in text


def test_a_collection_is_deleted_and_its_panels_stay(operator, small_bench):
    before = Panel.objects.filter(collection="core").count()
    assert operator.post(of("core"), {"do": "delete"}).url == LIST
    assert not Collection.objects.filter(name="core").exists()
    assert Panel.objects.filter(collection="core").count() == before
    assert ("operator", "collection.delete", "core") in trail()
    page(operator, of("core"), 404)


@pytest.mark.parametrize("role", ["viewer", "judge"])
def test_only_operators_change_collections(as_role, small_bench, role):
    client = as_role(role)
    text = page(client, of("core"))
    for offered in ("Edit the settings", "Delete", "Move mercury", "Add a model"):
        assert offered not in text
    assert press(client, "members:remove:0").status_code == 403
    for form in ({"do": "settings", "explorers": "3"}, {"do": "delete"}):
        assert client.post(of("core"), form).status_code == 403
    assert client.post(LIST, {"name": "mine"}).status_code == 403
    assert seated() == ["mercury", "slow-but-sure", "scout"]


# ------------------------------------------------------------------ the record


@pytest.fixture
def judged(db: None) -> Collection:
    """A collection whose explorer does far better than its weakest member, and whose members err together."""
    seed.people()
    models = [seed.model(alias, seed.endpoint(f"at-{alias}")) for alias in ("strong", "weak", "newcomer")]
    row = seed.collection("core", models[:2])
    now = timezone.now()
    for n in range(40):
        panel = seed.panel(row, models[:2], now - timedelta(hours=n + 1), texts=["It is 4."])
        more = seed.panel(row, models[2:], now - timedelta(hours=n + 1), texts=["It is 4."])
        for seat in (*panel.seats.all(), *more.seats.all()):
            is_good = seat.model != "weak" or n % 10 == 0
            record_verdict("judge", seat.call, is_good, "", ["fine"] if n % 3 else [], [] if n % 3 else [f"claim number {n} is wrong"], now)
    return row


def test_what_the_record_suggests_is_applied_with_one_button(operator, judged):
    text = page(operator, of("core"))
    assert "What the record suggests" in text
    assert "over 99% sure" in text
    assert operator.post(of("core"), {"do": "apply", "kind": "promote", "model": "newcomer"}).status_code == 302
    assert seated() == ["strong", "weak", "newcomer"]
    again = operator.post(of("core"), {"do": "apply", "kind": "promote", "model": "newcomer"})
    assert again.status_code == 400
    assert "does not suggest that any more" in again.content.decode()


def test_how_alike_members_err_stands_with_its_interval(as_role, judged):
    text = page(as_role("viewer"), of("core"))
    assert "independent ones" in text
    assert "Both wrong" in text
    assert "mean of the newest 20" in text


def test_names_of_any_kind_have_their_page(operator, hostile_bench):
    seed.collection("new", [])
    for name in Collection.objects.values_list("name", flat=True):
        for query in ("", "?edit=settings"):
            text = page(operator, f"/app/collections/{quote(name, safe='')}{query}")
            for bad in ("<img src=x", "<script>alert", "<svg onload", "onerror=alert(1)>"):
                assert bad not in text
    assert "<img src=x" not in page(operator, LIST)
