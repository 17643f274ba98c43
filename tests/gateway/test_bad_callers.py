"""What callers get wrong: a clear error in the dialect's shape, and nothing is asked or kept."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.live import Bench

pytestmark = pytest.mark.formats

MESSAGES = '"messages": [{"role": "user", "content": "hi"}]'

BODIES: dict[str, bytes] = {
    "nothing": b"",
    "no JSON": b"hello",
    "half an object": b'{"model": "$MODEL", "messages": [',
    "a list": b"[]",
    "a string": b'"x"',
    "null": b"null",
    "form fields": b"model=$MODEL&messages=hi",
    "deep lists": b"[" * 100_000 + b"]" * 100_000,
    "messages without end": b'{"model": "$MODEL", "messages": [' + b'{"role":"user","content":"a"},' * 60_000 + b'{"role":"user","content":"a"}]}',
    "tools without end": b'{"model": "$MODEL", "messages": [{"role":"user","content":"a"}], "tools": [' + b"{}," * 200_000 + b"{}]}",
    "deep objects in a field": b'{"model": "$MODEL", "metadata": ' + b'{"a":' * 5000 + b"1" + b"}" * 5000 + b"}",
    "NaN": f'{{"model": "$MODEL", "temperature": NaN, {MESSAGES}}}'.encode(),
    "an infinity": f'{{"model": "$MODEL", "temperature": Infinity, {MESSAGES}}}'.encode(),
    "a number beyond a double": f'{{"model": "$MODEL", "temperature": 1e400, {MESSAGES}}}'.encode(),
    "thousands of digits": f'{{"model": "$MODEL", "max_tokens": {"9" * 4300}, {MESSAGES}}}'.encode(),
    "UTF-16": f'{{"model": "$MODEL", {MESSAGES}}}'.encode("utf-16"),
    "invalid UTF-8": b'{"model": "$MODEL", "messages": [{"role": "user", "content": "\xff"}]}',
    "no model": f"{{{MESSAGES}}}".encode(),
    "no messages": b'{"model": "$MODEL"}',
    "empty messages": b'{"model": "$MODEL", "messages": []}',
}

FIELDS: dict[str, Any] = {
    "model": [5, None, [], "", "a\u0000b", "x" * 300],
    "messages": [5, "hi", {}, [5], [None], [{}], [{"role": "user"}], [{"role": "wizard", "content": "x"}], [{"role": "user", "content": 5}]],
    "stream": ["yes", 1, []],
    "stream_options": ["x", 5, {"include_usage": "x"}],
    "max_tokens": [-1, 0, "5", 1.5, True, [], 2**60],
    "temperature": ["hot", True, [], {}],
    "n": [0, -1, "2", 1.5],
    "tools": ["x", {}, [5], [{"type": "function"}]],
    "response_format": ["json", 5, {"type": "json_schema"}],
    "stop": [5, {}, [5]],
}


def refused(answer: Any, *statuses: int) -> None:
    assert answer.status in (statuses or (400,)), answer.body[:500]
    error = answer.json["error"]
    assert isinstance(error["message"], str)
    assert error["message"]
    assert error["code"]
    assert "Traceback" not in answer.text


@pytest.mark.parametrize("name", BODIES)
def test_a_body_that_makes_no_request_is_refused(bench: Bench, name: str) -> None:
    fast = bench.model("fast")
    answer = bench.load().live.send("POST", "/v1/chat/completions", BODIES[name].replace(b"$MODEL", fast.encode()))
    refused(answer, 400, 413)
    assert answer.code == "invalid_request"
    assert not bench.fake.calls_to(fast)


@pytest.mark.parametrize("field", FIELDS)
def test_a_wrong_type_is_named(bench: Bench, field: str) -> None:
    fast = bench.model("fast")
    bench.load()
    for value in FIELDS[field]:
        body = {"model": fast, "messages": [{"role": "user", "content": "hi"}], field: value}
        answer = bench.live.send("POST", "/v1/chat/completions", body)
        refused(answer)
        assert field in answer.message
    assert not bench.fake.calls_to(fast)


def test_lone_surrogates_become_the_replacement_character(bench: Bench) -> None:
    fast = bench.model("fast")
    body = b'{"model": "%b", "messages": [{"role": "user", "content": "a\\ud800b"}]}' % fast.encode()
    assert bench.load().live.send("POST", "/v1/chat/completions", body).status == 200
    assert bench.fake.call(fast).json["messages"][0]["content"] == "a\ufffdb"


def test_a_body_over_the_limit_is_refused_before_it_is_read(bench: Bench) -> None:
    fast = bench.model("fast")
    bench.load()
    head = b"POST /v1/chat/completions HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\ncontent-length: %d\r\n\r\n"
    said = bench.live.exchange(head % 99_999_999_999 + b"{")
    assert said.split(b" ")[1] == b"413"
    assert b'"body_too_large"' in said
    # Who goes on sending may find the door closed before the answer is read.
    body = json.dumps({"model": fast, "messages": [{"role": "user", "content": "x" * 3 * 1024 * 1024}]}).encode()
    said = bench.live.exchange(head % len(body) + body)
    assert not said or said.split(b" ")[1] == b"413"
    assert not bench.fake.calls_to(fast)


def test_a_chunked_body_over_the_limit_is_refused(bench: Bench) -> None:
    bench.load()
    chunk = b"10000\r\n" + b"x" * 0x10000 + b"\r\n"
    said = bench.live.exchange(b"POST /v1/chat/completions HTTP/1.1\r\nhost: localhost\r\ntransfer-encoding: chunked\r\n\r\n" + chunk * 48 + b"0\r\n\r\n")
    assert said.split(b" ")[1] in (b"413", b"400")


def test_a_chunked_body_is_read(bench: Bench) -> None:
    fast = bench.model("fast")
    bench.load()
    body = json.dumps({"model": fast, "messages": [{"role": "user", "content": "hi"}]}).encode()
    head = b"POST /v1/chat/completions HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\ntransfer-encoding: chunked\r\nconnection: close\r\n\r\n"
    chunks = b"".join(b"%x\r\n%b\r\n" % (len(body[i : i + 7]), body[i : i + 7]) for i in range(0, len(body), 7))
    assert bench.live.exchange(head + chunks + b"0\r\n\r\n").split(b" ")[1] == b"200"


@pytest.mark.parametrize("encoding", ["gzip", "br", "deflate", "zstd", "x-odd"])
def test_an_encoded_body_is_refused(bench: Bench, encoding: str) -> None:
    answer = bench.ask(bench.model("fast"), headers={"content-encoding": encoding})
    refused(answer, 415)
    assert answer.code == "unsupported_encoding"


@pytest.mark.parametrize("content_type", ["text/plain", "application/x-www-form-urlencoded", "", "application/json; charset=latin-1", "multipart/form-data"])
def test_json_is_read_whatever_the_content_type_says_or_refused_clearly(bench: Bench, content_type: str) -> None:
    answer = bench.ask(bench.model("fast"), headers={"content-type": content_type})
    assert answer.status in (200, 400, 415)


def test_a_promised_length_that_is_not_kept_harms_nobody(bench: Bench) -> None:
    fast = bench.model("fast")
    bench.load()
    body = json.dumps({"model": fast, "messages": [{"role": "user", "content": "hi"}]}).encode()
    head = b"POST /v1/chat/completions HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\ncontent-length: %d\r\n\r\n"
    short = bench.live.exchange(head % (len(body) + 100) + body, half_close=True)
    assert not short or short.split(b" ")[1][:1] == b"4"
    long = bench.live.exchange(head % (len(body) - 10) + body)
    assert long.split(b" ")[1][:1] == b"4"
    assert not bench.fake.calls_to(fast)
    assert bench.ask(fast).status == 200


@pytest.mark.parametrize(
    "data",
    [
        b"GARBAGE\r\n\r\n",
        b"\x16\x03\x01\x02\x00\x01\x00",
        b"GET /v1/models HTTP/9.9\r\nhost: localhost\r\n\r\n",
        b"POST /v1/chat/completions HTTP/1.1\r\nhost: localhost\r\ncontent-length: -5\r\n\r\n",
        b"POST /v1/chat/completions HTTP/1.1\r\nhost: localhost\r\ncontent-length: 5\r\ncontent-length: 6\r\n\r\nhello",
        b"POST /v1/chat/completions HTTP/1.1\r\nhost: localhost\r\ncontent-length: 5\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n",
        b"POST /v1/chat/completions HTTP/1.1\r\nhost: localhost\r\ntransfer-encoding: chunked\r\n\r\nZZ\r\n",
        b"GET /" + b"a" * 100_000 + b" HTTP/1.1\r\nhost: localhost\r\n\r\n",
        b"GET /v1/models HTTP/1.1\r\nhost: localhost\r\nx: " + b"a" * 200_000 + b"\r\n\r\n",
        b"GET /v1/models HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer \xff\xfe\x00\r\n\r\n",
        b"GET /v1/models?key=%ff%00&a=%zz HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n",
        b"GET /v1/models/%ff%fe HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n",
    ],
    ids=[
        "no HTTP",
        "TLS",
        "version",
        "negative length",
        "two lengths",
        "length and chunks",
        "bad chunk",
        "long path",
        "long header",
        "odd key",
        "odd query",
        "odd path",
    ],
)
def test_bytes_that_are_no_request_get_a_4xx_or_a_closed_door(bench: Bench, data: bytes) -> None:
    said = bench.load().live.exchange(data, half_close=True)
    assert not said or said.split(b" ")[1][:1] == b"4", said[:300]
    assert b"Traceback" not in said
    assert bench.live.send("GET", "/livez").status == 200


def test_an_error_repeats_neither_prompt_nor_key(bench: Bench) -> None:
    fast, key = bench.model("fast"), bench.key()
    answer = bench.ask(fast, [{"role": "user", "content": "prompt-canary-77"}, {"role": "wizard-canary", "content": "x"}], key=key, temperature="warm-canary")
    refused(answer)
    assert "prompt-canary-77" not in answer.text
    assert key not in answer.text
    assert "prompt-canary-77" not in bench.live.log_text()


def test_security_headers_stand_on_gateway_replies_too(bench: Bench) -> None:
    for answer in (bench.ask(bench.model("fast")), bench.ask("nobody")):
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert answer.headers["x-request-id"]


def test_a_request_id_that_a_caller_sends_is_kept_if_it_is_harmless(bench: Bench) -> None:
    fast = bench.model("fast")
    ids = {bench.ask(fast).headers["x-request-id"] for _ in range(3)}
    assert len(ids) == 3
    odd = bench.ask(fast, headers={"x-request-id": "a" * 5000})
    assert odd.status == 200
    assert len(odd.headers["x-request-id"]) <= 200
