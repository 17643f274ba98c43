"""Statuses and codes where the contract's table is easily missed."""

from __future__ import annotations

import socket
from typing import Any

import pytest

from tests.fake import hang, reply, status
from tests.http import exchange, finished
from tests.live import Bench

pytestmark = pytest.mark.formats

SMALL = {"context_window": 50}
LONG = "word " * 500


def retire(bench: Bench, alias: str) -> None:
    bench.load().live.api("POST", f"models/{alias}/retire", {"reason": "worn out"})


@pytest.mark.parametrize("mode", ["", ":merged", ":route"])
def test_seats_that_cannot_take_it_for_different_reasons_are_the_callers_400(bench: Bench, mode: str) -> None:
    small, gone = bench.model("small", facts=SMALL), bench.model("gone")
    core = bench.collection([small, gone])
    retire(bench, gone)
    answer = bench.ask(core + mode, LONG)
    assert answer.status == 400, answer.body
    assert small in answer.message
    assert gone in answer.message


@pytest.mark.parametrize("mode", ["", ":merged", ":route"])
def test_a_collection_whose_members_are_all_retired_is_no_fault_of_a_provider(bench: Bench, mode: str) -> None:
    gone = bench.model("gone")
    core = bench.collection([gone])
    retire(bench, gone)
    answer = bench.ask(core + mode)
    assert answer.status == 400, answer.body
    assert gone in answer.message


def test_a_retired_model_is_not_there_to_be_asked(bench: Bench) -> None:
    gone = bench.model("gone")
    retire(bench, gone)
    answer = bench.ask(gone)
    assert (answer.status, answer.code) == (404, "model_not_found")
    assert not bench.fake.calls_to(gone)


def raw(bench: Bench, head: str, body: bytes = b"") -> bytes:
    return exchange(bench.live.host, bench.live.port, head.replace("\n", "\r\n").encode() + b"\r\n\r\n" + body, half_close=False)


@pytest.mark.parametrize(
    "path",
    [
        "//v1/chat/completions",
        "/v1//chat/completions",
        "/v1/chat/completions/",
        "/v1/chat%2Fcompletions",
        "/v1/./chat/completions",
        "/x/../v1/chat/completions",
    ],
)
def test_other_spellings_of_a_path_reach_no_model(bench: Bench, path: str) -> None:
    fast = bench.model("fast")
    bench.load()
    answer = bench.live.send("POST", path, {"model": fast, "messages": [{"role": "user", "content": "hi"}]})
    assert answer.status in (200, 301, 307, 308, 404), answer.body
    if answer.status == 200:
        assert len(bench.fake.calls_to(fast)) == 1


@pytest.mark.parametrize("target", ["http://evil.example/v1/models", "http://169.254.169.254/v1/models", "*", "evil.example:443"])
def test_an_absolute_target_is_no_way_past_the_host_list(bench: Bench, target: str) -> None:
    bench.load()
    got = raw(bench, f"GET {target} HTTP/1.1\nhost: evil.example\nconnection: close")
    assert got.split(b" ")[1][:1] == b"4", got[:200]


def test_http_1_0_with_a_host_is_answered_and_closed(bench: Bench) -> None:
    fast = bench.model("fast", reply("old"))
    bench.load()
    body = b'{"model": "%b", "messages": [{"role": "user", "content": "hi"}]}' % fast.encode()
    got = raw(bench, f"POST /v1/chat/completions HTTP/1.0\nhost: localhost\ncontent-length: {len(body)}", body)
    assert b" 200 " in got.split(b"\r\n")[0]
    assert b"old" in got


def test_a_stream_for_http_1_0_is_not_chunked(bench: Bench) -> None:
    fast = bench.model("fast", reply(["a", "b"]))
    bench.load()
    body = b'{"model": "%b", "stream": true, "messages": [{"role": "user", "content": "hi"}]}' % fast.encode()
    with socket.create_connection((bench.live.host, bench.live.port), timeout=60) as sock:
        sock.sendall(f"POST /v1/chat/completions HTTP/1.0\r\nhost: localhost\r\ncontent-length: {len(body)}\r\n\r\n".encode() + body)
        got = b""
        while piece := sock.recv(65536):
            got += piece
    head, _, rest = got.partition(b"\r\n\r\n")
    assert b"chunked" not in head.lower()
    assert rest.startswith(b"data: ")
    assert rest.endswith(b"data: [DONE]\n\n")


def test_chunked_bodies_and_expect_are_taken(bench: Bench) -> None:
    fast = bench.model("fast", reply("chunky"), reply("expected"))
    bench.load()
    body = b'{"model": "%b", "messages": [{"role": "user", "content": "hi"}]}' % fast.encode()
    chunks = b"".join(b"%x\r\n%b\r\n" % (len(body[i : i + 7]), body[i : i + 7]) for i in range(0, len(body), 7)) + b"0\r\n\r\n"
    assert b"chunky" in raw(bench, "POST /v1/chat/completions HTTP/1.1\nhost: localhost\ntransfer-encoding: chunked", chunks)
    with socket.create_connection((bench.live.host, bench.live.port), timeout=60) as sock:
        sock.sendall(f"POST /v1/chat/completions HTTP/1.1\r\nhost: localhost\r\nexpect: 100-continue\r\ncontent-length: {len(body)}\r\n\r\n".encode())
        assert sock.recv(100).startswith(b"HTTP/1.1 100")
        sock.sendall(body)
        got = b""
        while not finished(got):
            piece = sock.recv(65536)
            assert piece, got
            got += piece
        assert b"expected" in got


def test_expect_is_not_answered_with_continue_where_the_key_is_wrong(bench: Bench) -> None:
    bench.load()
    got = raw(bench, "POST /v1/chat/completions HTTP/1.1\nhost: localhost\nauthorization: Bearer nope\nexpect: 100-continue\ncontent-length: 100")
    assert got.startswith(b"HTTP/1.1 401"), got[:100]


def test_pipelined_calls_are_answered_in_order(bench: Bench) -> None:
    one, two = bench.model("one", reply("first answer").after(0.2)), bench.model("two", reply("second answer"))
    bench.load()
    out = b""
    for alias, ending in ((one, ""), (two, "connection: close\r\n")):
        body = b'{"model": "%b", "messages": [{"role": "user", "content": "hi"}]}' % alias.encode()
        out += f"POST /v1/chat/completions HTTP/1.1\r\nhost: localhost\r\n{ending}content-length: {len(body)}\r\n\r\n".encode() + body
    with socket.create_connection((bench.live.host, bench.live.port), timeout=60) as sock:
        sock.sendall(out)
        got = b""
        while piece := sock.recv(65536):
            got += piece
    assert 0 < got.find(b"first answer") < got.find(b"second answer")


@pytest.mark.parametrize(
    "head",
    [
        "POST /v1/chat/completions HTTP/1.1\nhost: localhost\ncontent-length: 5\ntransfer-encoding: chunked",
        "POST /v1/chat/completions HTTP/1.1\nhost: localhost\ncontent-length: 5\ncontent-length: 6",
        "POST /v1/chat/completions HTTP/1.1\nhost: localhost\nhost: evil.example\ncontent-length: 2",
        "POST /v1/chat/completions HTTP/1.1\nhost: localhost\ncontent-length: -1",
        "POST /v1/chat/completions HTTP/1.1\nhost : localhost\ncontent-length: 2",
        "POST /v1/chat/completions HTTP/1.1\nhost: localhost\ntransfer-encoding: xchunked",
    ],
)
def test_what_two_servers_could_read_differently_is_refused(bench: Bench, head: str) -> None:
    bench.load()
    got = raw(bench, head, b"{}")
    assert got.split(b" ")[1][:1] in (b"4", b"5"), got[:200]
    assert got.count(b"HTTP/1.1") == 1


@pytest.mark.parametrize("streams", [True, False])
def test_all_rate_limited_all_timed_out_and_mixed(bench: Bench, streams: bool) -> None:
    # Each behind a key of its own: what is told to wait in one panel is not asked in the next.
    limited = [bench.model(f"l{n}", status(429, "slow", headers={"retry-after": "7"}), endpoint=bench.endpoint(f"at-l{n}")) for n in range(3)]
    silent = [bench.model(f"s{n}", hang()) for n in range(2)]
    both = bench.collection(limited[:2], name="limited")
    slow = bench.collection(silent, name="slow", timeout_s=1)
    mixed = bench.collection([limited[2], silent[0]], name="mixed", timeout_s=1)
    answers: dict[str, Any] = {}
    for name in (slow, mixed, both):
        if streams:
            with bench.stream(name) as stream:
                events = stream.events()
                answers[name] = events[-1]["error"]["code"]
                assert "[DONE]" not in events
        else:
            answer = bench.ask(name)
            answers[name] = (answer.status, answer.code)
    if streams:
        assert answers == {both: "rate_limit_exceeded", slow: "upstream_timeout", mixed: answers[mixed]}
    else:
        assert answers[both] == (429, "rate_limit_exceeded")
        assert answers[slow] == (504, "upstream_timeout")
        assert answers[mixed][0] == 502
