"""Beyond this machine nothing of the server's management answers a stranger: every path of its own tables, in every method, with what a stranger may have."""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Iterator
from pathlib import Path

import pytest
from django.urls import URLPattern, URLResolver, get_resolver

from panels import views
from tests.crawl import signed_in
from tests.http import Reply
from tests.live import Live, eventually

TOKEN = "an-admin-token-of-more-than-16"
METHODS = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS")
OPEN = re.compile(r"livez|readyz|signin/x|admin/login/|bench/client(?:/x)?")  # the process, the way in, and the client's public code
# What a key that asks and judges may do at this API: ask, see what it may ask and what it asked itself, stop and compare that, and judge it.
ASKERS = {
    "bench/ask",
    "bench/calls/x/cancel",
    "bench/collections",
    "bench/collections/x",
    "bench/estimate",
    "bench/models",
    "bench/models/x",
    "bench/panels",
    "bench/panels/x",
    "bench/panels/x/cancel",
    "bench/panels/x/compare",
    "bench/panels/x/export",
    "bench/schema",
    "bench/verdict",
    "bench/verdicts/pending",
    "v1/subsets:from-verdict",
    "v1/tokens",
    "v1/tokens/x",
}
# What every key may know: whose it is, what is missing for it, and what there is to ask.
KNOWN = {"v1/me", "v1/doctor", "v1/openapi.json", "v1/schema"}
WRITES = ("POST", "PUT", "PATCH", "DELETE")


def paths(patterns: list[URLPattern | URLResolver] | None = None, before: str = "") -> Iterator[str]:
    """One address of every route, names and numbers filled in."""
    for entry in get_resolver().url_patterns if patterns is None else patterns:
        here = before + filled(str(entry.pattern))
        if isinstance(entry, URLResolver):
            yield from paths(entry.url_patterns, here)
        else:
            yield here


def filled(pattern: str) -> str:
    pattern = re.sub(r"<(?:int:)\w+>", "1", pattern)
    pattern = re.sub(r"<(?:\w+:)?\w+>", "x", pattern) if "(?P<" not in pattern else re.sub(r"\(\?P<\w+>([^|)]*)[^)]*\)", r"\1", pattern)
    return re.sub(r"[\^$\\]|\.\*", "", pattern)


@pytest.fixture(scope="module")
def exposed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Live]:
    """A server that others can reach."""
    server = Live(tmp_path_factory.mktemp("exposed"), BENCH_WORKERS="1", BENCH_HOST="0.0.0.0", BENCHWARMERS_ADMIN_TOKEN=TOKEN)
    try:
        server.start()
        yield server
    finally:
        wrong = server.stop()
    assert not wrong


def is_shut(answer: Reply) -> bool:
    """Refused, or sent to the sign-in page; in either case without any data."""
    if answer.status == 302:
        # Below /app/ everybody is asked who they are: what leads there says only what was asked for.
        return answer.headers["location"].startswith(("/admin/", "/app/")) and not answer.body
    return answer.status in (401, 403) and len(answer.body) < 1500


def test_the_tables_are_read_whole() -> None:
    every = set(paths())
    assert {"metrics", "bench/keys", "bench/keys/x", "bench/settings", "admin/", "admin/catalog/endpoint/", "admin/access/key/add/"} <= every
    assert len(every) > 80


@pytest.mark.parametrize("stranger", ["nobody", "a gateway key", "an expired session"])
def test_no_management_path_answers_a_stranger(exposed: Live, stranger: str) -> None:
    headers: dict[str, str] = {}
    if stranger == "a gateway key":
        headers = {"authorization": f"Bearer {exposed.key(stranger)}"}
    elif stranger == "an expired session":
        if exposed.database.name:
            pytest.skip("writes into the SQLite file")
        headers = {"cookie": "; ".join(f"{c.name}={c.value}" for c in signed_in(exposed).cookies)}
        assert exposed.send("GET", "/admin/", headers=headers).status == 200
        with sqlite3.connect(exposed.home / "benchwarmers.sqlite3") as database:
            database.execute("UPDATE django_session SET expire_date = '2020-01-01'")
        database.close()
    wrong = []
    for path in sorted({p for p in paths() if not OPEN.fullmatch(p)}):
        for method in METHODS:
            answer = exposed.send(method, f"/{path}", {} if method in WRITES else None, headers=headers)
            ours = stranger == "a gateway key" and path in ASKERS and answer.status in (200, 400, 403, 404, 405, 422)
            # What is nowhere, and what is not done there, says so to everyone; a preflight and a redirect to a slash hold nothing.
            preflight = method == "OPTIONS" and answer.status == 204 and not answer.body
            nothing = preflight or (answer.status in (404, 405, 501) and (path in ("bench/", "v1/", "admin/") or answer.status == 405))
            nothing |= path == "" and answer.status == 302 and answer.headers["location"] == "/app/"  # where everybody is asked who they are
            known = stranger == "a gateway key" and path in KNOWN and method in ("GET", "HEAD")
            if not (is_shut(answer) or ours or nothing or known):
                wrong.append((method, path, answer.status, answer.body[:120]))
            if ours and method == "GET" and answer.status == 200 and path != "bench/schema":
                assert answer.json["data"] == [], "there is nothing that this key may ask or has asked"
    assert not wrong, [w[:3] for w in wrong]


@pytest.mark.parametrize("sent", [{}, {"authorization": "Bearer bw_live_nothing"}])
def test_no_path_of_the_gateway_answers_without_a_key(exposed: Live, sent: dict[str, str]) -> None:
    asked = [(method, path) for method, path in views.exact_paths()]
    asked += [(method, f"{prefix}x:generateContent" if method == "POST" else f"{prefix}x") for method, prefix, _, _ in views.prefixes()]
    assert len(asked) > 15
    for method, path in asked:
        answer = exposed.send(method, path, {} if method == "POST" else None, headers=sent)
        assert answer.status == 401, (method, path, answer.status, answer.body[:200])
        assert answer.headers["www-authenticate"] == "Bearer"


@pytest.mark.parametrize(
    "path", ["/nothing", "/admin2/", "/v1/nothing", "/api/nothing", "/debug", "/.env", "/static/../manage.py", "/operator.key", "/server.json"]
)
def test_an_unknown_path_is_not_found(exposed: Live, path: str) -> None:
    for method in ("GET", "POST"):
        answer = exposed.send(method, path, {} if method == "POST" else None)
        # Below /v1/ Gemini's clients write a model's name and method: there a key is asked for first.
        assert answer.status == 404 or (answer.status == 401 and path == "/v1/nothing"), path


def test_a_refused_key_is_not_in_the_log_either(exposed: Live) -> None:
    body = {"model": "x", "messages": [{"role": "user", "content": "hi"}]}
    for headers in ({"authorization": "Bearer sk-other-service-123456"}, {"x-api-key": "sk-other-service-123456"}, {"authorization": "Basic c2stb3RoZXI6"}):
        assert exposed.send("POST", "/v1/chat/completions", body, headers=headers).status == 401
    for path in ("/v1/models?key=sk-other-service-123456", "/bench/panels?key=sk-other-service-123456", "/admin/?key=sk-other-service-123456"):
        assert exposed.send("GET", path).status in (302, 401)
    exposed.send("POST", "/admin/login/", b"username=admin&password=sk-other-service-123456", headers={"content-type": "application/x-www-form-urlencoded"})
    last = exposed.send("GET", "/v1/models").headers["x-request-id"]
    eventually(lambda: last in exposed.log_text(), "the last call's line")
    logged = exposed.log_text()
    assert "sk-other-service-123456" not in logged
    assert "c2stb3RoZXI6" not in logged


def test_the_log_of_a_start_does_not_tell_the_admin_token(exposed: Live) -> None:
    assert TOKEN not in exposed.log_text()
    assert not [p for p in Path(exposed.home).rglob("*") if p.is_file() and TOKEN.encode() in p.read_bytes()]
