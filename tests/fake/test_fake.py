"""The fake provider does what its scripts say: a test that leans on it can trust it."""

from __future__ import annotations

import http.client
import json
import socket
import zlib
from collections.abc import Iterator
from contextlib import closing
from typing import Any

import pytest

from tests.fake import FakeProvider, garbage, hang, raw, refusing_address, reply, sse, status, whole


@pytest.fixture
def fake() -> Iterator[FakeProvider]:
    provider = FakeProvider()
    yield provider
    provider.close()


def ask(fake: FakeProvider, model: str, **more: Any) -> tuple[http.client.HTTPResponse, bytes]:
    with closing(http.client.HTTPConnection("127.0.0.1", fake.port, timeout=10)) as connection:
        connection.request("POST", "/v1/chat/completions", json.dumps({"model": model, "messages": [], **more}), {"content-type": "application/json"})
        response = connection.getresponse()
        return response, response.read()


def open_stream(fake: FakeProvider, model: str) -> socket.socket:
    body = json.dumps({"model": model, "messages": [], "stream": True}).encode()
    sock = socket.create_connection(("127.0.0.1", fake.port), timeout=10)
    sock.sendall(b"POST /v1/chat/completions HTTP/1.1\r\nhost: x\r\ncontent-length: %d\r\n\r\n%b" % (len(body), body))
    return sock


def read_until(sock: socket.socket, mark: bytes) -> bytes:
    got = b""
    while mark not in got:
        piece = sock.recv(65536)
        assert piece, f"the stream ended before {mark!r}"
        got += piece
    return got


def test_a_model_without_a_script_answers_ordinarily(fake: FakeProvider) -> None:
    response, body = ask(fake, "fast")
    assert response.status == 200
    assert json.loads(body)["choices"][0]["message"]["content"] == "answer of fast"
    assert fake.call("fast").json["model"] == "fast"


def test_a_script_plays_one_entry_a_call_and_repeats_the_last(fake: FakeProvider) -> None:
    fake.script("fast", reply("one"), status(429, headers={"retry-after": "7"}))
    assert ask(fake, "fast")[0].status == 200
    for _ in range(2):
        response, _ = ask(fake, "fast")
        assert (response.status, response.headers["retry-after"]) == (429, "7")
    assert ask(fake, "slow")[0].status == 200


def test_a_stream_is_whole_events_with_usage_where_it_was_asked_for(fake: FakeProvider) -> None:
    fake.script("fast", reply(["a", "b"], usage=(3, 2)))
    _, body = ask(fake, "fast", stream=True, stream_options={"include_usage": True})
    events = [e[6:] for e in body.decode().strip().split("\n\n")]
    assert events[-1] == "[DONE]"
    assert json.loads(events[-2])["usage"]["total_tokens"] == 5
    assert "".join(json.loads(e)["choices"][0]["delta"].get("content", "") for e in events[:-2]) == "ab"


def test_dripping_and_splitting_change_no_byte(fake: FakeProvider) -> None:
    fake.script("a", reply("naïve 🙂"))
    fake.script("b", reply("naïve 🙂").dripping(1))
    fake.script("c", reply("naïve 🙂").split("🙂"))
    bodies = {ask(fake, m, stream=True)[1].replace(f'"{m}"'.encode(), b'"m"') for m in "abc"}
    assert len(bodies) == 1


def test_line_ends_can_be_crlf_and_cr(fake: FakeProvider) -> None:
    fake.script("crlf", reply("x").crlf())
    fake.script("cr", reply("x").cr())
    assert b"\r\n\r\ndata" in ask(fake, "crlf", stream=True)[1]
    assert b"\n" not in ask(fake, "cr", stream=True)[1]


def test_gzip_inflates_to_the_same_answer(fake: FakeProvider) -> None:
    fake.script("fast", reply("hello").gzipped())
    for stream in (False, True):
        response, body = ask(fake, "fast", stream=stream)
        assert response.headers["content-encoding"] == "gzip"
        assert b"hello" in zlib.decompress(body, wbits=31)


def test_a_cut_answer_ends_where_it_says(fake: FakeProvider) -> None:
    fake.script("half", reply("hello").cut(after='"choices"'))
    with pytest.raises(http.client.IncompleteRead) as caught:
        ask(fake, "half")
    assert caught.value.partial.endswith(b'"choices"')
    fake.script("event", reply(["one", "two"]).closing().cut(after="one"))
    assert ask(fake, "event", stream=True)[1].endswith(b"\n\n")
    fake.script("inside", reply(["one", "two"]).closing().cut(after="one", inside=True))
    assert ask(fake, "inside", stream=True)[1].endswith(b"one")
    fake.script("reset", reply("hello").cut(after="hello", how="reset"))
    with pytest.raises(ConnectionResetError):
        ask(fake, "reset", stream=True)


def test_a_lying_length_is_sent_as_it_is(fake: FakeProvider) -> None:
    fake.script("short", whole(b"{}").claiming(5000))
    with pytest.raises(http.client.IncompleteRead):
        ask(fake, "short")


def test_a_gate_holds_an_answer_until_the_test_opens_it(fake: FakeProvider) -> None:
    gate = fake.gate()
    fake.script("slow", reply(["one", "two"]).holding(gate, after="one"))
    with open_stream(fake, "slow") as sock:
        assert b"two" not in read_until(sock, b"one")
        gate.open()
        read_until(sock, b"two")
        fake.wait_for(lambda: fake.call("slow").answered_at, "the end of the answer")


def test_a_caller_that_hangs_up_is_noticed(fake: FakeProvider) -> None:
    for name, answer in {"hang": hang(), "gate": reply("x").after(fake.gate()), "pause": reply("x").holding(600.0)}.items():
        fake.script(name, answer)
        sock = open_stream(fake, name)
        assert fake.call(name).closed_at is None
        sock.close()
        assert fake.closed(name).answered_at is None


def test_connections_can_be_refused_and_reset(fake: FakeProvider) -> None:
    with refusing_address() as url, pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.1", int(url.split(":")[2].split("/")[0])), timeout=5)
    fake.on_connect = "reset"
    with pytest.raises((ConnectionResetError, BrokenPipeError, http.client.RemoteDisconnected)):
        ask(fake, "fast")


def test_anything_can_be_sent_byte_by_byte(fake: FakeProvider) -> None:
    fake.script("raw", raw(b"HTTP/1.1 299 Odd\r\nx: y\r\n\r\n", b"body", "close"))
    response, body = ask(fake, "raw")
    assert (response.status, body) == (299, b"body")
    fake.script("junk", garbage())
    with pytest.raises(ValueError, match=r"codec|JSON"):
        json.loads(ask(fake, "junk")[1])
    fake.script("events", sse(": note\n\n", {"choices": []}, done=False))
    assert ask(fake, "events", stream=True)[1] == b': note\n\ndata: {"choices": []}\n\n'


def test_it_lists_its_models(fake: FakeProvider) -> None:
    fake.script("fast", reply())
    with closing(http.client.HTTPConnection("127.0.0.1", fake.port, timeout=10)) as connection:
        connection.request("GET", "/v1/models")
        assert [m["id"] for m in json.loads(connection.getresponse().read())["data"]] == ["fast"]


def test_one_connection_serves_several_requests(fake: FakeProvider) -> None:
    with closing(http.client.HTTPConnection("127.0.0.1", fake.port, timeout=10)) as connection:
        for stream in (False, True, False):
            connection.request("POST", "/v1/chat/completions", json.dumps({"model": "m", "stream": stream}))
            assert connection.getresponse().read()
    assert fake.connections == 1
