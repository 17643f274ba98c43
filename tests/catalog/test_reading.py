"""Reading public catalogs from a server: what comes is taken over, what does not harms nothing."""

from __future__ import annotations

import json
import zlib
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.db import connection

from access import preferences
from catalog import checks, load, offers, reading, sources
from catalog.models import Endpoint, KnownProvider, Model, Offer, Price, Source
from catalog.sources import _reading
from tests.catalog.pages import Pages
from tests.catalog.test_sources import free, model, provider, routed

NOW = datetime(2026, 1, 10, 6, tzinfo=UTC)
DAY = timedelta(days=1)


@pytest.fixture(autouse=True)
def urls(pages: Pages, settings: Any) -> None:
    settings.CATALOG_URLS = {"models_dev": f"{pages.url}/api.json", "openrouter": f"{pages.url}/models", "freellmapi": f"{pages.url}/latest"}


def catalog(*names: str, **more: Any) -> dict[str, Any]:
    return {"nest": provider({name: model(**more) for name in names})}


def read(day: datetime = NOW, name: str = "models_dev") -> reading.Read:
    return reading.read_one(name, day)


def listed(name: str = "models_dev") -> list[str]:
    return [offer.served_name for offer in offers.offers(names=[name])]


def source(name: str = "models_dev") -> Source:
    return Source.objects.get(name=name)


@pytest.mark.django_db
def test_a_catalog_is_read_into_offers_and_providers(pages: Pages) -> None:
    pages.put("/api.json", catalog("owl-1", "owl-2"))
    done = read()
    assert (done.state, done.offers, done.added, done.changed, done.gone, done.error) == ("changed", 2, 2, 0, 0, "")
    first = offers.offers()[0]
    assert (first.source, first.provider, first.served_name, first.first_seen_at, first.gone_at) == ("models_dev", "nest", "owl-1", NOW, None)
    assert first.prices == {"input_usd_per_mtok": "1.5", "output_usd_per_mtok": "6"}
    nest = offers.known_providers()["nest"]
    assert (nest.base_url, nest.kind) == ("https://api.nest.example/v1", "openai")
    state = reading.states()[0]
    assert (state.name, state.title, state.read_at, state.changed_at, state.error, state.offers, state.is_on) == (
        "models_dev",
        "models.dev",
        NOW,
        NOW,
        "",
        2,
        True,
    )


@pytest.mark.django_db
def test_nothing_of_ours_is_sent(pages: Pages) -> None:
    Endpoint.objects.create(name="e", kind="openai", base_url="https://api.nest.example/v1")
    for path, body in (("/api.json", catalog("owl-1")), ("/models", {"data": [routed()]}), ("/latest", {"models": [free()]})):
        pages.put(path, body, Set_Cookie="a=b")
    reading.read_all(NOW)
    reading.read_all(NOW + DAY)
    assert {name for _, headers in pages.asked for name in headers} == {"host", "user-agent", "accept", "accept-encoding", "connection"}
    assert {headers["user-agent"] for _, headers in pages.asked} == {"benchwarmers"}


@pytest.mark.django_db
def test_a_catalog_is_asked_only_for_changes_and_an_unchanged_one_is_as_good_as_read(pages: Pages) -> None:
    pages.put("/api.json", catalog("owl-1"), ETag='"v1"', Last_Modified="Sun, 29 Nov 2026 00:00:00 GMT")
    read()
    pages.put("/api.json", b"", 304)
    done = read(NOW + DAY)
    assert (done.state, done.offers, listed()) == ("unchanged", 1, ["owl-1"])
    asked = pages.asked[-1][1]
    assert (asked["if-none-match"], asked["if-modified-since"]) == ('"v1"', "Sun, 29 Nov 2026 00:00:00 GMT")
    assert (source().read_at, source().changed_at) == (NOW + DAY, NOW)


@pytest.mark.django_db
def test_the_same_body_again_is_unchanged_without_the_catalogs_help(pages: Pages) -> None:
    pages.put("/api.json", catalog("owl-1"))
    read()
    assert read(NOW + DAY).state == "unchanged"
    assert (source().read_at, source().changed_at) == (NOW + DAY, NOW)


@pytest.mark.django_db
def test_a_newer_reading_of_ours_reads_an_old_body_again(pages: Pages) -> None:
    pages.put("/api.json", catalog("owl-1"), ETag='"v1"')
    read()
    Source.objects.update(reader=reading.READER - 1)
    assert read(NOW + DAY).state == "changed"
    assert "if-none-match" not in pages.asked[-1][1]


@pytest.mark.django_db
def test_what_is_new_changed_and_gone_is_told_apart(pages: Pages) -> None:
    pages.put("/api.json", catalog("owl-1", "owl-2", "owl-3"))
    read()
    body = catalog("owl-1", "owl-2", "owl-4")
    body["nest"]["models"]["owl-2"]["cost"] = {"input": 9, "output": 9}
    pages.put("/api.json", body)
    done = read(NOW + DAY)
    assert (done.offers, done.added, done.changed, done.gone) == (3, 1, 1, 1)
    every = {offer.served_name: offer for offer in offers.offers(with_gone=True)}
    assert {name: offer.first_seen_at for name, offer in every.items()} == {"owl-1": NOW, "owl-2": NOW, "owl-3": NOW, "owl-4": NOW + DAY}
    assert {name: offer.gone_at for name, offer in every.items() if offer.gone_at} == {"owl-3": NOW + DAY}
    assert {name: offer.seen_at for name, offer in every.items()}["owl-3"] == NOW
    assert every["owl-2"].prices["input_usd_per_mtok"] == "9"


@pytest.mark.django_db
def test_what_comes_back_is_the_same_offer_as_before(pages: Pages) -> None:
    for day, names in enumerate((["a", "b", "c"], ["a", "b"], ["a", "b", "c"])):
        pages.put("/api.json", catalog(*names))
        read(NOW + day * DAY)
    back = Offer.objects.get(served_name="c")
    assert (back.first_seen_at, back.seen_at, back.gone_at) == (NOW, NOW + 2 * DAY, None)


# ------------------------------------------------------------------ what harms nothing


def page_500(pages: Pages) -> None:
    pages.put("/api.json", {"error": "oops"}, 500)


def page_html(pages: Pages) -> None:
    pages.put("/api.json", "<html>Sign in to the WiFi</html>", content_type="text/html")


def page_empty(pages: Pages) -> None:
    pages.put("/api.json", {})


def page_cut(pages: Pages) -> None:
    pages.put("/api.json", json.dumps(catalog("owl-1", "owl-2"))[:-200])


def page_huge(pages: Pages) -> None:
    packed = zlib.compressobj(1, zlib.DEFLATED, zlib.MAX_WBITS | 16)
    body = packed.compress(b'{"nest": "') + b"".join(packed.compress(b"x" * 1_000_000) for _ in range(300)) + packed.compress(b'"}') + packed.flush()
    pages.put("/api.json", body, Content_Encoding="gzip")


def page_moved(pages: Pages) -> None:
    pages.put("/elsewhere", catalog("evil"))
    pages.put("/api.json", b"", 302, Location=f"{pages.url}/elsewhere")


def page_none(pages: Pages) -> None:
    pages.put("/api.json", None)


def page_deep(pages: Pages) -> None:
    pages.put("/api.json", "[" * 100_000)


def page_other(pages: Pages) -> None:
    pages.put("/api.json", {"data": [routed()]})


def page_shrunk(pages: Pages) -> None:
    pages.put("/api.json", catalog("owl-1"))


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("broken", "why"),
    [
        (page_500, "not a catalog (got application/json, status 500)."),
        (page_html, "not a catalog (got text/html, status 200)."),
        (page_empty, "it is not the catalog: it lists no models."),
        (page_cut, "not a catalog (got application/json, status 200)."),
        (page_huge, "It answered more than 32,000,000 bytes."),
        (page_moved, "it redirects elsewhere, which is not followed."),
        (page_none, "The connection broke off, or it speaks no HTTP."),
        (page_deep, "not a catalog (got application/json, status 200)."),
        (page_other, "it is not the catalog: it lists no models."),
        (page_shrunk, "it lists 1 models where it listed 5. It is believed if it still says so on another day."),
    ],
)
def test_a_broken_catalog_changes_nothing_and_says_why_and_how_old_it_is(pages: Pages, broken: Callable[[Pages], None], why: str) -> None:
    pages.put("/api.json", catalog("owl-1", "owl-2", "owl-3", "owl-4", "owl-5"))
    read()
    before = list(Offer.objects.values())
    broken(pages)
    done = read(NOW + DAY)
    assert done.state == "failed"
    assert why in done.error
    assert list(Offer.objects.values()) == before
    state = reading.states()[0]
    assert (state.read_at, state.tried_at, state.offers) == (NOW, NOW + DAY, 5)
    assert state.error == done.error
    pages.put("/api.json", catalog("owl-1", "owl-2", "owl-3", "owl-4", "owl-6"))
    assert read(NOW + 2 * DAY).state == "changed"
    assert reading.states()[0].error == ""


@pytest.mark.django_db
def test_the_catalogs_own_address_may_not_be_a_private_one(pages: Pages, settings: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    settings.CATALOG_URLS = {}
    monkeypatch.setattr(type(sources.get("models_dev")), "url", f"{pages.url}/api.json")
    assert "address" in read().error
    assert pages.asked == []


@pytest.mark.django_db
def test_one_failing_catalog_keeps_no_other_from_being_read(pages: Pages) -> None:
    pages.put("/models", {"data": [routed()]})
    pages.put("/latest", {"models": [free()]})
    assert [(one.source, one.state) for one in reading.read_all(NOW)] == [("models_dev", "failed"), ("openrouter", "changed"), ("freellmapi", "changed")]


@pytest.mark.django_db
def test_a_catalog_that_stays_small_is_believed_on_another_day(pages: Pages) -> None:
    pages.put("/api.json", catalog("a", "b", "c", "d", "e"))
    read()
    page_shrunk(pages)
    assert read(NOW + DAY).state == "failed"
    assert read(NOW + DAY + timedelta(hours=3)).state == "failed"
    done = read(NOW + 2 * DAY)
    assert (done.state, done.gone) == ("changed", 5)
    assert listed() == ["owl-1"]


@pytest.mark.django_db
def test_a_catalog_that_recovers_is_doubted_anew_the_next_time(pages: Pages) -> None:
    whole = catalog("a", "b", "c", "d", "e")
    pages.put("/api.json", whole)
    read()
    page_shrunk(pages)
    read(NOW + DAY)
    pages.put("/api.json", whole)
    assert read(NOW + 2 * DAY).state == "unchanged"
    page_shrunk(pages)
    assert read(NOW + 3 * DAY).state == "failed"


@pytest.mark.django_db
def test_one_absurd_price_is_left_out_and_the_rest_is_taken_over(pages: Pages) -> None:
    names = [f"owl-{number}" for number in range(2000)]
    body = catalog(*names)
    pages.put("/api.json", body)
    read()
    for name in names:
        body["nest"]["models"][name]["cost"] = {"input": 2, "output": 8}
    body["nest"]["models"]["owl-7"]["cost"] = {"input": 88_000, "output": 8}
    body["nest"]["models"]["fresh"] = model(cost={"input": 88_000, "output": 8})
    pages.put("/api.json", body)
    done = read(NOW + DAY)
    assert (done.state, done.changed, done.added, done.gone) == ("changed", 1999, 0, 0)
    assert [entry.entry for entry in done.skipped] == ["nest/owl-7", "nest/fresh"]
    assert done.skipped[0].reason == "input_usd_per_mtok of 88000 USD per million tokens is more than any model costs (10,000)."
    assert Offer.objects.get(served_name="owl-7").prices["input_usd_per_mtok"] == "1.5"
    assert Offer.objects.get(served_name="owl-8").prices["input_usd_per_mtok"] == "2"
    assert source().skipped[0]["entry"] == "nest/owl-7"


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("cost", "moved"), [({"input": 400, "output": 6}, "rose from 1.5 to 400"), ({"input": 1.5, "output": 0.000006}, "fell from 6 to 0.000006")]
)
def test_a_price_that_moves_a_hundredfold_is_believed_after_a_week(pages: Pages, cost: dict[str, float], moved: str) -> None:
    pages.put("/api.json", catalog("owl-1", "owl-2"))
    read()
    body = catalog("owl-1", "owl-2")
    body["nest"]["models"]["owl-1"]["cost"] = cost
    pages.put("/api.json", body, ETag='"v2"')
    assert moved in read(NOW + DAY).skipped[0].reason
    assert read(NOW + 7 * DAY).state == "unchanged"
    assert Offer.objects.get(served_name="owl-1").prices["input_usd_per_mtok"] == "1.5"
    assert read(NOW + 8 * DAY).changed == 1
    assert Offer.objects.get(served_name="owl-1").prices["output_usd_per_mtok"] == f"{cost['output']:f}".rstrip("0").rstrip(".")


@pytest.mark.django_db
@pytest.mark.parametrize(("before", "after"), [({"input": 0, "output": 0}, {"input": 3, "output": 9}), ({"input": 3, "output": 9}, {"input": 0, "output": 0})])
def test_what_becomes_free_or_ceases_to_be_is_news_and_no_slip(pages: Pages, before: dict[str, float], after: dict[str, float]) -> None:
    pages.put("/api.json", catalog("owl-1", cost=before))
    read()
    pages.put("/api.json", catalog("owl-1", cost=after))
    assert read(NOW + DAY).changed == 1


def test_an_address_for_a_catalog_that_there_is_none_of_is_found(settings: Any) -> None:
    assert checks.catalog_urls(None) == []
    settings.CATALOG_URLS = {"models_dev": "", "modelsdev": "https://mirror.example.org"}
    assert [found.id for found in checks.catalog_urls(None)] == ["catalog.E001"]


# ------------------------------------------------------------------ pages


@pytest.mark.django_db
def test_further_pages_are_followed_at_the_same_host_only(pages: Pages) -> None:
    pages.put("/models", {"data": [routed(id="a/1")], "links": {"next": "/models?offset=1"}}, ETag='"p"')
    pages.put("/models?offset=1", {"data": [routed(id="a/2")], "links": {"next": f"{pages.url}/models?offset=2"}})
    pages.put("/models?offset=2", {"data": [routed(id="a/3")], "links": {"next": None}})
    done = read(name="openrouter")
    assert (done.state, listed("openrouter")) == ("changed", ["a/1", "a/2", "a/3"])
    # The first page may stay the same while another changes: a catalog of several pages is read whole.
    read(NOW + DAY, "openrouter")
    assert all("if-none-match" not in headers for _, headers in pages.asked)
    pages.put("/models", {"data": [routed(id="a/1")], "links": {"next": "http://evil.example/models"}})
    assert "another host" in read(NOW + 2 * DAY, "openrouter").error
    assert len(listed("openrouter")) == 3


@pytest.mark.django_db
def test_pages_without_an_end_are_given_up(pages: Pages) -> None:
    pages.put("/models", {"data": [routed()], "links": {"next": "/models"}})
    assert "more than 20 pages" in read(name="openrouter").error
    assert len(pages.asked) == 20
    assert listed("openrouter") == []


# ------------------------------------------------------------------ when


@pytest.mark.django_db
def test_a_catalog_that_is_off_is_not_asked(pages: Pages, settings: Any) -> None:
    preferences.change("catalog.sources", {"models_dev": False}, "ann")
    settings.CATALOG_URLS = {**settings.CATALOG_URLS, "freellmapi": ""}
    pages.put("/models", {"data": [routed()]})
    assert [(one.source, one.state) for one in reading.read_all(NOW)] == [("models_dev", "off"), ("openrouter", "changed"), ("freellmapi", "off")]
    assert [path for path, _ in pages.asked] == ["/models"]
    assert [state.is_on for state in reading.states()] == [False, True, False]
    assert reading.names_due(NOW) == []


@pytest.mark.django_db
@pytest.mark.parametrize("given", [[], "models_dev", {"models_dev": 1}, {"nest": True}, None])
def test_the_setting_names_catalogs(given: Any) -> None:
    with pytest.raises(ValueError, match="must be an object of models_dev, openrouter, freellmapi"):
        reading.check_sources(given)


@pytest.mark.django_db
def test_a_catalog_that_somebody_reads_is_left_to_them_until_their_lease_ends(pages: Pages) -> None:
    pages.put("/api.json", catalog("owl-1"))
    Source.objects.create(name="models_dev", leased_until=datetime.now(UTC) + timedelta(minutes=1))
    assert read().state == "busy"
    assert pages.asked == []
    Source.objects.update(leased_until=datetime.now(UTC) - timedelta(seconds=1))
    assert read().state == "changed"
    assert source().leased_until is None


@pytest.mark.django_db
def test_due_is_what_is_older_than_a_day_and_was_not_tried_a_moment_ago(pages: Pages) -> None:
    assert reading.names_due(NOW) == ["models_dev", "openrouter", "freellmapi"]
    pages.put("/api.json", catalog("owl-1"))
    reading.read_all(NOW)
    assert reading.names_due(NOW + timedelta(minutes=14)) == []
    assert reading.names_due(NOW + timedelta(minutes=16)) == ["openrouter", "freellmapi"]
    assert reading.names_due(NOW + DAY) == ["models_dev", "openrouter", "freellmapi"]


@pytest.fixture
def held(pages: Pages) -> Iterator[None]:
    pages.put("/api.json", "HOLD")
    yield
    pages.held.set()


@pytest.mark.django_db(transaction=True)
def test_opening_discover_reads_what_is_due_and_waits_only_a_moment(pages: Pages) -> None:
    pages.put("/models", {"data": [routed()]})
    pages.put("/latest", {"models": [free()]})
    pages.put("/api.json", catalog("owl-1"))
    assert reading.read_due(NOW, wait_s=30) == ["models_dev", "openrouter", "freellmapi"]
    assert {offer.source for offer in offers.offers()} == {"models_dev", "openrouter", "freellmapi"}
    assert reading.read_due(NOW + timedelta(hours=1)) == []


@pytest.mark.django_db(transaction=True)
@pytest.mark.skipif(connection.vendor == "sqlite", reason="a thread shares the connection of a database in memory")
def test_a_catalog_that_hangs_does_not_hold_up_the_page(pages: Pages, held: None) -> None:
    assert reading.read_due(NOW, wait_s=0.05) == ["models_dev", "openrouter", "freellmapi"]


# ------------------------------------------------------------------ the whole run


@pytest.mark.django_db
def test_a_run_leaves_prices_alone_that_are_not_the_catalogs_and_says_so(pages: Pages) -> None:
    endpoint = Endpoint.objects.create(name="nest", kind="openai", base_url="https://api.nest.example/v1")
    rows = {name: Model.objects.create(alias=name, endpoint=endpoint, served_name=name) for name in ("img", "asr", "mine", "txt")}
    Price.objects.create(model=rows["mine"], since=NOW.date() - DAY, input_usd_per_mtok=9)
    Price.objects.create(model=rows["txt"], since=NOW.date() - DAY, input_usd_per_mtok=1, source="models_dev")
    models = {name: model(cost={"input": said, "output": 1}) for name, said in (("img", 5), ("asr", 0.0001), ("mine", 3), ("txt", 2))}
    models["img"]["modalities"] = {"input": ["text"], "output": ["image"]}
    models["asr"]["modalities"] = {"input": ["audio"], "output": ["text"]}
    pages.put("/api.json", {"nest": provider(models)})
    report = reading.run(NOW)
    assert json.loads(json.dumps(report)) == report
    assert {name: row.prices.filter(source="models_dev").exists() for name, row in rows.items()} == {"img": False, "asr": False, "mine": True, "txt": True}
    held = {name: model.price_on(NOW.date()) for name, model in load.load_models().items()}
    assert {name: price.input if price else None for name, price in held.items()} == {"img": None, "asr": None, "mine": 9, "txt": 2}
    assert report["prices"]["txt"] == {"models_dev": {"input_usd_per_mtok": ["1", "2"], "output_usd_per_mtok": [None, "1"]}}
    assert [(one["model"], one["source"], one["reason"]) for one in report["skipped"]] == [
        ("asr", "models_dev", "It reads only audio, so its price is not one of text tokens."),
        ("img", "models_dev", "It answers with image, so its price is not one of text tokens."),
        ("mine", "models_dev", "input_usd_per_mtok was set by hand to 9, and stays; it says 3."),
    ]
    assert report["sources"]["models_dev"]["state"] == "changed"
    assert report["sources"]["openrouter"]["state"] == "failed"


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("name", "path", "few", "many"),
    [
        ("models_dev", "/api.json", catalog("a"), catalog(*"abcdefgh")),
        ("models_dev", "/api.json", catalog("a"), {f"p{n}": provider({"a": model()}) for n in range(8)}),
        ("models_dev", "/api.json", catalog("a"), {f"p{n}": {"models": {}} for n in range(8)}),
        ("models_dev", "/api.json", catalog("a"), {f"p{n}": 1 for n in range(8)}),
        ("openrouter", "/models", {"data": [routed(id="a/b")]}, {"data": [routed(id=f"a/{n}") for n in range(8)]}),
        ("openrouter", "/models", {"data": [routed(id="a/b")]}, {"data": [{} for _ in range(8)]}),
        ("freellmapi", "/latest", {"models": [free(modelId="a")]}, {"models": [free(modelId=f"a{n}") for n in range(8)]}),
        ("freellmapi", "/latest", {"models": [free(modelId="a")]}, {"models": [free(modelId="a")], "platforms": [{"id": str(n)} for n in range(8)]}),
    ],
)
def test_a_catalog_beyond_any_measure_is_not_taken_over(pages: Pages, monkeypatch: pytest.MonkeyPatch, name: str, path: str, few: Any, many: Any) -> None:
    monkeypatch.setattr(_reading, "MOST_ENTRIES", 6)
    pages.put(path, few)
    assert read(name=name).state == "changed"
    before = listed(name)
    pages.put(path, many)
    done = read(NOW + DAY, name)
    assert (done.state, listed(name)) == ("failed", before)
    assert "more than 6 entries" in done.error


@pytest.mark.django_db
def test_providers_that_a_catalog_names_no_more_go_however_many(pages: Pages) -> None:
    pages.put("/api.json", {f"p{n}": provider({"a": model()}) for n in range(1200)})
    assert read().added == 1200
    pages.put("/api.json", {f"p{n}": provider({"a": model()}) for n in range(600)})
    assert read(NOW + DAY).state == "changed"
    assert KnownProvider.objects.filter(source="models_dev").count() == 600
