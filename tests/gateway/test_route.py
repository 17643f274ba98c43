"""Route mode through the doors: who takes the turn, and that a conversation stays with its member whatever it is known by."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any
from urllib.parse import unquote

import anthropic
import openai
import pytest

from tests.fake import FakeProvider, reply, status
from tests.fake.dialects.anthropic_messages import SIGNATURE
from tests.http import Reply
from tests.live import Bench, Database, Live, eventually

LOOK: Any = {"type": "function", "function": {"name": "look", "parameters": {"type": "object", "properties": {"at": {"type": "string"}}}}}
LOOK_HERE: Any = {"name": "look", "input_schema": {"type": "object", "properties": {"at": {"type": "string"}}}}
PICTURE = {"type": "image_url", "image_url": {"url": "data:image/png;base64,iVBORw0KGgo="}}
HI: list[Any] = [{"role": "user", "content": "hi"}]
OTHER: list[Any] = [{"role": "user", "content": "something else entirely"}]
NEW: list[Any] = [{"role": "user", "content": "nothing that was ever asked"}]
SERVER = "postgresql://postgres@127.0.0.1:5432/postgres"


def member(bench: Bench, name: str, *answers: Any, kind: str = "openai", **more: Any) -> str:
    """A model behind an endpoint of its own, so that a rest of one is nobody else's."""
    return bench.model(name, *answers, endpoint=bench.endpoint(f"at-{name}", bench.fake.root, kind=kind), **more)


def took(answer: Reply) -> str:
    """Who took a turn that was answered."""
    assert answer.status == 200, answer.body[:500]
    return unquote(answer.headers["x-bench-model"]).rpartition("-")[2]


def routed(bench: Bench, core: str, prompt: Any = "hi", **more: Any) -> str:
    return took(bench.ask(f"{core}:route", prompt, **more))


# ------------------------------------------------------------------ the pick


@pytest.mark.parametrize(
    ("facts", "more"),
    [
        ({"tools": False}, {"tools": [LOOK]}),
        ({"vision": False}, {"prompt": [{"role": "user", "content": [PICTURE]}]}),
        ({"context_window": 100, "output_limit": 10}, {"prompt": "word " * 200}),
        (
            {"structured_output": False},
            {"response_format": {"type": "json_schema", "json_schema": {"name": "a", "schema": {"type": "object"}}}},
        ),
    ],
)
def test_the_first_member_that_can_takes_the_turn(bench: Bench, facts: Any, more: Any) -> None:
    unable, able = member(bench, "unable", facts=facts), member(bench, "able", facts={"vision": True, "tools": True})
    core = bench.collection([unable, able])
    answer = bench.ask(f"{core}:route", **more)
    assert took(answer) == "able"
    assert answer.headers["x-bench-attempts"] == "1"
    assert not bench.fake.calls_to(unable)
    assert routed(bench, core, "an ordinary question") == "unable"


def test_a_member_that_is_retired_or_rests_is_passed_over(bench: Bench) -> None:
    gone, tired, fit = member(bench, "gone"), member(bench, "tired", status(429, headers={"retry-after": "300"}), reply()), member(bench, "fit")
    core = bench.collection([gone, tired, fit])
    bench.load().live.api("POST", f"models/{gone}/retire", {"reason": "old"})
    answer = bench.ask(f"{core}:route")
    assert (took(answer), answer.headers["x-bench-attempts"]) == ("fit", "2")
    answer = bench.ask(f"{core}:route", OTHER)
    assert (took(answer), answer.headers["x-bench-attempts"]) == ("fit", "1")
    assert len(bench.fake.calls_to(tired)) == 1


def test_members_are_tried_by_their_record_where_the_collection_says_so(bench: Bench) -> None:
    first, second = member(bench, "first", reply("poor")), member(bench, "second", reply("good"))
    judged, fresh = bench.collection([first, second], "judged", picking="record"), bench.collection([first, second], "fresh", picking="record")
    fixed = bench.collection([first, second], "fixed")
    for n in range(8):
        for seat in bench.ask(judged, f"question {n}").json["bench"]["seats"]:
            bench.live.api("POST", "verdict", {"call": seat["call"], "useful": seat["model"] == second})
    assert routed(bench, judged) == "second"
    # Verdicts of another collection say nothing of this one.
    assert routed(bench, fresh) == "first"
    assert routed(bench, fixed) == "first"


def test_a_turn_that_nobody_can_take_names_each_reason(bench: Bench) -> None:
    one, two = member(bench, "one", facts={"vision": False}), member(bench, "two", facts={"vision": False})
    answer = bench.ask(f"{bench.collection([one, two])}:route", [{"role": "user", "content": [PICTURE]}])
    assert (answer.status, answer.code) == (400, "invalid_request")
    assert one in answer.message
    assert two in answer.message
    assert not bench.fake.calls


def test_a_member_that_the_key_does_not_name_is_no_target(bench: Bench) -> None:
    named, other = member(bench, "named", status(500)), member(bench, "other", reply("no"))
    core = bench.collection([other, named])
    key = bench.key(collections=[core.removeprefix("bench/")], models=[named])
    answer = bench.ask(f"{core}:route", key=key)
    assert (answer.status, answer.code) == (502, "upstream_error")
    assert not bench.fake.calls_to(other)
    nobody = bench.key(collections=[core.removeprefix("bench/")], models=["nothing-here"])
    answer = bench.ask(f"{core}:route", key=nobody)
    assert (answer.status, answer.code) == (403, "not_allowed")
    assert routed(bench, core, "new", key=bench.key(collections=[core.removeprefix("bench/")])) == "other"


# ------------------------------------------------------------------ known again


@pytest.fixture
def moved(bench: Bench) -> str:
    """A collection whose first member fails once: what is bound by the first turn is bound to the second member, all else goes to the first."""
    first, second = member(bench, "first", status(500), reply("from first")), member(bench, "second", reply("from second", tools=()))
    core = bench.collection([first, second])
    bench.load()
    return f"{core}:route"


def posted(bench: Bench, path: str, body: Any, **headers: str) -> str:
    return took(bench.live.send("POST", path, body, headers={k.replace("_", "-"): v for k, v in headers.items()}))


@pytest.mark.parametrize("header", ["x-session-id", "x-session-affinity", "session-id", "session_id", "thread-id"])
def test_a_session_header_keeps_the_conversation(bench: Bench, moved: str, header: str) -> None:
    assert took(bench.ask(moved, HI, tools=[LOOK], headers={header: f"{bench.tag}-s"})) == "second"
    for _ in range(4):  # of whichever worker
        assert took(bench.ask(moved, OTHER, tools=[LOOK], headers={header: f"{bench.tag}-s"})) == "second"
    assert took(bench.ask(moved, NEW, tools=[LOOK], headers={header: f"{bench.tag}-t"})) == "first"


def test_a_session_of_claude_code_keeps_the_conversation_and_its_sub_agents_their_own(bench: Bench, moved: str) -> None:
    body = {"model": moved, "max_tokens": 9, "messages": HI, "tools": [LOOK_HERE], "stream": True}
    told = {"metadata": {"user_id": json.dumps({"device_id": "d", "account_uuid": "", "session_id": f"{bench.tag}-s"})}}
    session = {"x_claude_code_session_id": f"{bench.tag}-s"}
    agent = {**session, "x_claude_code_agent_id": "a1"}
    assert posted(bench, "/v1/messages", {**body, **told}) == "second"
    assert posted(bench, "/v1/messages", {**body, "messages": OTHER}, **session) == "second"
    assert posted(bench, "/v1/messages", {**body, **told, "messages": OTHER}) == "second"
    # The same session's sub-agent begins its own conversation, and moves nobody.
    assert posted(bench, "/v1/messages", {**body, "messages": [{"role": "user", "content": "sub"}]}, **agent) == "first"
    assert posted(bench, "/v1/messages", {**body, "messages": [{"role": "user", "content": "sub 2"}]}, **agent) == "first"
    assert posted(bench, "/v1/messages", {**body, "messages": [{"role": "user", "content": "main"}]}, **session) == "second"


def test_a_cache_key_keeps_the_conversation(bench: Bench, moved: str) -> None:
    with openai.OpenAI(base_url=f"{bench.live.url}/v1", api_key=bench.key(), max_retries=0) as sdk:
        for n, (key, expected) in enumerate((("k", "from second"), ("k", "from second"), ("other", "from first"))):
            answer = sdk.chat.completions.create(
                model=moved,
                messages=[{"role": "user", "content": f"turn {n}"}],
                tools=[LOOK],
                prompt_cache_key=f"{bench.tag}-{key}",
            )
            assert answer.choices[0].message.content == expected


@pytest.mark.parametrize("streamed", [False, True])
def test_an_answer_that_is_gone_on_from_keeps_the_conversation(bench: Bench, moved: str, streamed: bool) -> None:
    with openai.OpenAI(base_url=f"{bench.live.url}/v1", api_key=bench.key(), max_retries=0) as sdk:

        def ask(**more: Any) -> Any:
            if not streamed:
                return sdk.responses.create(model=moved, **more)
            return next(e for e in sdk.responses.create(model=moved, stream=True, **more) if e.type == "response.completed").response

        first = ask(input="hi", instructions="Be brief.")
        assert first.output_text == "from second"
        # Instructions do not carry over, so the history alone would not tell.
        second = ask(input="more", previous_response_id=first.id, instructions="Be long.")
        assert second.output_text == "from second"
        assert ask(input="and more", previous_response_id=second.id).output_text == "from second"
        assert ask(input="hi", instructions="Another.").output_text == "from first"
    sent = bench.fake.calls_to(f"{bench.tag}-second")[-1].json["messages"]
    assert [m["content"] for m in sent if m["role"] == "user"] == ["hi", "more", "and more"]


def test_a_call_that_went_out_keeps_the_conversation(bench: Bench) -> None:
    call_id = f"call_{bench.tag}abcdefgh123"
    first = member(bench, "first", status(500), reply("from first"))
    second = member(bench, "second", reply("", tools=[(call_id, "look", '{"at": "sky"}')]), reply("from second"), kind="anthropic")
    model = f"{bench.collection([first, second])}:route"
    bench.load()
    with anthropic.Anthropic(base_url=bench.live.url, api_key=bench.key(), max_retries=0) as sdk:

        def ask(messages: Any) -> Any:
            with sdk.messages.stream(model=model, max_tokens=9, messages=messages, tools=[LOOK_HERE]) as stream:
                return stream.get_final_message()

        called = ask(HI)
        assert called.content[0].id == call_id
        turn = {"role": "user", "content": [{"type": "tool_result", "tool_use_id": call_id, "content": "a cat"}]}
        # What came before was cut away by the client: only the id is left.
        cut = [{"role": "user", "content": "(summary)"}, {"role": "assistant", "content": called.content}, turn]
        assert ask(cut).content[0].text == "from second"
        assert ask(OTHER).content[0].text == "from first"


def test_a_history_keeps_the_conversation_however_it_is_written_again(bench: Bench, moved: str) -> None:
    system, turn = {"role": "system", "content": "Be brief."}, {"role": "user", "content": "hi"}
    assert took(bench.ask(moved, [system, turn], tools=[LOOK])) == "second"
    blocks = {"role": "user", "content": [{"type": "text", "text": "hi", "cache_control": {"type": "ephemeral"}}]}
    history = [{"role": "assistant", "content": "hello"}, {"role": "user", "content": "more"}]
    assert took(bench.ask(moved, [system, blocks, *history], tools=[LOOK])) == "second"
    body = {"model": moved, "max_tokens": 9, "system": "Be brief.", "messages": [blocks, *history, {"role": "assistant", "content": "a"}, blocks]}
    assert posted(bench, "/v1/messages", body) == "second"
    assert posted(bench, "/api/chat", {"model": moved, "messages": [system, turn, *history], "stream": False}) == "second"
    assert took(bench.ask(moved, [turn, *history], tools=[LOOK])) == "first"


def test_a_title_call_does_not_choose_the_member(bench: Bench) -> None:
    first = member(bench, "first", status(500), reply("from first"))
    second = member(bench, "second", reply("a title"), reply("from second"))
    model = f"{bench.collection([first, second])}:route"
    bench.load()
    session = {"x-session-id": f"{bench.tag}-s"}
    title = [{"role": "system", "content": "Write a title."}, {"role": "user", "content": "hi"}]
    assert took(bench.ask(model, title, headers=session)) == "second"
    assert took(bench.ask(model, HI, tools=[LOOK], headers=session)) == "first"
    assert took(bench.ask(model, OTHER, tools=[LOOK], headers=session)) == "first"


def test_a_failed_turn_binds_nobody(bench: Bench) -> None:
    first, second = member(bench, "first", status(500), reply("from first")), member(bench, "second", status(500), reply("from second"))
    model = f"{bench.collection([first, second])}:route"
    session = {"x-session-id": f"{bench.tag}-s"}
    assert bench.ask(model, HI, tools=[LOOK], headers=session).status == 502
    assert took(bench.ask(model, HI, tools=[LOOK], headers=session)) == "first"


def test_a_member_that_fails_loses_the_conversation_for_good(bench: Bench) -> None:
    first = member(bench, "first", reply("one"), status(500), reply("back again"))
    second = member(bench, "second", reply("two"))
    model = f"{bench.collection([first, second])}:route"
    session = {"x-session-id": f"{bench.tag}-s"}
    turns = [took(bench.ask(model, [{"role": "user", "content": f"turn {n}"}], tools=[LOOK], headers=session)) for n in range(4)]
    assert turns == ["first", "second", "second", "second"]


def test_keys_and_collections_do_not_share_conversations(bench: Bench) -> None:
    first, second = member(bench, "first", status(500), reply("from first")), member(bench, "second", reply("from second"))
    one, other = bench.collection([first, second], "one"), bench.collection([first, second], "other")
    key, session = bench.key(), {"x-session-id": f"{bench.tag}-s"}
    assert took(bench.ask(f"{one}:route", HI, tools=[LOOK], headers=session, key=key)) == "second"
    assert took(bench.ask(f"{other}:route", HI, tools=[LOOK], headers=session, key=key)) == "first"
    assert took(bench.ask(f"{one}:route", HI, tools=[LOOK], headers=session, key=bench.key())) == "first"
    assert took(bench.ask(f"{one}:route", HI, tools=[LOOK], headers=session, key=key)) == "second"


# ------------------------------------------------------------------ processes


@pytest.fixture
def lives() -> Iterator[Callable[..., Live]]:
    """Servers of a test's own, all ended with it."""
    made: list[Live] = []

    def make(**more: Any) -> Live:
        made.append(Live(**more))
        return made[-1]

    yield make
    wrong = [fault for server in reversed(made) for fault in server.stop()]
    assert not wrong, "\n\n".join(wrong)


def bind(bench: Bench, session: dict[str, str]) -> str:
    first, second = member(bench, "first", status(500), reply("from first")), member(bench, "second", reply("from second"))
    model = f"{bench.collection([first, second])}:route"
    assert took(bench.ask(model, HI, tools=[LOOK], headers=session)) == "second"
    return model


def test_a_conversation_survives_a_restart(fake: FakeProvider, lives: Callable[..., Live]) -> None:
    server = lives(BENCH_WORKERS="1")
    server.start()
    bench, session = Bench(server, fake), {"x-session-id": "s"}
    model = bind(bench, session)
    assert server.terminate() == 0
    server.launch()
    assert took(bench.ask(model, OTHER, tools=[LOOK], headers=session)) == "second"
    assert took(bench.ask(model, NEW, tools=[LOOK], headers={"x-session-id": "t"})) == "first"


def test_two_servers_on_one_database_share_conversations(fake: FakeProvider, lives: Callable[..., Live]) -> None:
    shared = Database(SERVER)
    try:
        shared.create()
    except Exception as error:  # whatever keeps this machine from having one
        pytest.skip(f"no PostgreSQL here: {type(error).__name__}")
    servers = [lives(BENCH_WORKERS="1", DATABASE_URL=shared.url) for _ in range(2)]
    # The first made is ended last, and takes the database along.
    servers[0].database, servers[1].database = shared, Database("")
    for server in servers:
        server.launch(*([] if server.database.name else ["--migrate"]))
    one, two = (Bench(server, fake) for server in servers)
    session = {"x-session-id": "s"}
    model = bind(one, session)
    assert took(two.ask(model, OTHER, tools=[LOOK], headers=session)) == "second"
    assert took(one.ask(model, NEW, tools=[LOOK], headers={"x-session-id": "t"})) == "first"
    # A rest that one of them learns of holds in the other.
    tired = member(one, "tired", status(429, headers={"retry-after": "300"}), reply())
    again = f"{one.collection([tired, f'{one.tag}-second'], 'again')}:route"
    assert took(one.ask(again, HI)) == "second"
    assert took(two.ask(again, OTHER)) == "second"
    assert len(fake.calls_to(tired)) == 1


# ------------------------------------------------------------------ thinking


def test_thinking_goes_back_byte_for_byte_and_never_to_another_model(bench: Bench) -> None:
    first = member(bench, "first", reply("one", reasoning="my thought"), reply("two", reasoning="more"), status(500), kind="anthropic")
    second = member(bench, "second", reply("three"), kind="anthropic")
    model = f"{bench.collection([first, second])}:route"
    bench.load()
    body = {"model": model, "max_tokens": 2000, "tools": [LOOK_HERE], "thinking": {"type": "enabled", "budget_tokens": 1024}}
    turns: list[Any] = [*HI]
    for n in range(3):
        answer = bench.live.send("POST", "/v1/messages", {**body, "messages": turns}, key=None)
        assert took(answer) == ("second" if n == 2 else "first")
        sent = bench.fake.calls_to(second if n == 2 else first)[-1 if n == 2 else n].json["messages"]
        thoughts = [b for m in sent if isinstance(m["content"], list) for b in m["content"] if b["type"] == "thinking"]
        assert [b["signature"] for b in thoughts] == ([] if n == 2 else [SIGNATURE] * n)
        turns += [{"role": "assistant", "content": answer.json["content"]}, {"role": "user", "content": f"turn {n}"}]


def test_another_models_thinking_is_known_by_its_text_alone(bench: Bench) -> None:
    """A chat client repeats reasoning without its signature, and may name the same conversation to a member of its own format."""
    first = member(bench, "first", reply("one", reasoning="my thought"), status(500), kind="anthropic")
    second = member(bench, "second", reply("two", reasoning="your thought"))
    model = f"{bench.collection([first, second])}:route"
    thought = bench.ask(model, HI).json["choices"][0]["message"]
    assert thought["reasoning_content"] == "my thought"
    turns = [*HI, thought, {"role": "user", "content": "more"}]
    answer = bench.ask(model, turns)
    assert took(answer) == "second"
    assert "my thought" not in json.dumps(bench.fake.call(second).json)
    turns += [answer.json["choices"][0]["message"], {"role": "user", "content": "and more"}]
    assert took(bench.ask(model, turns)) == "second"
    again = json.dumps(bench.fake.call(second, 1).json)
    assert "my thought" not in again
    assert "your thought" in again


def test_reasoning_that_a_client_cannot_echo_is_kept_by_its_call_and_put_back(bench: Bench) -> None:
    call_id = f"toolu_{bench.tag}abcdefgh123"
    thinker = member(bench, "thinker", reply("", reasoning="hm", tools=[(call_id, "look", '{"at": "sky"}')]), reply("a cat"), kind="anthropic")
    model = f"{bench.collection([thinker])}:route"
    bench.load()
    with openai.OpenAI(base_url=f"{bench.live.url}/v1", api_key=bench.key(), max_retries=0) as sdk:
        messages: list[Any] = [*HI]
        called = sdk.chat.completions.create(model=model, messages=messages, tools=[LOOK], reasoning_effort="low", max_tokens=4000)
        calls = called.choices[0].message.tool_calls
        assert calls is not None
        messages.append({"role": "assistant", "tool_calls": [c.model_dump() for c in calls]})
        messages.append({"role": "tool", "tool_call_id": calls[0].id, "content": "a cat"})
        again = sdk.chat.completions.create(model=model, messages=messages, tools=[LOOK], reasoning_effort="low", max_tokens=4000)
        assert again.choices[0].message.content == "a cat"
    assistant = bench.fake.call(thinker, 1).json["messages"][1]["content"]
    assert assistant[0] == {"type": "thinking", "thinking": "hm", "signature": SIGNATURE}
    assert (assistant[1]["type"], assistant[1]["input"]) == ("tool_use", {"at": "sky"})


# ------------------------------------------------------------------ budgets and shadows


def test_a_turn_reserves_once_whoever_takes_it(bench: Bench) -> None:
    """Fifty turns at once against a budget for one: one goes out, and a failover needs no second reservation."""
    prices = {"input_usd_per_mtok": "0", "output_usd_per_mtok": "1000"}
    gate = bench.fake.gate()
    first = member(bench, "first", status(500), facts={**prices, "output_limit": 1000})
    second = member(bench, "second", reply("ok", usage=(1, 900)).after(gate), facts={**prices, "output_limit": 1000})
    model = f"{bench.collection([first, second])}:route"
    key = bench.key(budget_usd="1.5")
    with ThreadPoolExecutor(10) as pool:
        running = [pool.submit(bench.live.ask, model, f"turn {n}", key=key) for n in range(10)]
        bench.fake.call(second)
        eventually(lambda: sum(r.done() for r in running) == 9, "nine refusals")
        gate.open()
        answers = [r.result() for r in running]
    assert sorted(a.status for a in answers) == [200] + [402] * 9
    assert {a.code for a in answers if a.status == 402} == {"budget_exceeded"}
    # 0.9 of 1.5 is spent; a turn may cost up to 1.
    assert bench.ask(model, "one more", key=key).status == 402


@pytest.fixture
def shadowed(bench: Bench) -> Iterator[Callable[..., str]]:
    """A collection all of whose turns the other member answers too; afterwards its models take no explorer's seat anywhere."""

    def make(*answers: Any, **more: Any) -> str:
        prices = {"input_usd_per_mtok": "0", "output_usd_per_mtok": "1000", "output_limit": 1000}
        names = [member(bench, f"m{n}", *a, ad_hoc=False, facts=prices) for n, a in enumerate(answers)]
        return f"{bench.collection(names, shadow_share=1, **more)}:route"

    yield make
    for name in bench.models:
        bench.models[name]["ad_hoc"] = True
    bench._changed = True
    bench.load()


def test_a_share_of_the_turns_is_answered_in_the_shadow_too(bench: Bench, shadowed: Callable[..., str]) -> None:
    call = [("c1", "look", '{"at": "sky"}')]
    model = shadowed([reply("first", tools=call, usage=(5, 3))], [reply("shadow words", tools=call, usage=(5, 4))])
    answer = bench.ask(model, tools=[LOOK])
    assert took(answer) == "m0"
    assert "shadow" not in answer.text
    panel = answer.headers["x-bench-panel"]
    rows = bench.live.attempts(2, panel=panel)
    assert sorted((r["seat"], r["status"], r["output_tokens"]) for r in rows) == [("route", "ok", 3), ("shadow", "ok", 4)]
    seats = {s["seat"]: s for s in bench.live.api("GET", f"panels/{panel}")["seats"]}
    assert seats["shadow"]["text"] == "shadow words"
    verdict = bench.live.api("POST", "verdict", {"call": seats["shadow"]["call"], "useful": True})
    assert verdict["useful"] is True
    assert bench.fake.call(f"{bench.tag}-m1").json["tools"] == [LOOK]
    # It was not asked again: nobody executes what a shadow wants.
    assert len(bench.fake.calls_to(f"{bench.tag}-m1")) == 1


def test_a_shadow_that_fails_is_nobodys_trouble(bench: Bench, shadowed: Callable[..., str]) -> None:
    model = shadowed([reply("first")], [status(500)])
    answer = bench.ask(model)
    assert (took(answer), answer.content) == ("m0", "first")
    rows = bench.live.attempts(2, panel=answer.headers["x-bench-panel"])
    assert sorted((r["seat"], r["status"]) for r in rows) == [("route", "ok"), ("shadow", "error")]


def test_shadows_end_where_the_budget_does(bench: Bench, shadowed: Callable[..., str]) -> None:
    model = shadowed([reply("first", usage=(1, 600))], [reply("shadow", usage=(1, 1))])
    answer = bench.ask(model, key=bench.key(budget_usd="1.2"))
    assert took(answer) == "m0"
    bench.live.attempts(1, panel=answer.headers["x-bench-panel"])
    assert not bench.fake.calls_to(f"{bench.tag}-m1")
    paid = bench.ask(model, OTHER, key=bench.key(budget_usd="5"))
    bench.live.attempts(2, panel=paid.headers["x-bench-panel"])
