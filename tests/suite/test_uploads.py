"""What is sent to the suite: packed bodies, bodies that unpack to far more, texts that databases and terminals trip over."""

from __future__ import annotations

import gzip
import io
import json
import zlib
from typing import Any

import pytest
import requests

from suite.api.problems import Problem
from suite.api.uploads import PIECE, Lines, pieces_of
from suite.authoring import rows
from tests.fake import reply
from tests.live import Bench
from tests.suite.driving import Driver, sums

MIB = 1024 * 1024


@pytest.fixture
def driver(bench: Bench) -> Driver:
    return Driver(bench)


def lines_of(tasks: list[dict[str, Any]]) -> bytes:
    return "\n".join(json.dumps(task) for task in tasks).encode()


def posted(driver: Driver, path: str, data: bytes, kind: str = "application/x-ndjson", **more: str) -> requests.Response:
    with requests.Session() as session:
        session.trust_env = False
        headers = {"authorization": f"Bearer {driver.key}", "content-type": kind, **{name.replace("_", "-"): value for name, value in more.items()}}
        return session.post(f"{driver.bench.live.url}/v1/{path}", data=data, headers=headers, timeout=60)


def read_whole(data: bytes, encoding: str = "gzip", most: int = 64 * MIB) -> bytes:
    return b"".join(pieces_of(io.BytesIO(data), encoding, most))


WORDS = "".join(f"{i * 7919 % 10007} " for i in range(300_000)).encode()
WHOLE = [b"", b"x", WORDS[:PIECE], WORDS[: PIECE + 1], WORDS]


@pytest.mark.parametrize("data", WHOLE, ids=[str(len(data)) for data in WHOLE])
def test_a_packed_body_is_what_it_was(data: bytes) -> None:
    assert read_whole(gzip.compress(data)) == data
    assert read_whole(gzip.compress(data[:100]) + gzip.compress(data[100:])) == data, "in two members"
    assert read_whole(data, "") == data


BOMB = gzip.compress(b"\0" * (100 * MIB), 9)
LYING = gzip.compress(WORDS)[:-4] + b"\x05\0\0\0"
REFUSED: list[tuple[str, bytes, int, int]] = [
    ("a bomb", BOMB, 64 * MIB, 413),
    ("a bomb under the cap", BOMB, 1024 * MIB, 413),
    ("many small bombs", gzip.compress(b"\0" * MIB, 9) * 10, 1024 * MIB, 413),
    ("many members", gzip.compress(b"x") * 17, 64 * MIB, 413),
    ("more than is taken", gzip.compress(WORDS), MIB, 413),
    ("a size that lies", LYING, 64 * MIB, 422),
    ("cut off", gzip.compress(WORDS)[:-9], 64 * MIB, 422),
    ("something behind it", gzip.compress(b"x") + b"more", 64 * MIB, 422),
    ("no gzip", b"PK\x03\x04../../etc/passwd", 64 * MIB, 422),
    ("another way of packing under its name", zlib.compress(b"x"), 64 * MIB, 422),
]


@pytest.mark.parametrize(("name", "data", "most", "status"), REFUSED, ids=[case[0] for case in REFUSED])
def test_a_body_that_cannot_be_meant_is_refused_while_it_is_unpacked(name: str, data: bytes, most: int, status: int) -> None:
    pieces = [0]
    with pytest.raises(Problem) as refused:
        pieces.extend(len(piece) for piece in pieces_of(io.BytesIO(data), "gzip", most))
    assert refused.value.status == status
    assert max(pieces) <= PIECE, "never more at a time than is looked at"


def test_rows_come_packed_and_a_bomb_takes_none(driver: Driver) -> None:
    subset = driver.subset([], rolling=True)
    path = f"subsets/{subset['id']}/tasks"
    answer = posted(driver, path, gzip.compress(lines_of(sums(50))), content_encoding="gzip")
    assert (answer.status_code, answer.json()["tasks"]) == (200, 50)
    assert posted(driver, path, BOMB, content_encoding="gzip").json()["code"] == "body_too_large"
    nested = posted(driver, path, gzip.compress(gzip.compress(lines_of(sums(60)))), content_encoding="gzip")
    assert (nested.status_code, nested.json()["code"]) == (422, "invalid_row")
    assert posted(driver, path, b"x", content_encoding="br").json()["code"] == "unsupported_encoding"
    assert posted(driver, path, b"PK\x03\x04", kind="application/zip").status_code == 415
    packed = posted(driver, path, gzip.compress(json.dumps({"tasks": sums(51)}).encode()), kind="application/json", content_encoding="gzip")
    assert (packed.status_code, packed.json()["added"]) == (200, 1)
    assert driver.api("GET", f"registry/subsets/{subset['id']}")["tasks"] == 51


def test_lines_under_a_key_are_taken_once(driver: Driver) -> None:
    subset = driver.subset([], rolling=True)
    path, key = f"subsets/{subset['id']}/tasks", f"lines-{subset['id']}"
    first = posted(driver, path, lines_of(sums(3)), idempotency_key=key)
    again = posted(driver, path, lines_of(sums(3)), idempotency_key=key)
    assert (first.json()["added"], again.json()["added"], again.headers["idempotent-replayed"]) == (3, 3, "true")
    assert posted(driver, path, lines_of(sums(4)), idempotency_key=key).json()["code"] == "idempotency_key_reused"


LINES: list[tuple[bytes, int, str]] = [
    (b'{"task_id": "a", "task_id": "b", "input": {"question": "?"}, "expected": {"value": 1}}', 422, "invalid_row"),
    (b'{"task_id": "a", "input": {"question": "?"}, "expected": {"value": NaN}}', 422, "invalid_row"),
    (b'{"task_id": "a", "input": {"question": "?"}, "expected": {"value": 1e999}}', 422, "invalid_row"),
    (b'{"task_id": "a", "input": ' + b"[" * 100_000 + b"]" * 100_000 + b"}", 422, "invalid_row"),
    (b'{"task_id": "a", "input": ' + b"[" * 900 + b"]" * 900 + b', "expected": {"value": 1}}', 422, "invalid_row"),
    (b'{"task_id": "a", "input": {"question": "\xff\xfe"}, "expected": {"value": 1}}', 422, "invalid_row"),
    (b'{"task_id": "a", "kind": "ma\\u0000th", "input": {"question": "?"}, "expected": {"value": 1}}', 422, "invalid_row"),
    (b'{"task_id": "a", "cluster": "\\ud835", "input": {"question": "?"}, "expected": {"value": 1}}', 422, "invalid_row"),
    (b'{"task_id": "a", "input": {"question": "' + b"x" * (4 * MIB) + b'"}, "expected": {"value": 1}}', 413, "body_too_large"),
]


@pytest.mark.parametrize(("line", "status", "code"), LINES, ids=range(len(LINES)))
def test_a_line_that_is_no_row_takes_none(line: bytes, status: int, code: str) -> None:
    with pytest.raises(Problem) as refused:
        rows.read_lines(Lines(iter([line, b"\n", line])), {"kind": "math"})
    assert (refused.value.status, refused.value.code) == (status, code)


def test_rows_of_more_than_is_taken_are_refused_while_they_come() -> None:
    with pytest.raises(Problem) as refused:
        read_whole(b"x" * (2 * MIB), "", MIB)
    assert refused.value.status == 413


ODD = ["\ud835 alone", "a\u0000b", "\u202egnp.exe", "\ufeff\u200b", "\U0001f600\udfff"]


def test_odd_characters_in_rows_are_kept_asked_and_exported_as_they_came(bench: Bench, driver: Driver) -> None:
    model = bench.model("calm", reply("ANSWER: 4"))
    bench.load()
    subset = driver.subset([], rolling=True)
    tasks = [{"task_id": f"t{i}", "input": {"question": text}, "expected": {"value": 4}, "source": {"note": text}} for i, text in enumerate(ODD)]
    assert posted(driver, f"subsets/{subset['id']}/tasks", lines_of(tasks)).status_code == 200
    run = driver.ended(driver.launch(subset, model)["id"])
    assert run["summary"]["passed"] == len(ODD)
    listed = driver.send("GET", f"build/subsets/{subset['id']}/samples").body
    assert [row["input"]["question"] for row in json.loads(listed)["data"]] == ODD
    (artifact,) = driver.api("GET", f"runs/{run['id']}/artifacts?type=dataset")["data"]
    exported = driver.send("GET", f"runs/{run['id']}/artifacts/{artifact['id']}/content").body.splitlines()
    (task, *_) = driver.api("GET", f"runs/{run['id']}/tasks")["data"]
    assert driver.api("GET", f"runs/{run['id']}/tasks/{task['id']}/payload")["input"]["question"] == ODD[0]
    assert [json.loads(row)["source"]["note"] for row in exported] == ODD
    asked = [json.loads(call.body)["messages"][-1]["content"] for call in bench.fake.calls_to(model)]
    assert any("\ufffd alone" in text for text in asked), "what no body can hold is asked as U+FFFD"


NUL = "a\u0000b"
NAMES: list[tuple[str, str, dict[str, Any]]] = [
    ("POST", "benchmarks", {"name": NUL}),
    ("POST", "benchmarks", {"name": "x", "tags": [NUL]}),
    ("POST", "benchmarks/BENCHMARK/subsets", {"slug": "s", "name": NUL, "tasks": []}),
    ("POST", "runs", {"benchmark": "x", "metadata": {"k": {"deep": [NUL]}}}),
    ("POST", "runs", {"benchmark": "x", "metadata": {NUL: 1}}),
    ("POST", "runs", {"benchmark": NUL}),
    ("POST", "sweeps", {"benchmark": "x", "models": [NUL]}),
    ("POST", "impls", {"code": "x", "label": NUL}),
]


def test_a_nul_in_a_name_is_refused_and_breaks_nothing(driver: Driver) -> None:
    benchmark = driver.benchmark()["id"]
    for method, path, body in NAMES:
        answer = driver.send(method, path.replace("BENCHMARK", benchmark), body)
        assert answer.status == 422, (path, body, answer.status)
    for path in ("runs?filter[subject]=%00", "runs/%00", "registry/benchmarks?name=%00", "build/subsets/%00/recipe", "runs?filter[%00]=x"):
        assert driver.send("GET", path).status in (400, 404), path


CHOICES = [["A", ""], ["A", " "], [], ["A"], ["A", "A"], ["A", "A "], "AB", [1, 2], ["A", None]]


@pytest.mark.parametrize("choices", CHOICES, ids=range(len(CHOICES)))
def test_choices_among_which_no_answer_can_be_right_are_refused(driver: Driver, choices: Any) -> None:
    benchmark = driver.benchmark()["id"]
    task = {"task_id": "a", "input": {"question": "?", "choices": choices}, "expected": {"value": "A"}}
    answer = driver.send("POST", f"benchmarks/{benchmark}/subsets", {"slug": "s", "tasks": [task], "grader": {"kind": "multiple_choice"}})
    assert (answer.status, answer.json["code"]) == (422, "invalid_row")
    assert answer.json["errors"][0]["pointer"].startswith("/tasks/0/input/choices")
