"""Who may call: keys and what they may ask, their limits, the loopback rule, pages of other origins."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from tests.fake import reply
from tests.live import Bench, eventually

DEAR = {"input_usd_per_mtok": "0", "output_usd_per_mtok": "600"}


def test_a_key_is_shown_once_and_kept_as_a_digest(bench: Bench) -> None:
    name = f"{bench.tag}-key"
    made = bench.load().live.api("POST", "keys", {"name": name, "owner": "ann"}, status=201)
    secret = made["key"]
    assert secret.startswith("bw_live_")
    listed = bench.live.listed("keys")
    (mine,) = [k for k in listed if k["name"] == name]
    assert secret not in str(listed)
    assert mine["owner"] == "ann"
    assert set(mine["scopes"]) == {"ask", "judge"}
    assert secret not in str(bench.live.rows("access.Key"))


@pytest.mark.parametrize("way", ["bearer", "x-api-key", "x-goog-api-key", "query"])
def test_a_key_may_come_in_any_of_the_promised_ways(bench: Bench, way: str) -> None:
    fast, key = bench.model("fast"), bench.key()
    headers = {"x-forwarded-for": "203.0.113.9"}  # so that no loopback rule lets it in
    if way == "query":
        path = f"/v1/chat/completions?key={key}"
    else:
        path = "/v1/chat/completions"
        headers |= {"authorization": f"Bearer {key}"} if way == "bearer" else {way: key}
    body = {"model": fast, "messages": [{"role": "user", "content": "hi"}]}
    assert bench.load().live.send("POST", path, body, headers=headers).status == 200
    assert key not in bench.live.log_text()


@pytest.mark.parametrize(
    "key",
    ["sk-other-service-123456", "bw_live_wrong", "x", "Ключ", "a" * 5000, "with space", "%00", "'; DROP TABLE access_key; --", "\xff\xfe"],
    ids=["another service's", "unknown", "short", "other script", "long", "space", "escaped", "SQL", "bytes"],
)
def test_a_wrong_key_is_refused_on_loopback_too_and_never_repeated(bench: Bench, key: str) -> None:
    fast = bench.load().model("fast")
    bench.load()
    sent = key.encode().decode("latin-1") if not key.isascii() and ord(max(key)) > 255 else key
    for headers in ({"authorization": f"Bearer {sent}"}, {"x-api-key": sent}, {"authorization": f"Basic {sent}"}):
        answer = bench.ask(fast, headers=headers)
        assert (answer.status, answer.code) == (401, "invalid_key")
        assert answer.headers["www-authenticate"] == "Bearer"
        if len(key) > 3:
            assert sent not in answer.body.decode("latin-1")
            assert key not in bench.live.log_text()
    assert not bench.fake.calls_to(fast)


def test_unknown_expired_and_revoked_keys_read_the_same(bench: Bench) -> None:
    fast = bench.model("fast")
    soon = (datetime.now(UTC) + timedelta(seconds=2)).isoformat()
    expiring = bench.key(expires_at=soon)
    expired = eventually(lambda: answer if (answer := bench.ask(fast, key=expiring)).status == 401 else None, "the key's expiry")
    name = f"{bench.tag}-gone"
    revoked_key = bench.key(name=name)
    bench.live.api("DELETE", f"keys/{name}")
    revoked, unknown = bench.ask(fast, key=revoked_key), bench.ask(fast, key="bw_live_unknown0123456789")
    assert expired.message == revoked.message == unknown.message
    assert {a.code for a in (expired, revoked, unknown)} == {"invalid_key"}


def test_a_revocation_holds_from_the_next_request_on_in_every_worker(bench: Bench) -> None:
    fast, name = bench.model("fast"), f"{bench.tag}-gone"
    key = bench.key(name=name)
    assert all(bench.ask(fast, key=key).status == 200 for _ in range(6))
    bench.live.api("DELETE", f"keys/{name}")
    assert [bench.ask(fast, key=key).status for _ in range(12)] == [401] * 12


def test_a_change_holds_from_the_next_request_on(bench: Bench) -> None:
    fast, core, name = bench.model("fast"), bench.collection([f"{bench.tag}-fast"]), f"{bench.tag}-changed"
    key = bench.key(name=name)
    assert bench.ask(fast, key=key).status == 200
    bench.live.api("PATCH", f"keys/{name}", {"collections": [core.removeprefix("bench/")]})
    assert [bench.ask(fast, key=key).status for _ in range(8)] == [403] * 8
    assert bench.ask(core, key=key).status == 200


def test_a_list_allows_what_it_names_and_nothing_else(bench: Bench) -> None:
    one, two = bench.model("bed/x"), bench.model("bedz/x")
    cheap, dear = bench.collection([one], name="cheap"), bench.collection([two], name="dear")
    collections = bench.key(collections=[cheap.removeprefix("bench/")])
    models = bench.key(models=[f"{bench.tag}-bed/*"])
    exact = bench.key(models=[two])
    allowed = {
        collections: {cheap},
        models: {one},
        exact: {two},
    }
    for key, may in allowed.items():
        for name in (one, two, cheap, dear):
            answer = bench.ask(name, key=key)
            assert answer.status == (200 if name in may else 403), name
            if answer.status == 403:
                assert answer.code == "not_allowed"
        listed = {m["id"] for m in bench.live.send("GET", "/v1/models", key=key).json["data"]}
        assert listed & {one, two, cheap, dear} == may
        assert all(n.removesuffix(":merged").removesuffix(":route") != cheap or key == collections for n in listed)


def test_a_query_string_cannot_smuggle_in_another_model(bench: Bench) -> None:
    one, two = bench.model("one"), bench.model("two")
    key = bench.key(models=[one])
    body = {"model": one, "messages": [{"role": "user", "content": "hi"}]}
    assert bench.load().live.send("POST", f"/v1/chat/completions?model={two}", body, key=key).status in (200, 400)
    assert not bench.fake.calls_to(two)
    doubled = b'{"model": "%b", "model": "%b", "messages": [{"role": "user", "content": "hi"}]}' % (one.encode(), two.encode())
    bench.live.send("POST", "/v1/chat/completions", doubled, key=key)
    assert not bench.fake.calls_to(two)


@pytest.mark.parametrize("scopes", [["read"], ["judge"], []])
def test_asking_needs_the_scope_for_it(bench: Bench, scopes: list[str]) -> None:
    fast = bench.model("fast")
    if not scopes:
        assert bench.load().live.send("POST", "/bench/keys", {"name": f"{bench.tag}-none", "scopes": []}, key=bench.live.operator_key).status in (201, 400)
        return
    answer = bench.ask(fast, key=bench.key(scopes=scopes))
    assert (answer.status, answer.code) == (403, "not_allowed")


# ------------------------------------------------------------------ limits


def test_requests_a_minute_are_counted_and_the_wait_is_told(bench: Bench) -> None:
    core = bench.collection([bench.model("one"), bench.model("two")])
    key = bench.key(rpm=2)
    assert [bench.ask(core, key=key).status for _ in range(2)] == [200, 200]
    answer = bench.ask(core, key=key)
    assert (answer.status, answer.code) == (429, "rate_limit_exceeded")
    assert 1 <= int(answer.headers["retry-after"]) <= 60
    assert bench.ask(core, key=bench.key(rpm=2)).status == 200


def test_tokens_a_minute_are_reserved_and_settled_to_the_truth(bench: Bench) -> None:
    fast = bench.model("fast", reply("x", usage=(11, 7)))
    key = bench.key(tpm=100)
    for n in (1, 2):
        assert bench.ask(fast, key=key, max_tokens=50).status == 200
        bench.live.attempts(n, model=fast)  # 18 of what was reserved remain, once a call is settled
    answer = bench.ask(fast, key=key, max_tokens=80)
    assert (answer.status, answer.code) == (429, "rate_limit_exceeded")


def test_a_call_that_alone_exceeds_a_limit_is_the_callers_fault(bench: Bench) -> None:
    fast = bench.model("fast")
    answer = bench.ask(fast, key=bench.key(tpm=100), max_tokens=500)
    assert (answer.status, answer.code) == (400, "invalid_request")
    assert not bench.fake.calls_to(fast)


def test_calls_at_once_are_counted_while_they_last(bench: Bench) -> None:
    gate = bench.fake.gate()
    slow = bench.model("slow", reply("x").after(gate), reply("y"))
    key = bench.key(max_parallel=1)
    with bench.stream(slow, key=key) as first:
        bench.fake.call(slow)
        answer = bench.ask(slow, key=key)
        assert (answer.status, answer.code) == (429, "too_many_parallel")
        assert int(answer.headers["retry-after"]) >= 1
        gate.open()
        first.rest()
    eventually(lambda: bench.ask(slow, key=key).status == 200, "a free place")


def test_a_budget_for_one_call_admits_one_of_many_at_once(bench: Bench) -> None:
    dear = bench.model("dear", reply("y", usage=(0, 100)), facts=DEAR)
    key = bench.key(budget_usd="0.1")
    bench.load()
    with ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(lambda _: bench.ask(dear, key=key, max_tokens=100), range(8)))
    assert sorted(a.status for a in answers) == [200, *[402] * 7]
    assert {a.code for a in answers if a.status == 402} == {"budget_exceeded"}
    assert len(bench.fake.calls_to(dear)) == 1


def test_a_budget_is_settled_to_what_calls_really_cost(bench: Bench) -> None:
    dear = bench.model("dear", reply("y", usage=(0, 10)), facts=DEAR)  # 0.006 each, 0.06 reserved
    key = bench.key(budget_usd="0.0661")
    for n in (1, 2):
        assert bench.ask(dear, key=key, max_tokens=100).status == 200
        bench.live.attempts(n, model=dear)
    assert bench.ask(dear, key=key, max_tokens=100).status == 402


def test_a_budgeted_key_may_not_ask_what_has_no_price(bench: Bench) -> None:
    unpriced = bench.model("unpriced")
    answer = bench.ask(unpriced, key=bench.key(budget_usd="5"))
    assert (answer.status, answer.code) == (402, "price_unknown")
    assert not bench.fake.calls_to(unpriced)


def test_an_endpoints_own_limit_holds_across_workers(bench: Bench) -> None:
    here = bench.endpoint("limited", limits={"requests": {"minute": 3}})
    fast = bench.model("fast", endpoint=here)
    core = bench.collection([fast], wait_max_s=0)
    statuses = [bench.ask(core).status for _ in range(6)]
    assert statuses == [200, 200, 200, 429, 429, 429]
    assert len(bench.fake.calls_to(fast)) == 3


# ------------------------------------------------------------------ without a key


@pytest.mark.parametrize("host", ["localhost", "127.0.0.1", "[::1]"])
def test_loopback_needs_no_key_to_ask(bench: Bench, host: str) -> None:
    fast = bench.model("fast")
    assert bench.ask(fast, headers={"host": f"{host}:{bench.live.port}"}).status == 200


@pytest.mark.parametrize("header", ["x-forwarded-for", "x-forwarded-host", "x-forwarded-proto", "forwarded", "x-real-ip", "via"])
def test_a_forwarded_request_needs_a_key(bench: Bench, header: str) -> None:
    fast = bench.model("fast")
    answer = bench.ask(fast, headers={header: "203.0.113.9"})
    assert (answer.status, answer.code) == (401, "missing_key")
    assert answer.headers["www-authenticate"] == "Bearer"
    assert bench.ask(fast, headers={header: "203.0.113.9"}, key=bench.key()).status == 200


@pytest.mark.parametrize("host", ["evil.example", "localhost.evil.example", "127.0.0.1.nip.io", "", "a b", "0.0.0.0", "169.254.169.254"])
def test_a_host_that_is_not_ours_is_not_served(bench: Bench, host: str) -> None:
    fast = bench.model("fast")
    for key in (None, bench.key()):
        answer = bench.ask(fast, headers={"host": host}, key=key)
        assert 400 <= answer.status < 500
    assert not bench.fake.calls_to(fast)


def test_keyless_callers_ask_and_judge_and_nothing_else(bench: Bench) -> None:
    bench.load()
    for method, path in [
        ("GET", "keys"),
        ("GET", "endpoints"),
        ("POST", "keys"),
        ("POST", "models"),
        ("POST", "endpoints"),
        ("GET", "settings"),
        ("GET", "usage"),
    ]:
        answer = bench.live.send(method, f"/bench/{path}", {} if method == "POST" else None)
        assert answer.status in (401, 403), path


def test_keyless_callers_see_no_other_callers_panel(bench: Bench) -> None:
    core = bench.collection([bench.model("fast", reply("private answer"))])
    panel = bench.ask(core, "private prompt", key=bench.key()).json["bench"]["panel"]
    bench.live.attempts(1, panel=panel)
    for path in ("panels?limit=500", f"panels/{panel}"):
        answer = bench.live.send("GET", f"/bench/{path}")
        assert panel not in answer.text or answer.status in (401, 403, 404)
        assert "private" not in answer.text
    for key in (bench.key(owner="somebody"), bench.key(scopes=["read"])):
        assert "private" not in bench.live.send("GET", f"/bench/panels/{panel}", key=key).text


@pytest.mark.parametrize(
    "headers",
    [
        {"origin": "https://evil.example"},
        {"origin": "https://evil.example", "content-type": "text/plain"},
        {"origin": "null"},
        {"origin": "http://127.0.0.1:9"},
        {"sec-fetch-site": "cross-site"},
        {"sec-fetch-site": "same-site"},
    ],
    ids=str,
)
def test_a_page_of_another_origin_cannot_use_the_server(bench: Bench, headers: dict[str, Any]) -> None:
    fast = bench.model("fast")
    assert bench.ask(fast, headers=headers).status == 403
    preflight = bench.live.send("OPTIONS", "/v1/chat/completions", headers={"origin": "https://evil.example", "access-control-request-method": "POST"})
    assert "access-control-allow-origin" not in preflight.headers
    assert not bench.fake.calls_to(fast)


def test_the_servers_own_pages_and_tools_without_an_origin_may(bench: Bench) -> None:
    fast = bench.model("fast")
    assert bench.ask(fast, headers={"origin": bench.live.url}).status == 200
    assert bench.ask(fast, headers={"sec-fetch-site": "same-origin"}).status == 200
    assert bench.ask(fast, headers={"sec-fetch-site": "none"}).status == 200
