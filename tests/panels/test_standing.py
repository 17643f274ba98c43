"""What a collection's record suggests, how independent its seats are, at the API and in the admin; nothing happens by itself."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from django.test import Client
from django.urls import reverse

from access.models import AuditEntry, User
from panels import rosterfile, suggestions, tally
from panels.beta import rate
from panels.models import Collection, Member, Seat, Verdict
from panels.records import Record
from tests.panels.conftest import NOW, Api, make_collection, make_model, make_panel, ok


def record(model: str, yes: float, of: float, counted: float | None = None) -> Record:
    return Record("core", model, int(of), of, 1, rate(yes, of, None if counted is None else counted * yes / of, counted), rate(0, of), 0, 0)


def told(records: list[Record], members: str = "abc", playable: str = "abcxyz") -> list[tuple[str, str, str]]:
    return [(s.kind, s.model, s.than) for s in suggestions.suggestions(records, list(members), set(playable))]


@pytest.mark.parametrize(
    ("records", "expected"),
    [
        ([], []),
        ([record("a", 15, 20), record("b", 14, 20), record("c", 13, 20), record("x", 15, 20)], []),
        (
            [record("a", 15, 20), record("b", 14, 20), record("c", 5, 20), record("x", 15, 20)],
            [("promote", "x", "c"), ("bench", "c", "x")],
        ),
        # Too few judged, or all of it long ago: nothing is said.
        ([record("a", 15, 20), record("b", 14, 20), record("c", 5, 20), record("x", 9, 9)], [("bench", "c", "a")]),
        ([record("a", 15, 20), record("b", 14, 20), record("c", 5, 20), record("x", 4, 4, counted=40)], [("bench", "c", "a")]),
        ([record("a", 15, 20), record("c", 1, 9), record("x", 20, 20)], [("promote", "x", "a"), ("bench", "a", "x")]),
        # A model that plays only where it is named, or that is retired, is no candidate.
        ([record("a", 15, 20), record("b", 14, 20), record("c", 5, 20), record("q", 20, 20)], [("bench", "c", "a")]),
    ],
)
def test_only_what_is_sure_is_suggested(records, expected) -> None:
    assert told(records) == expected


def test_two_members_are_left_in_any_case() -> None:
    found = told([record("a", 15, 20), record("b", 1, 20), record("x", 19, 20)], members="ab")
    assert found == [("promote", "x", "b")]


def test_a_suggestion_holds_its_numbers() -> None:
    one = suggestions.suggestions([record("a", 5, 20), record("x", 15, 20)], ["a"], {"x"})[0]
    assert one.probability > 0.99
    assert (one.useful.counted, one.useful_than.counted) == (20, 20)
    assert one.reason.startswith("x is useful in 73% (")
    assert "20 judged) against a is useful in 27%" in one.reason


# ------------------------------------------------------------------ at the doors


def judged(shares: dict[str, int], panels: int = 40, false: dict[str, list[str]] | None = None) -> None:
    """Panels in which each model was judged: useful in so many of ten, with these false claims where it was not."""
    seats, verdicts = [], []
    for n in range(panels):
        panel = make_panel(*[{"model": model, "called": False} for model in shares])
        for seat in Seat.objects.filter(panel=panel):
            useful = n % 10 < shares[seat.model]
            claims = [] if useful else (false or {}).get(seat.model, [])
            verdicts.append(Verdict(call=seat.call, judge="ada", model=seat.model, collection="core", useful=useful, false=claims, at=NOW))
        seats.append(panel)
    Verdict.objects.bulk_create(verdicts)
    tally.rebuild()


@pytest.fixture
def as_role(db: None) -> Callable[[str], Client]:
    def sign_in(role: str) -> Client:
        browser = Client()
        browser.force_login(User.objects.create_user(username=role, role=role), backend="access.backends.RoleBackend")
        return browser

    return sign_in


@pytest.fixture(autouse=True)
def collected_static_files(settings: Any, tmp_path: Path) -> None:
    settings.STATIC_ROOT = tmp_path


@pytest.fixture
def bench(db: None) -> None:
    for alias in ("mercury", "venus", "mars", "pluto"):
        make_model(alias)
    make_collection("core", ("mercury", "venus", "mars"))
    judged({"mercury": 8, "venus": 7, "mars": 2, "pluto": 9}, false={"venus": ["The lock is held twice"], "mars": ["the lock is held twice!"]})


def members() -> list[str]:
    return list(Member.objects.filter(place="member").order_by("position").values_list("model__alias", flat=True))


def test_a_collection_shows_suggestions_and_how_independent_it_is(bench: None, operator: Api, django_assert_max_num_queries: Any) -> None:
    with django_assert_max_num_queries(15):
        shown = ok(operator.get("collections/core"))
    assert [(s["kind"], s["model"], s["than"]) for s in shown["suggestions"]] == [("promote", "pluto", "mars"), ("bench", "mars", "pluto")]
    assert shown["half_life_days"] == 60
    together = shown["independence"]
    assert (together["seats"], together["panels"], together["needs"]) == (3, 40, "")
    assert 1 < together["effective"] < 3
    [first, *_] = together["pairs"]
    assert (first["one"], first["other"], first["both_wrong"], first["shared"]["counted_yes"]) == ("mars", "venus", 12, 12)
    [mercury] = [r for r in shown["records"] if r["model"] == "mercury"]
    assert (mercury["judged"], mercury["useful"]["counted_yes"], mercury["useful"]["counted"]) == (40, 32, 40)
    assert members() == ["mercury", "venus", "mars"], "nothing happens by itself"


def test_too_little_judged_is_said(operator: Api) -> None:
    make_model("mercury")
    make_model("venus")
    make_collection("core", ("mercury", "venus"))
    together = ok(operator.get("collections/core"))["independence"]
    assert together["effective"] is None
    assert together["needs"].startswith("Needs about 30 more panels")


def test_an_operator_takes_a_suggestion_up_with_one_click(bench: None, as_role: Any) -> None:
    page = reverse("admin:panels_collection_record_page", args=[Collection.objects.get().pk])
    browser = as_role("operator")
    shown = browser.get(page).content.decode()
    assert "Make pluto a member." in shown
    assert "seats amount to about" in shown
    browser.post(page, {"suggestion": "promote:pluto"})
    assert members() == ["mercury", "venus", "mars", "pluto"]
    browser.post(page, {"suggestion": "bench:mars"})
    assert members() == ["mercury", "venus", "pluto"]
    trail = AuditEntry.objects.filter(action="collection.change").order_by("id")
    assert [e.changes["members"][1] for e in trail] == [["mercury", "venus", "mars", "pluto"], ["mercury", "venus", "pluto"]]
    assert {e.actor for e in trail} == {"operator"}
    # What the record does not say, or not any more, is not done.
    for said in ("promote:pluto", "bench:mercury", "burn:mercury", "", "promote:"):
        browser.post(page, {"suggestion": said})
    assert members() == ["mercury", "venus", "pluto"]


def test_who_only_reads_sees_suggestions_and_cannot_take_them_up(bench: None, as_role: Any) -> None:
    page = reverse("admin:panels_collection_record_page", args=[Collection.objects.get().pk])
    browser = as_role("viewer")
    shown = browser.get(page).content.decode()
    assert "Make pluto a member." in shown
    assert "Do it" not in shown
    assert browser.post(page, {"suggestion": "promote:pluto"}).status_code == 403
    assert members() == ["mercury", "venus", "mars"]


def test_names_of_models_are_text_on_the_page(as_role: Any, db: None) -> None:
    make_model("<b>x</b>")
    make_model("venus")
    make_collection("core", ("venus",))
    judged({"venus": 1, "<b>x</b>": 9})
    shown = as_role("operator").get(reverse("admin:panels_collection_record_page", args=[Collection.objects.get().pk])).content.decode()
    assert "Make &lt;b&gt;x&lt;/b&gt; a member." in shown
    assert "<b>x</b>" not in shown


def test_a_roster_file_says_how_many_sit(db: None) -> None:
    rosterfile.load("collections: [{name: core, picking: record, seats: 3}, {name: all, seats: null}]")
    assert dict(Collection.objects.values_list("name", "seats")) == {"core": 3, "all": None}
    assert [c.get("seats") for c in rosterfile.dump()["collections"]] == [None, 3]
    with pytest.raises(rosterfile.RosterError, match="seats"):
        rosterfile.load("collections: [{name: core, seats: 0}]")
