"""docs/GATEWAY.md is true: every curl of it runs on the server, its tables are what probes find, its codes and headers are all there are."""

from __future__ import annotations

import ast
import json
import re
import shlex
from typing import Any

import pytest

from benchwarmers.asgi import EXPOSED
from panels.outcome import COMMON
from tests.fake import reply
from tests.gateway.shape import PANEL_FIELDS, SEAT_FIELDS, SEAT_STATUSES, SEATS, TRY_FIELDS, USAGE_FIELDS
from tests.live import Bench
from tests.test_house import CHECKOUT, dotted, modules, tree
from tests.test_readme import ADDRESS, blocks
from tests.wire import pairs
from wire import dialects

PAGE = (CHECKOUT / "docs/GATEWAY.md").read_text(encoding="utf-8")
CURL = re.compile(r"^(?:# refused: (\d+)\n)?(curl (?:.*\\\n)*.*)$", re.MULTILINE)


def curls() -> list[tuple[str, int]]:
    """Every curl of the page, with the status that it is to have."""
    return [(line.replace("\\\n", " "), int(status or 200)) for block in blocks(PAGE, "sh") for status, line in CURL.findall(block)]


def asked(curl: str) -> tuple[str, bytes | None, dict[str, str]]:
    """A curl's path, body and headers."""
    words, path, body, headers = shlex.split(curl)[1:], "", None, {}
    while words:
        word = words.pop(0)
        if word == "-H":
            name, _, value = words.pop(0).partition(": ")
            headers[name.lower()] = value
        elif word == "-d":
            body = words.pop(0).encode()
        else:
            assert word.startswith(ADDRESS), f"a curl holds {word!r}, which this test does not know"
            path = word.removeprefix(ADDRESS)
    return path, body, headers


@pytest.mark.parametrize(("curl", "status"), curls(), ids=lambda v: v.split()[1].strip("'").removeprefix(ADDRESS) if isinstance(v, str) else str(v))
def test_a_curl_of_the_page_answers(bench: Bench, curl: str, status: int) -> None:
    fast, slow = bench.model("fast", reply("hello from fast")), bench.model("slow", reply("hello from slow"))
    merger = bench.model("merger", reply("hello from fast and slow"))
    core = bench.collection([fast, slow], mergers=[merger])
    key = bench.key()
    names = {"bench/core": core, '"core"': json.dumps(core.removeprefix("bench/")), '"fast"': json.dumps(fast), "$BENCH_KEY": key}
    for name, mine in names.items():
        curl = curl.replace(name, mine)
    path, body, headers = asked(curl)
    answer = bench.live.send("POST" if body else "GET", path, body, headers=headers)
    assert answer.status == status, answer.text
    if status == 200 and "model" not in path.rpartition("/")[2] and "count" not in path:
        assert "hello from fast" in answer.text


def test_every_format_is_shown() -> None:
    shown = "\n".join(curl for curl, _ in curls())
    for dialect in dialects.every():
        assert any(route.path in shown for route in dialect.routes if route.operation == "ask"), dialect.name
        assert any(route.path.rstrip("/") in PAGE for route in dialect.routes)
    assert "/mcp" in shown


def test_the_tables_of_pairs_are_what_probes_find() -> None:
    held = PAGE.partition("<!-- pairs")[2].partition("-->")[2].partition("<!-- end of pairs -->")[0].strip()
    assert held.split("\n") == pairs.tables().split("\n"), "run `python -m tests.wire.pairs` and put what it prints into docs/GATEWAY.md"
    assert pairs.LOST not in held


def test_a_panels_reply_is_shown_as_it_is() -> None:
    found: list[Any] = [json.loads(block) for block in blocks(PAGE, "json")]
    (shown,) = [b for b in found if "panel" in b]
    assert set(shown) == PANEL_FIELDS
    (seat,) = shown["seats"]
    assert set(seat) == SEAT_FIELDS
    assert set(seat["usage"]) == USAGE_FIELDS
    assert set(seat["tries"][0]) == TRY_FIELDS
    assert not {word for word in SEATS | SEAT_STATUSES if f"`{word}`" not in PAGE}


def codes() -> set[str]:
    """Every code that an error of the gateway can have."""
    found = {code for _, code in COMMON.values()}
    for path in modules():
        room = path.split("/")[0]
        if room not in ("wire", "access", "catalog", "health", "panels", "benchwarmers") or path.startswith(("panels/api", "panels/mcp", "access/problems")):
            continue
        for node in ast.walk(tree(path)):
            if isinstance(node, ast.Call) and dotted(node.func).rpartition(".")[2] == "CallerError" and node.args:
                first = node.args[0]
                if isinstance(first, ast.Constant) and isinstance(first.value, str):
                    found.add(first.value)
    return found


def test_every_code_is_in_the_table_of_errors() -> None:
    table = PAGE.partition("\n## Errors\n")[2].partition("\n## ")[0]
    named = set(re.findall(r"`([a-z_]+)`", table))
    of_the_bench = set(re.findall(r"`([a-z_]+)`", (CHECKOUT / "docs/API.md").read_text(encoding="utf-8").partition("\n## Verdicts\n")[0]))
    assert len(codes()) > 20
    assert not codes() - named - of_the_bench


def test_every_header_is_in_the_table_of_headers() -> None:
    table = PAGE.partition("\n## Headers\n")[2].partition("\n## ")[0]
    assert not {name for name in EXPOSED.decode().split(", ") if f"`{name}`" not in table and name != "mcp-session-id"}
