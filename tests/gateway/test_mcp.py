"""MCP through the official SDK's client, in both generations of the protocol, and what no such client would send."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any

import httpx2
import mcp
import pytest
from mcp.client.streamable_http import streamable_http_client

from access.caller import LOOPBACK
from panels.mcp import sessions
from tests.fake import reply, status
from tests.gateway.shape import check_bench, headings
from tests.http import Reply, Stream, events_of
from tests.live import Bench, eventually

GENERATIONS = ["legacy", "2026-07-28", "auto"]
BOTH = "application/json, text/event-stream"
Dial = Callable[..., AbstractAsyncContextManager[mcp.Client]]


@pytest.fixture(params=GENERATIONS)
def dial(request: pytest.FixtureRequest, bench: Bench) -> Dial:
    """Opens a client of one generation."""

    @asynccontextmanager
    async def open_client(key: str = "", path: str = "/mcp") -> AsyncIterator[mcp.Client]:
        bench.load()
        headers = {"authorization": f"Bearer {key}"} if key else {}
        async with (
            httpx2.AsyncClient(headers=headers, timeout=60) as http,
            mcp.Client(streamable_http_client(f"{bench.live.url}{path}", http_client=http), mode=request.param) as client,
        ):
            yield client

    return open_client


def panel(bench: Bench, *answers: Any, **collection: Any) -> str:
    """Gives a collection's bare name."""
    return bench.collection([bench.model(f"m{n}", answer) for n, answer in enumerate(answers)], **collection).removeprefix("bench/")


def words(result: Any) -> str:
    return "".join(part.text for part in result.content)


# ------------------------------------------------------------------ through the SDK


async def test_the_tools_carry_the_four_rules(dial: Dial) -> None:
    async with dial() as client:
        tools = {t.name: t for t in (await client.list_tools()).tools}
    assert set(tools) == {"list_collections", "ask", "verdict", "pending_verdicts"}
    ask = str(tools["ask"].description).lower()
    for rule in ("ask a collection, not a favourite model", "verify before acting", "name every seat", "verdict for each seat you judged"):
        assert rule in ask
    assert "collection" in str(tools["list_collections"].description)
    assert "verif" in str(tools["verdict"].description)
    assert set(tools["ask"].input_schema["properties"]) == {"collection", "prompt", "merged", "with", "system"}
    assert tools["ask"].input_schema["required"] == ["collection", "prompt"]
    assert set(tools["verdict"].input_schema["properties"]) == {"call", "useful", "note", "real", "false"}


async def test_collections_are_listed_as_far_as_a_key_may_ask_them(bench: Bench, dial: Dial) -> None:
    core = panel(bench, reply(), reply(), name="core", description="adversarial review", shape="review", explorers=2)
    other = panel(bench, reply(), name="other")
    async with dial(bench.key(collections=[core])) as client:
        told = (await client.call_tool("list_collections", {})).structured_content
    assert told == {"collections": [{"name": core, "description": "adversarial review", "shape": "review", "members": 2, "explorers": 2}]}
    async with dial() as client:
        assert {core, other} <= {c["name"] for c in (await client.call_tool("list_collections", {})).structured_content["collections"]}


@pytest.mark.parametrize("path", ["/mcp", "/v1/mcp"])
async def test_a_panel_answers_in_words_and_as_data(bench: Bench, dial: Dial, path: str) -> None:
    core = panel(bench, reply("alpha says"), reply("beta says"))
    async with dial(path=path) as client:
        answer = await client.call_tool("ask", {"collection": core, "prompt": "what?", "system": "be brief"})
    assert not answer.is_error
    seats = check_bench(answer.structured_content["bench"])
    assert [s["text"] for s in seats] == ["alpha says", "beta says"]
    headings(words(answer), seats)
    told = answer.structured_content["bench"]
    assert (told["collection"], told["mode"], told["status"]) == (core, "panel", "complete")
    sent = bench.fake.call(seats[0]["model"]).json["messages"]
    assert [(m["role"], m["content"]) for m in sent] == [("system", "be brief"), ("user", "what?")]
    assert bench.live.attempts(2, panel=told["panel"])


async def test_merged_gives_one_answer_and_its_seats(bench: Bench, dial: Dial) -> None:
    writer = bench.model("writer", reply("both agree"))
    core = panel(bench, reply("alpha"), reply("beta"), mergers=[writer])
    async with dial() as client:
        answer = await client.call_tool("ask", {"collection": core, "prompt": "what?", "merged": True})
    seats = check_bench(answer.structured_content["bench"])
    assert answer.structured_content["bench"]["mode"] == "merged"
    assert [s["seat"] for s in seats] == ["member", "member", "merger"]
    assert words(answer).startswith("both agree")


async def test_models_are_seated_besides_for_one_panel(bench: Bench, dial: Dial) -> None:
    guest = bench.model("guest", reply("guest says"))
    core = panel(bench, reply("alpha"))
    member = f"{bench.tag}-m0"
    async with dial() as client:
        answer = await client.call_tool("ask", {"collection": core, "prompt": "what?", "with": [guest, member]})
        again = await client.call_tool("ask", {"collection": core, "prompt": "what?"})
    assert [(s["model"], s["seat"]) for s in check_bench(answer.structured_content["bench"])] == [(member, "member"), (guest, "member")]
    assert [s["model"] for s in again.structured_content["bench"]["seats"]] == [member]


async def test_a_verdict_takes_its_seat_off_the_pending_ones(bench: Bench, dial: Dial) -> None:
    core, key = panel(bench, reply("alpha"), reply("beta")), bench.key(owner=f"{bench.tag}-ann")
    async with dial(key) as client:
        told = (await client.call_tool("ask", {"collection": core, "prompt": "what?"})).structured_content["bench"]
        first, second = [{"call": s["call"], "model": s["model"]} for s in told["seats"]]
        bench.live.attempts(2, panel=told["panel"])
        (waiting,) = (await client.call_tool("pending_verdicts", {})).structured_content["data"]
        assert (waiting["panel"], waiting["collection"], waiting["seats"]) == (told["panel"], core, [first, second])
        kept = await client.call_tool("verdict", {"call": first["call"], "useful": True, "note": "good", "real": ["a"], "false": ["b"]})
        assert not kept.is_error
        assert {k: kept.structured_content[k] for k in ("call", "judge", "useful", "note", "real", "false", "replaces")} == {
            "call": first["call"],
            "judge": f"{bench.tag}-ann",
            "useful": True,
            "note": "good",
            "real": ["a"],
            "false": ["b"],
            "replaces": None,
        }
        assert json.loads(words(kept)) == kept.structured_content
        again = await client.call_tool("verdict", {"call": first["call"], "useful": False})
        assert again.structured_content["replaces"] == kept.structured_content["id"]
        (waiting,) = (await client.call_tool("pending_verdicts", {"limit": 5})).structured_content["data"]
        assert waiting["seats"] == [second]


async def test_whoever_knows_a_call_learns_whether_anybody_has_judged_it(bench: Bench, dial: Dial) -> None:
    core = panel(bench, reply("alpha"), reply("beta"))
    told = bench.ask(f"bench/{core}", key=bench.key()).json["bench"]
    first, second = [{"call": s["call"], "model": s["model"]} for s in told["seats"]]
    bench.live.attempts(2, panel=told["panel"])
    async with dial(bench.key(scopes=["judge"])) as client:

        async def waiting(*calls: str) -> list[dict[str, Any]]:
            return [seat for p in (await client.call_tool("pending_verdicts", {"calls": list(calls)})).structured_content["data"] for seat in p["seats"]]

        assert await waiting(first["call"], second["call"], "call_0", "\0") == [first, second]
        assert await waiting(second["call"]) == [second]
        assert await waiting() == []
        assert first not in [s for p in (await client.call_tool("pending_verdicts", {})).structured_content["data"] for s in p["seats"]]
        bench.live.api("POST", "verdict", {"call": first["call"], "useful": True})
        assert await waiting(first["call"], second["call"]) == [second]


@pytest.mark.parametrize(
    ("tool", "arguments", "code"),
    [
        ("ask", {"collection": "nobody", "prompt": "x"}, "model_not_found"),
        ("ask", {"collection": 5, "prompt": "x"}, "invalid_request"),
        ("ask", {"prompt": "x"}, "invalid_request"),
        ("ask", {"collection": "$CORE", "prompt": "  "}, "invalid_request"),
        ("ask", {"collection": "$CORE", "prompt": "x", "merged": "yes"}, "invalid_request"),
        ("ask", {"collection": "$CORE:route", "prompt": "x"}, "invalid_request"),
        ("ask", {"collection": "$CORE", "prompt": "x", "with": ["nobody"]}, "model_not_found"),
        ("ask", {"collection": "$CORE", "prompt": "x", "with": [1]}, "invalid_request"),
        ("ask", {"collection": "$CORE", "prompt": "x", "with": ["nobody"] * 21}, "invalid_request"),
        ("ask", {"collection": "$FORBIDDEN", "prompt": "x"}, "not_allowed"),
        ("ask", {"collection": "$CORE", "prompt": "x", "with": ["$GUEST"]}, "not_allowed"),
        ("verdict", {"call": "call_unknown", "useful": True}, "call_not_found"),
        ("verdict", {"call": "call_unknown"}, "invalid_request"),
        ("verdict", {"call": "call_unknown", "useful": "yes"}, "invalid_request"),
        ("pending_verdicts", {"limit": 0}, "invalid_request"),
        ("pending_verdicts", {"page_token": "x"}, "invalid_request"),
        ("pending_verdicts", {"calls": "call_x"}, "invalid_request"),
        ("pending_verdicts", {"calls": [7]}, "invalid_request"),
        ("pending_verdicts", {"calls": ["call_x"] * 201}, "invalid_request"),
    ],
)
async def test_what_cannot_be_done_is_a_result_that_says_so(bench: Bench, dial: Dial, tool: str, arguments: dict[str, Any], code: str) -> None:
    core, forbidden, guest = panel(bench, reply()), panel(bench, reply(), name="forbidden"), bench.model("guest")
    names = {"$CORE": core, "$FORBIDDEN": forbidden, "$GUEST": guest}
    text = json.dumps(arguments)
    for mark, name in names.items():
        text = text.replace(mark, name)
    async with dial(bench.key(collections=[core])) as client:
        answer = await client.call_tool(tool, json.loads(text))
    assert answer.is_error
    assert answer.structured_content["error"]["code"] == code
    assert words(answer).startswith(f"{code}: ")
    assert not bench.fake.calls_to(guest)


async def test_a_panel_that_nobody_answers_lists_its_seats(bench: Bench, dial: Dial) -> None:
    limited = status(429, "slow down", headers={"retry-after": "7"})
    core = panel(bench, limited, limited)
    async with dial() as client:
        answer = await client.call_tool("ask", {"collection": core, "prompt": "x"})
    assert answer.is_error
    error = answer.structured_content["error"]
    assert error["code"] == "rate_limit_exceeded"
    assert 1 <= error["retry_after_s"] <= 7
    assert [s["model"] for s in error["seats"]] == [f"{bench.tag}-m0", f"{bench.tag}-m1"]


async def test_a_degraded_panel_says_so_first(bench: Bench, dial: Dial) -> None:
    core = panel(bench, reply("fine"), status(500))
    async with dial() as client:
        answer = await client.call_tool("ask", {"collection": core, "prompt": "x"})
    assert not answer.is_error
    assert "degraded" in words(answer).split("\n")[0].lower()
    assert answer.structured_content["bench"]["status"] == "degraded"


async def test_progress_rises_as_long_as_the_panel_sits(bench: Bench, dial: Dial) -> None:
    gate = bench.fake.gate()
    core, heard = panel(bench, reply("quick"), reply("late").after(gate)), []

    async def hear(progress: float, total: float | None, message: str | None) -> None:
        heard.append(progress)
        if len(heard) == 4:
            gate.open()

    async with dial() as client:
        answer = await client.call_tool("ask", {"collection": core, "prompt": "x"}, progress_callback=hear)
    assert [s["text"] for s in answer.structured_content["bench"]["seats"]] == ["quick", "late"]
    assert heard == sorted(set(heard))


async def test_a_wrong_key_opens_nothing(bench: Bench, dial: Dial) -> None:
    with pytest.raises(Exception) as caught:  # noqa: PT011 - a group whose shape is the SDK's
        async with dial("bw_live_wrong") as client:
            await client.list_tools()
    assert caught.value


# ------------------------------------------------------------------ past the SDK


def post(bench: Bench, message: Any, *, key: str = "", **headers: str) -> Reply:
    bench.load()
    sent = {"accept": BOTH, **{name.replace("_", "-"): value for name, value in headers.items()}}
    return bench.live.send("POST", "/mcp", message, key=key or None, headers=sent)


def asks(method: str, params: dict[str, Any] | None = None, id: Any = 1) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": id, "method": method, **({"params": params} if params is not None else {})}


HELLO = asks("initialize", {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "test", "version": "0"}})


def session(bench: Bench, key: str = "") -> str:
    answer = post(bench, HELLO, key=key)
    assert answer.status == 200
    assert answer.json["result"]["protocolVersion"] == "2025-06-18"
    return answer.headers["mcp-session-id"]


def test_without_a_key_only_this_machine_may_ask(bench: Bench) -> None:
    answer = post(bench, HELLO, x_forwarded_for="203.0.113.9")
    assert answer.status == 401
    assert answer.headers["www-authenticate"] == "Bearer"
    assert answer.json["error"]["data"]["code"] == "missing_key"
    assert post(bench, HELLO, key="bw_live_wrong").json["error"]["data"]["code"] == "invalid_key"
    assert post(bench, HELLO, key=bench.key(), x_forwarded_for="203.0.113.9").status == 200


def test_a_page_of_another_origin_may_not_ask(bench: Bench) -> None:
    answer = post(bench, HELLO, origin="https://elsewhere.example")
    assert answer.status == 403
    assert answer.json["error"]["data"]["code"] == "not_allowed"


def test_another_host_is_not_answered(bench: Bench) -> None:
    assert post(bench, HELLO, host="elsewhere.example").status == 403


def test_a_key_judges_or_asks_as_far_as_its_scopes_go(bench: Bench) -> None:
    judge, asker, reader = bench.key(scopes=["judge"]), bench.key(scopes=["ask"], name=f"{bench.tag}-asker"), bench.key(scopes=["read"], name=f"{bench.tag}-r")
    pending, listed = asks("tools/call", {"name": "pending_verdicts"}), asks("tools/call", {"name": "list_collections"})
    assert not post(bench, pending, key=judge).json["result"]["isError"]
    assert post(bench, listed, key=judge).json["result"]["structuredContent"]["error"]["code"] == "not_allowed"
    assert not post(bench, listed, key=asker).json["result"]["isError"]
    assert post(bench, pending, key=asker).json["result"]["structuredContent"]["error"]["code"] == "not_allowed"
    assert post(bench, listed, key=reader).status == 403


def test_a_session_is_known_to_every_worker_until_it_is_ended(bench: Bench) -> None:
    mine = session(bench)
    for _ in range(8):  # each on a connection of its own: some reach the other worker
        assert post(bench, asks("tools/list"), mcp_session_id=mine).status == 200
    assert post(bench, {"jsonrpc": "2.0", "method": "notifications/initialized"}, mcp_session_id=mine).status == 202
    ended = bench.live.send("DELETE", "/mcp", headers={"mcp-session-id": mine})
    assert (ended.status, ended.body) == (204, b"")
    eventually(lambda: all(post(bench, asks("ping"), mcp_session_id=mine).status == 404 for _ in range(8)), "the end of a session")
    assert bench.live.send("DELETE", "/mcp", headers={"mcp-session-id": mine}).status == 404


def test_a_session_is_its_openers(bench: Bench) -> None:
    ann, bob = bench.key(name=f"{bench.tag}-ann"), bench.key(name=f"{bench.tag}-bob")
    mine = session(bench, ann)
    assert post(bench, asks("ping"), key=ann, mcp_session_id=mine).status == 200
    assert post(bench, asks("ping"), key=bob, mcp_session_id=mine).status == 404
    assert post(bench, asks("ping"), mcp_session_id=mine).status == 404


@pytest.mark.parametrize("forge", [lambda s: "dead-beef", lambda s: s[:-1] + ("A" if s[-1] != "A" else "B"), lambda s: "x" * 5000, lambda s: s.split(":")[0]])
def test_an_unknown_session_is_not_found_and_opens_no_stream(bench: Bench, forge: Callable[[str], str]) -> None:
    forged = forge(session(bench))
    for message in (asks("tools/list", id=5), {"jsonrpc": "2.0", "method": "notifications/initialized"}):
        answer = post(bench, message, mcp_session_id=forged)
        assert answer.status == 404
        assert answer.headers["content-type"] == "application/json"
        assert answer.json["id"] == message.get("id")
        assert isinstance(answer.json["error"]["code"], int)
    assert post(bench, HELLO, mcp_session_id=forged).status == 200


def test_a_session_id_holds_for_whoever_has_the_servers_secret() -> None:
    token = sessions.open_session(LOOPBACK, "2025-11-25").token
    found = sessions.find_session(token, LOOPBACK)
    assert found is not None
    assert found.version == "2025-11-25"
    assert token.isascii()
    assert token.isprintable()


@pytest.mark.parametrize("accept", ["*/*", "application/json", "application/*", "text/event-stream", "text/event-stream, application/json;q=0.5", ""])
def test_whatever_accepts_one_of_both_forms_is_answered(bench: Bench, accept: str) -> None:
    answer = post(bench, HELLO, accept=accept)
    assert answer.status == 200
    if answer.headers["content-type"] == "application/json":
        assert accept != "text/event-stream"
        said = answer.json
    else:
        assert accept == "text/event-stream"
        (said,) = events_of(answer.body)
    assert said["result"]["serverInfo"]["name"] == "benchwarmers"


@pytest.mark.parametrize("accept", ["text/html", "image/png, application/xml", "application/json;q=0"])
def test_what_accepts_neither_is_told_both(bench: Bench, accept: str) -> None:
    answer = post(bench, HELLO, accept=accept)
    assert answer.status == 406
    assert "application/json" in answer.text
    assert "text/event-stream" in answer.text


@pytest.mark.parametrize(
    ("body", "code"),
    [
        (b"[]", -32600),
        (b'[{"jsonrpc":"2.0","id":1,"method":"ping"}]', -32600),
        (b'"ping"', -32600),
        (b"null", -32600),
        (b'{"jsonrpc":"2.0","id":null,"method":"ping"}', -32600),
        (b'{"jsonrpc":"2.0","id":true,"method":"ping"}', -32600),
        (b'{"jsonrpc":"2.0","id":1.5,"method":"ping"}', -32600),
        (b'{"jsonrpc":"2.0","id":' + b"9" * 40 + b',"method":"ping"}', -32600),
        (b'{"jsonrpc":"1.0","id":1,"method":"ping"}', -32600),
        (b'{"id":1,"method":"ping"}', -32600),
        (b'{"jsonrpc":"2.0","id":1,"method":7}', -32600),
        (b'{"jsonrpc":"2.0","id":1,"method":"ping","params":[]}', -32600),
        (b'{"jsonrpc":"2.0","id":1}', -32600),
        (b"", -32700),
        (b"{", -32700),
        (b"\xff\xfe", -32700),
        (b"[" * 100_000, -32700),
        (b'{"jsonrpc":"2.0","id":1,"method":"ping","params":' + b'{"a":' * 300 + b"1" + b"}" * 301, -32700),
    ],
)
def test_what_is_no_message_is_an_error_of_the_protocol(bench: Bench, body: bytes, code: int) -> None:
    answer = post(bench, body)
    assert answer.status == 400
    assert answer.json["error"]["code"] == code


@pytest.mark.parametrize(
    ("method", "params", "code"),
    [
        ("nothing/here", None, -32601),
        ("prompts/list", {}, -32601),
        ("resources/list", {}, -32601),
        ("tools/call", {"name": "nope", "arguments": {}}, -32602),
        ("tools/call", {"name": 7}, -32602),
        ("tools/call", {"name": "ask", "arguments": "x"}, -32602),
        ("tools/call", None, -32602),
        ("initialize", {}, -32602),
        ("tools/list", {"cursor": 7}, -32602),
        ("tools/list", {"_meta": 7}, -32602),
    ],
)
def test_what_is_wrong_with_a_request_is_said_under_its_id(bench: Bench, method: str, params: dict[str, Any] | None, code: int) -> None:
    answer = post(bench, asks(method, params, id="a"))
    assert answer.status == 200
    assert (answer.json["id"], answer.json["error"]["code"]) == ("a", code)


def test_the_newer_generation_is_told_by_status_too(bench: Bench) -> None:
    meta = {"io.modelcontextprotocol/protocolVersion": "2026-07-28", "io.modelcontextprotocol/clientCapabilities": {}}

    def sent(method: str, params: dict[str, Any], version: str = "2026-07-28", **more: str) -> Reply:
        return post(bench, asks(method, params), mcp_protocol_version=version, mcp_method=method, **more)

    found = sent("server/discover", {"_meta": meta})
    assert found.status == 200
    assert "2026-07-28" in found.json["result"]["supportedVersions"]
    assert found.json["result"]["resultType"] == "complete"
    assert "mcp-session-id" not in found.headers
    assert sent("nothing/here", {"_meta": meta}).status == 404
    assert sent("tools/call", {"_meta": meta, "name": "nope"}, mcp_name="nope").status == 400
    assert sent("tools/call", {"_meta": meta, "name": "ask"}, mcp_name="verdict").status == 400
    assert sent("tools/list", {}).status == 400
    assert sent("tools/list", {"_meta": {**meta, "io.modelcontextprotocol/protocolVersion": "2099-01-01"}}, "2099-01-01").status == 400
    assert post(bench, {"jsonrpc": "2.0", "method": "notifications/cancelled"}, mcp_protocol_version="2026-07-28").status == 202


@pytest.mark.parametrize(
    "message",
    [
        {"jsonrpc": "2.0", "method": "notifications/initialized"},
        {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": {"a": 1}}},
        {"jsonrpc": "2.0", "method": "notifications/of/tomorrow", "params": {"a": 1}},
        {"jsonrpc": "2.0", "id": 7, "result": {}},
        {"jsonrpc": "2.0", "id": 7, "error": {"code": 1, "message": "x"}},
    ],
)
def test_what_wants_no_answer_gets_an_empty_one(bench: Bench, message: dict[str, Any]) -> None:
    answer = post(bench, message, accept="application/json", mcp_session_id=session(bench))
    assert (answer.status, answer.body) == (202, b"")


def test_there_is_nothing_to_get(bench: Bench) -> None:
    for path in ("/mcp", "/v1/mcp"):
        answer = bench.live.send("GET", path, headers={"accept": "text/event-stream"})
        assert answer.status == 405
        assert "POST" in answer.headers["allow"]
    for path in ("oauth-protected-resource", "oauth-protected-resource/mcp", "oauth-authorization-server", "openid-configuration/mcp"):
        assert bench.live.send("GET", f"/.well-known/{path}").status == 404


def ask_slowly(bench: Bench, core: str, session_id: str = "", id: Any = 9, token: Any = None) -> Stream:
    """Asks a panel, and comes back once the stream has begun."""
    meta = {"_meta": {"progressToken": token}} if token is not None else {}
    message = asks("tools/call", {"name": "ask", "arguments": {"collection": core, "prompt": "x"}, **meta}, id)
    headers = {"content-type": "application/json", "accept": BOTH, **({"mcp-session-id": session_id} if session_id else {})}
    bench.load()
    return Stream(bench.live.host, bench.live.port, "/mcp", json.dumps(message).encode(), headers)


def test_a_client_that_gave_no_token_hears_no_progress_and_is_kept_alive(bench: Bench) -> None:
    gate = bench.fake.gate()
    core = panel(bench, reply("quick"), reply("late").after(gate))
    with ask_slowly(bench, core) as stream:
        assert stream.headers["content-type"] == "text/event-stream"
        assert stream.headers["x-bench-panel"].startswith("pan_")
        stream.until(": keepalive\n\n: keepalive\n\n")
        gate.open()
        (answer,) = stream.events()
    assert answer["id"] == 9
    assert [s["text"] for s in check_bench(answer["result"]["structuredContent"]["bench"])] == ["quick", "late"]


@pytest.mark.parametrize("token", ["p-1", 0])
def test_a_client_that_gave_a_token_hears_it_rise(bench: Bench, token: Any) -> None:
    gate = bench.fake.gate()
    core = panel(bench, reply("quick"), reply("late").after(gate))
    with ask_slowly(bench, core, token=token) as stream:
        stream.until('"progress":3')
        gate.open()
        *progress, answer = stream.events()
    assert {p["params"]["progressToken"] for p in progress} == {token}
    assert [p["params"]["progress"] for p in progress] == list(range(1, len(progress) + 1))
    assert answer["result"]["structuredContent"]["bench"]["status"] == "complete"


def test_a_client_that_leaves_cancels_its_panel(bench: Bench) -> None:
    core, slow = panel(bench, reply("late").after(bench.fake.gate())), f"{bench.tag}-m0"
    stream = ask_slowly(bench, core, token=1)
    panel_id = stream.headers["x-bench-panel"]
    stream.close()
    bench.fake.closed(slow)
    (row,) = bench.live.attempts(1, panel=panel_id)
    assert row["status"] == "cancelled"


def test_a_request_is_taken_back_whichever_worker_hears_of_it(bench: Bench) -> None:
    core, slow, mine = panel(bench, reply("late").after(bench.fake.gate())), f"{bench.tag}-m0", session(bench)
    for n in range(4):
        with ask_slowly(bench, core, mine, id=f"r{n}") as stream:
            other = session(bench)
            for whose in (other, mine):  # of these two the first is nobody's business
                told = {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": f"r{n}", "reason": "enough"}}
                assert post(bench, told, mcp_session_id=whose).status == 202
            (answer,) = stream.events()
        assert (answer["id"], answer["error"]["code"]) == (f"r{n}", -32800)
        bench.fake.closed(slow, n)


def test_a_limited_key_is_limited_here_too(bench: Bench) -> None:
    core, key = panel(bench, reply()), bench.key(rpm=1)
    message = asks("tools/call", {"name": "ask", "arguments": {"collection": core, "prompt": "x"}})
    assert not post(bench, message, key=key).json["result"]["isError"]
    refused = post(bench, message, key=key).json["result"]
    assert refused["structuredContent"]["error"]["code"] == "rate_limit_exceeded"
    assert refused["structuredContent"]["error"]["retry_after_s"] > 0
