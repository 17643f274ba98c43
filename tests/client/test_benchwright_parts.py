"""What the SDK is made of, by tables: objects, pages, profiles, signatures, and when a request is sent again."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import os
import stat
from pathlib import Path
from typing import Any

import benchwright
import pytest
from benchwright import profiles
from benchwright.errors import BenchwrightError, SignatureInvalid, of
from benchwright.objects import Object, wrapped
from benchwright.pages import Page, Rows
from benchwright.signatures import construct_event

from tests.client.scripted import scripted

JSON = {"content-type": "application/json"}
PROBLEM = {"content-type": "application/problem+json"}


# ------------------------------------------------------------------ objects and pages


def test_a_field_is_an_attribute_and_a_key() -> None:
    run = wrapped({"id": "run_1", "cost": {"billed": {"amount_cents": 3}}, "phases": [{"name": "Find"}]})
    assert run.id == run["id"] == run.get("id") == "run_1"
    assert (run.cost.billed.amount_cents, run.phases[0].name, run.get("nothing", 7)) == (3, "Find", 7)
    assert json.loads(json.dumps(run)) == run
    with pytest.raises(AttributeError, match=r"has no field nme\. It has: id, cost, phases"):
        _ = run.nme
    assert not hasattr(run, "nme")


def paged(count: int, size: int) -> tuple[Rows, list[str]]:
    asked: list[str] = []

    def page(token: str) -> Object:
        start = int(token)
        more = start + size < count
        return wrapped({"data": [{"n": n} for n in range(start, min(count, start + size))], "next": str(start + size) if more else None})

    def fetch(token: str) -> Object:
        asked.append(token)
        return page(token)

    return Rows(page("0"), fetch), asked


LOOKS: list[tuple[str, Any, list[str]]] = [
    ("rows[:5]", lambda rows: len(rows[:5]), []),
    ("rows[0]", lambda rows: rows[0].n, []),
    ("bool(rows)", bool, []),
    ("a loop that ends early", lambda rows: next(iter(rows)).n, []),
    ("rows[10]", lambda rows: rows[10].n, ["10"]),
    ("rows[5:12]", lambda rows: len(rows[5:12]), ["10"]),
    ("rows[-1]", lambda rows: rows[-1].n, ["10", "20"]),
    ("rows[::2]", lambda rows: len(rows[::2]), ["10", "20"]),
    ("len(rows)", len, ["10", "20"]),
    ("all of them", lambda rows: [r.n for r in rows], ["10", "20"]),
]


@pytest.mark.parametrize(("look", "asked"), [x[1:] for x in LOOKS], ids=[x[0] for x in LOOKS])
def test_only_the_pages_that_are_looked_at_are_fetched(look: Any, asked: list[str]) -> None:
    rows, fetched = paged(25, 10)
    look(rows)
    assert fetched == asked


def test_a_list_walks_all_pages_once_and_again_from_memory() -> None:
    rows, fetched = paged(25, 10)
    assert [r.n for r in rows] == list(range(25)) == [r.n for r in rows]
    assert fetched == ["10", "20"]
    with pytest.raises(IndexError):
        _ = rows[25]


def test_a_server_that_names_the_same_page_again_is_not_asked_for_ever() -> None:
    page = wrapped({"data": [{"n": 1}], "next": "x"})
    assert len(Page(page, lambda token: page)) == 2


# ------------------------------------------------------------------ failures


FAILURES = [
    (400, "InvalidRequest"),
    (401, "AuthenticationError"),
    (402, "BudgetExceeded"),
    (403, "PermissionDenied"),
    (404, "NotFound"),
    (405, "InvalidRequest"),
    (409, "Conflict"),
    (410, "Gone"),
    (412, "PreconditionFailed"),
    (413, "InvalidRequest"),
    (422, "Unprocessable"),
    (428, "PreconditionFailed"),
    (429, "RateLimited"),
    (500, "ServerError"),
    (501, "NotImplementedByServer"),
    (503, "ServerError"),
]


@pytest.mark.parametrize(("status", "name"), FAILURES)
def test_each_refusal_has_its_exception(status: int, name: str) -> None:
    body = {"title": "No", "detail": "Because.", "code": "some_code", "request_id": "req_1", "errors": [{"pointer": "/a", "code": "x", "message": "y"}]}
    error = of(status, body, {"retry-after": "7"})
    assert type(error) is getattr(benchwright, name)
    assert isinstance(error, benchwright.APIError)
    assert (str(error), error.code, error.status, error.request_id, error.errors[0]["pointer"]) == ("Because.", "some_code", status, "req_1", "/a")
    assert error.retry_after == 7.0


@pytest.mark.parametrize("body", [None, [], "text", {}, {"errors": None}, {"detail": None}])
def test_a_refusal_without_a_problem_still_says_something(body: Any) -> None:
    assert str(of(500, body, {})) == "The server answered 500."


def test_a_refusal_in_the_gateways_shape_is_read_too() -> None:
    error = of(401, {"error": {"message": "This key is none.", "code": "invalid_key"}}, {})
    assert (str(error), error.code) == ("This key is none.", "invalid_key")


def ok(value: Any) -> tuple[int, dict[str, str], bytes]:
    return 200, JSON, json.dumps(value).encode()


def busy(status: int = 503) -> tuple[int, dict[str, str], bytes]:
    return status, {**PROBLEM, "retry-after": "0"}, b'{"code":"busy","detail":"Later."}'


def client(url: str) -> benchwright.Benchwright:
    return benchwright.Benchwright(api_key="bw_live_pat_x", base_url=url)


@pytest.mark.parametrize("status", [429, 502, 503, 504])
def test_reading_is_tried_again(status: int) -> None:
    with scripted(busy(status), busy(status), ok({"id": "run_1"})) as server, client(server.url) as bw:
        assert bw.runs.get("run_1").id == "run_1"
        assert len(server.asked) == 3


def test_what_makes_something_is_tried_again_under_one_key() -> None:
    with scripted(busy(), (0, {}, b""), ok({"id": "run_1"})) as server, client(server.url) as bw:
        bw.runs.launch(benchmark="bm_1", sut="mercury")
        keys = [headers["idempotency-key"] for _, _, headers, _ in server.asked]
        assert len(keys) == 3
        assert len(set(keys)) == 1
        assert {body for _, _, _, body in server.asked} == {b'{"benchmark":"bm_1","sut":"mercury"}'}
        bw.runs.launch(benchmark="bm_1", sut="mercury", idempotency_key="mine")
        assert server.asked[-1][2]["idempotency-key"] == "mine"


def test_what_might_be_done_twice_is_not_tried_again() -> None:
    with scripted(busy()) as server, client(server.url) as bw:
        with pytest.raises(benchwright.ServerError):
            bw.runs.requeue("run_1")
        assert len(server.asked) == 1
    with scripted((0, {}, b"")) as server, client(server.url) as bw:
        with pytest.raises(benchwright.ConnectionFailed):
            bw.runs.halt("run_1")
        assert len(server.asked) == 1


@pytest.mark.parametrize("status", [400, 401, 403, 404, 409, 422, 500, 501])
def test_a_refusal_that_will_not_change_is_told_at_once(status: int) -> None:
    with scripted(busy(status)) as server, client(server.url) as bw:
        with pytest.raises(benchwright.APIError):
            bw.runs.launch(benchmark="bm_1", sut="mercury")
        assert len(server.asked) == 1


def test_a_path_that_goes_away_is_warned_of() -> None:
    going = (200, {**JSON, "deprecation": "@1", "sunset": "Sat, 01 Jan 2028 00:00:00 GMT"}, b"{}")
    with scripted(going) as server, client(server.url) as bw, pytest.warns(DeprecationWarning, match="GET /v1/me is going away on Sat, 01 Jan 2028"):
        bw.me()


def test_a_page_of_somebody_elses_server_is_none_of_ours() -> None:
    with scripted((200, {"content-type": "text/html"}, b"<html>")) as server, client(server.url) as bw, pytest.raises(benchwright.ConnectionFailed):
        bw.me()


def event(seq: int, kind: str = "TaskDone") -> bytes:
    return f"id: {seq}\nevent: {kind}\ndata: {json.dumps({'seq': seq, 'type': kind, 'data': {'phase': 'Materialize'}})}\n\n".encode()


def test_a_stream_goes_on_where_it_broke_off() -> None:
    sse = {"content-type": "text/event-stream"}
    # Broken in the middle of an event, then closed cleanly before the run has ended, then to its end.
    answers = [
        (200, sse, event(1) + b": still here\n\n" + event(2) + b"id: 3\nda"),
        ok({"id": "run_1", "status": "running"}),
        (200, sse, event(3)),
        ok({"id": "run_1", "status": "running"}),
        (200, sse, event(4, "RunFinished")),
        ok({"id": "run_1", "status": "ok"}),
    ]
    with scripted(*answers) as server, client(server.url) as bw:
        found = list(bw.runs.stream("run_1"))
        assert [e.seq for e in found] == [1, 2, 3, 4]
        assert found[0].data.phase == "Materialize"
        asked = [headers.get("last-event-id") for _, path, headers, _ in server.asked if path.endswith("/events")]
        assert asked == [None, "2", "3"]


def test_a_stream_that_is_refused_says_why() -> None:
    with scripted((404, PROBLEM, b'{"code":"run_not_found","detail":"There is no run."}')) as server, client(server.url) as bw:
        with pytest.raises(benchwright.NotFound, match="There is no run"):
            next(bw.runs.stream("run_1"))
        assert len(server.asked) == 1


def test_waiting_ends_with_the_time_that_is_given() -> None:
    with scripted(ok({"id": "run_1", "status": "running"})) as server, client(server.url) as bw:
        with pytest.raises(benchwright.WaitTimeout, match=r"run_1 is running after 0\.01 s") as told:
            bw.runs.wait("run_1", timeout=0.01, poll_interval=0.01)
        assert told.value.run.status == "running"
        assert all("wait=0.0" in path for _, path, _, _ in server.asked)


# ------------------------------------------------------------------ whose key goes where


def home(tmp_path: Path, **profile: str) -> dict[str, str]:
    env = {"HOME": str(tmp_path), "BENCHWARMERS_HOME": str(tmp_path / "none")}
    if profile:
        profiles.write("default", profiles.Profile(**profile), env)
    return env


def test_the_address_and_the_key_are_found_in_order(tmp_path: Path) -> None:
    env = home(tmp_path, base_url="https://team.example", token="bw_live_pat_kept")
    found = profiles.find(None, None, None, env)
    assert (found.url, found.key) == ("https://team.example", "bw_live_pat_kept")
    assert profiles.find(None, None, None, {**env, "BW_PAT": "bw_live_pat_env"}).key == "bw_live_pat_env"
    assert profiles.find("bw_live_pat_said", None, None, {**env, "BW_PAT": "x"}).key == "bw_live_pat_said"
    assert profiles.find(None, "https://team.example/v1/", None, env).key == "bw_live_pat_kept"
    assert profiles.find(None, None, None, home(tmp_path / "empty")).url == "http://127.0.0.1:8122"


@pytest.mark.parametrize("elsewhere", ["https://other.example", "http://team.example", "https://team.example:8443", "https://team.example.evil.example"])
def test_a_kept_token_goes_to_its_own_server_only(tmp_path: Path, elsewhere: str) -> None:
    env = {**home(tmp_path, base_url="https://team.example", token="bw_live_pat_kept"), "BENCHWARMERS_KEY": "bw_gateway"}
    assert profiles.find(None, elsewhere, None, env).key == ""
    assert profiles.find(None, None, None, {**env, "BW_BASE_URL": elsewhere}).key == ""


def test_a_profile_is_its_owners_alone_and_keeps_the_others(tmp_path: Path) -> None:
    env = home(tmp_path, base_url="https://a.example", token='odd "token"\\')
    path = profiles.write("work", profiles.Profile("https://b.example", "two"), env)
    assert stat.S_IMODE(os.stat(path).st_mode) == 0o600
    assert profiles.read(None, env) == profiles.Profile("https://a.example", 'odd "token"\\')
    assert profiles.read("work", env).token == "two"
    assert [p.name for p in path.parent.iterdir()] == ["config.toml"]
    assert "two" not in repr(profiles.read("work", env))


@pytest.mark.parametrize("name", ["../x", "a b", "", "x" * 61, "a.b"])
def test_a_name_that_is_none_is_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(profiles.BadProfile):
        profiles.write(name, profiles.Profile(), home(tmp_path))


def test_an_unknown_profile_or_a_broken_file_says_what_to_do(tmp_path: Path) -> None:
    env = home(tmp_path, base_url="https://a.example")
    with pytest.raises(BenchwrightError, match="There is no profile work"):
        profiles.read("work", env)
    profiles.config_file(env).write_text("[x")
    with pytest.raises(BenchwrightError, match="cannot be read"):
        profiles.read(None, env)


# ------------------------------------------------------------------ webhooks


OWN_SECRET, OWN_AT = "whsec_test_secret", 1750000000
OWN_BODY = b'{"id":"evt_1","type":"run.finished","data":{"id":"run_1"}}'
OWN = "0d3908fc14fa3c2573828e6bbe47c36c899e30d88545da8e0bb21da5c7012945"
STANDARD_SECRET, STANDARD_AT = "MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", 1614265330
STANDARD_BODY = b'{"test": 2432232314}'
STANDARD = {
    "webhook-id": "msg_p5jXN8AQM9LWM0D4loKWxJek",
    "webhook-timestamp": str(STANDARD_AT),
    "webhook-signature": "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=",
}


def test_both_schemes_are_verified_by_their_vectors() -> None:
    found = construct_event(OWN_BODY, f"t={OWN_AT},v1={OWN}", OWN_SECRET, now=OWN_AT)
    assert (found.type, found.data.id) == ("run.finished", "run_1")
    assert construct_event(OWN_BODY, {"X-Benchwright-Signature": f"t={OWN_AT},v1={OWN}"}, OWN_SECRET, now=OWN_AT).id == "evt_1"
    for secret in (STANDARD_SECRET, f"whsec_{STANDARD_SECRET}"):
        assert construct_event(STANDARD_BODY, STANDARD, secret, now=STANDARD_AT).test == 2432232314


OLD = "0" * 64
RIGHT_HEADERS = [f"t={OWN_AT},v1={OWN},v1={OLD}", f"t={OWN_AT},v1={OLD},v1={OWN}", f"v1={OWN}, t={OWN_AT}", f"t={OWN_AT},v0=x,v1={OWN}"]


@pytest.mark.parametrize("header", RIGHT_HEADERS)
@pytest.mark.parametrize("off", [-300, 0, 300])
def test_any_entry_that_is_right_will_do_within_five_minutes(header: str, off: int) -> None:
    assert construct_event(OWN_BODY, header, OWN_SECRET, now=OWN_AT + off).id == "evt_1"
    rotated = {**STANDARD, "webhook-signature": f"v1,{base64.b64encode(b'old').decode()} {STANDARD['webhook-signature']} v2,x"}
    assert construct_event(STANDARD_BODY, rotated, STANDARD_SECRET, now=STANDARD_AT + off).test


def signed(body: bytes, at: str = str(OWN_AT)) -> str:
    return f"t={at},v1={hmac.new(OWN_SECRET.encode(), at.encode() + b'.' + body, hashlib.sha256).hexdigest()}"


WRONG: dict[str, tuple[bytes, Any, str, float]] = {
    "another secret": (OWN_BODY, f"t={OWN_AT},v1={OWN}", "whsec_other", OWN_AT),
    "a changed body": (OWN_BODY.replace(b"run_1", b"run_2"), f"t={OWN_AT},v1={OWN}", OWN_SECRET, OWN_AT),
    "a changed time": (OWN_BODY, f"t={OWN_AT + 1},v1={OWN}", OWN_SECRET, OWN_AT),
    "too old": (OWN_BODY, f"t={OWN_AT},v1={OWN}", OWN_SECRET, OWN_AT + 301),
    "from the future": (OWN_BODY, f"t={OWN_AT},v1={OWN}", OWN_SECRET, OWN_AT - 301),
    "no time": (OWN_BODY, f"v1={OWN}", OWN_SECRET, OWN_AT),
    "two times": (OWN_BODY, f"t={OWN_AT},t=1,v1={OWN}", OWN_SECRET, OWN_AT),
    "no signature": (OWN_BODY, f"t={OWN_AT}", OWN_SECRET, OWN_AT),
    "an empty signature": (OWN_BODY, f"t={OWN_AT},v1=", OWN_SECRET, OWN_AT),
    "a signature in odd letters": (OWN_BODY, f"t={OWN_AT},v1=ü{OWN[1:]}", OWN_SECRET, OWN_AT),
    "a time that is none": (OWN_BODY, signed(OWN_BODY, "soon"), OWN_SECRET, OWN_AT),
    "a time in odd digits": (OWN_BODY, signed(OWN_BODY, "١٧٥٠٠٠٠٠٠٠"), OWN_SECRET, OWN_AT),
    "an empty header": (OWN_BODY, "", OWN_SECRET, OWN_AT),
    "no header": (OWN_BODY, {}, OWN_SECRET, OWN_AT),
    "a body that is no JSON": (b"{", signed(b"{"), OWN_SECRET, OWN_AT),
    "a body that is a list": (b"[]", signed(b"[]"), OWN_SECRET, OWN_AT),
    "standard: another id": (STANDARD_BODY, {**STANDARD, "webhook-id": "msg_x"}, STANDARD_SECRET, STANDARD_AT),
    "standard: too old": (STANDARD_BODY, STANDARD, STANDARD_SECRET, STANDARD_AT + 301),
    "standard: a secret that is no base64": (STANDARD_BODY, STANDARD, "not base64!", STANDARD_AT),
    "standard: one header missing": (STANDARD_BODY, {k: v for k, v in STANDARD.items() if k != "webhook-id"}, STANDARD_SECRET, STANDARD_AT),
    "standard: another version only": (STANDARD_BODY, {**STANDARD, "webhook-signature": "v2,x"}, STANDARD_SECRET, STANDARD_AT),
}


@pytest.mark.parametrize("case", WRONG)
def test_whatever_is_not_right_is_refused(case: str) -> None:
    body, header, secret, now = WRONG[case]
    with pytest.raises(SignatureInvalid):
        construct_event(body, header, secret, now=now)
