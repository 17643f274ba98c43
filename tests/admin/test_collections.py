"""Collections: places in order, the rules at their fields, clones, and how to ask."""

from __future__ import annotations

import shlex
from typing import Any

import pytest
from django.urls import reverse

from access.models import AuditEntry
from panels.models import Collection, Member
from tests.admin import seed
from tests.admin.conftest import trail

pytestmark = pytest.mark.django_db


@pytest.fixture
def models(db: None) -> list[Any]:
    at = seed.endpoint("groq")
    return [seed.model(alias, at) for alias in ("mercury", "venus", "earth")]


def form_of(places: dict[str, list[tuple[Any, str]]], kept: dict[str, list[Member]] | None = None, **more: str) -> dict[str, str]:
    """The form as a browser sends it: members first, then mergers, each with a model and an order number."""
    form = {
        "name": "core", "description": "", "shape": "review", "explorers": "1", "timeout_s": "300", "wait_max_s": "30", "quorum": "", "grace_s": "20",
        "first_token_timeout_s": "60", "idle_timeout_s": "120", "merge_prompt": "", "picking": "fixed", "shadow_share": "0", "keep_text": "unknown",
    }  # fmt: skip
    for prefix, place in (("places", "member"), ("places-2", "merger")):
        rows, stored = places.get(place, []), (kept or {}).get(place, [])
        form |= {f"{prefix}-TOTAL_FORMS": str(len(rows)), f"{prefix}-INITIAL_FORMS": str(len(stored))}
        for i, (model, position) in enumerate(rows):
            form |= {f"{prefix}-{i}-model": str(model.pk), f"{prefix}-{i}-position": position}
            if i < len(stored):
                form |= {f"{prefix}-{i}-id": str(stored[i].pk), f"{prefix}-{i}-collection": str(stored[i].collection_id)}
    return {**form, **more}


def seated(name: str = "core", place: str = "member") -> list[str]:
    return list(Member.objects.filter(collection__name=name, place=place).order_by("position").values_list("model__alias", flat=True))


def test_members_and_mergers_sit_in_the_order_of_their_numbers(operator, models):
    a, b, c = models
    operator.post(reverse("admin:panels_collection_add"), form_of({"member": [(a, "2"), (b, "0"), (c, "1"), (a, "")], "merger": [(c, ""), (b, "")]}))
    assert seated() == ["venus", "earth", "mercury", "mercury"]
    assert seated(place="merger") == ["earth", "venus"]
    assert list(Member.objects.filter(place="member").order_by("position").values_list("position", flat=True)) == [0, 1, 2, 3]


def test_a_drag_is_kept_and_the_trail_tells_before_and_after(operator, models):
    a, b, c = models
    row = seed.collection("core", [a, b, c])
    stored = list(Member.objects.filter(collection=row).order_by("position"))
    operator.post(
        reverse("admin:panels_collection_change", args=[row.pk]),
        form_of({"member": [(a, "2"), (b, "0"), (c, "1")]}, {"member": stored}),
    )
    assert seated() == ["venus", "earth", "mercury"]
    entry = AuditEntry.objects.get()
    assert (entry.action, entry.target) == ("collection.change", "core")
    assert entry.changes == {"members": [["mercury", "venus", "earth"], ["venus", "earth", "mercury"]]}


def test_a_member_is_taken_out(operator, models):
    a, b, _ = models
    row = seed.collection("core", [a, b])
    stored = list(Member.objects.filter(collection=row).order_by("position"))
    operator.post(
        reverse("admin:panels_collection_change", args=[row.pk]),
        form_of({"member": [(a, "0"), (b, "1")]}, {"member": stored}, **{"places-0-DELETE": "on"}),
    )
    assert seated() == ["venus"]


@pytest.mark.parametrize(
    ("field", "value", "says"),
    [
        ("name", "a/b", "must not hold"),
        ("name", "x:merged", "must not end in :merged"),
        ("name", "CORE", "is taken"),
        ("timeout_s", "0", "between 1"),
        ("timeout_s", "9999999", "between 1"),
        ("quorum", "0", "between 1"),
        ("shadow_share", "1.5", "from 0 to 1"),
        ("explorers", "101", "between 0"),
        ("explorers", "-1", "greater than or equal to 0"),
    ],
)
def test_what_cannot_be_is_said_at_its_field(operator, models, field, value, says):
    seed.collection("core", models)
    response = operator.post(reverse("admin:panels_collection_add"), form_of({}, name="other", **{}) | {field: value})
    assert response.status_code == 200
    assert says in str(response.context["adminform"].form.errors.get(field)), response.context["adminform"].form.errors


def test_a_clone_has_the_places_and_a_name_of_its_own(operator, models):
    row = seed.collection("core", models, models[:1], quorum=2, description="Review")
    address = reverse("admin:panels_collection_clone", args=[row.pk])
    assert "is taken" in operator.post(address, {"name": "Core"}).content.decode()
    operator.post(address, {"name": "core-2"})
    copy = Collection.objects.get(name="core-2")
    assert (copy.quorum, copy.description) == (2, "Review")
    assert seated("core-2") == ["mercury", "venus", "earth"]
    assert seated("core-2", "merger") == ["mercury"]
    assert trail() == [("operator", "collection.add", "core-2")]


def test_how_to_ask_is_a_command_that_a_shell_reads_as_meant(operator, models):
    name = 'it\'s <b>& $(rm -rf ~) "core"'
    row = seed.collection(name, models)
    page = operator.get(reverse("admin:panels_collection_ask_it", args=[row.pk]))
    command = page.context["ways"][0][2]
    words = shlex.split(command.replace("\\\n", " "))
    assert words[:2] == ["curl", "http://testserver/v1/chat/completions"]
    import json

    assert json.loads(words[-1])["model"] == f"bench/{name}"
    assert b"<b>&" not in page.content


def test_a_retired_member_is_struck_out(operator, models):
    seed.collection("core", models)
    models[0].status = "retired"
    models[0].save()
    assert 'class="bench-chip is-out" title="mercury"' in operator.get(reverse("admin:panels_collection_changelist")).content.decode()


def test_a_collection_without_members_says_so(operator, models):
    seed.collection("empty", [])
    assert "nobody" in operator.get(reverse("admin:panels_collection_changelist")).content.decode()
