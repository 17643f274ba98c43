"""A canary key and a canary prompt are planted; every log, page, export, error and file is searched for them."""

from __future__ import annotations

import gzip
import io
import json
import tarfile
import zipfile
from collections.abc import Iterator
from pathlib import Path

from tests.crawl import crawl, signed_in
from tests.fake import garbage, hang, html, raw, reply, status
from tests.live import CANARY_KEY, Bench

STORED_KEY = "sk-stored-canary-77aa88bb99cc"
PROMPT = "prompt-canary-salamander"
DIRECT_PROMPT = "direct-canary-axolotl"
ECHO = f"Incorrect API key provided: {STORED_KEY} / {CANARY_KEY}"

FAILURES = [
    status(401, ECHO),
    status(403, ECHO),
    status(429, ECHO),
    status(400, ECHO),
    status(500, ECHO),
    reply("x").with_headers(x_echo=ECHO).cut(after="choices"),
    raw(b"HTTP/1.1 200 OK\r\nx: " + ECHO.encode() + b"\r\n\r\n", "close"),
    garbage(),
    html(),
    hang(),
]


def files(folder: Path) -> Iterator[tuple[str, bytes]]:
    """Every file below a folder; what is packed, unpacked too."""
    for path in sorted(folder.rglob("*")):
        if path.is_file():
            yield from unpacked(str(path.relative_to(folder)), path.read_bytes())


def unpacked(name: str, data: bytes) -> Iterator[tuple[str, bytes]]:
    yield name, data
    if data[:2] == b"\x1f\x8b":
        yield from unpacked(f"{name} (unpacked)", gzip.decompress(data))
    elif data[:2] == b"PK":
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            for inner in archive.namelist():
                yield from unpacked(f"{name}/{inner}", archive.read(inner))
    elif data[257:262] == b"ustar":
        with tarfile.open(fileobj=io.BytesIO(data)) as archive:
            for member in archive.getmembers():
                if file := archive.extractfile(member):
                    yield from unpacked(f"{name}/{member.name}", file.read())


def holding(canary: str, places: list[tuple[str, bytes]]) -> list[str]:
    needles = {canary.encode(), json.dumps(canary).encode(), canary.encode("utf-16-le"), canary.encode().hex().encode()}
    return [name for name, data in places if any(n in data for n in needles)]


def test_keys_and_prompts_turn_up_nowhere_that_they_do_not_belong(bench: Bench) -> None:
    live = bench.live
    stored = bench.endpoint("stored")
    bench.model("probe", endpoint=stored)
    bench.load()
    live.api("PATCH", f"endpoints/{stored}", {"key": STORED_KEY})
    from_environment = bench.endpoint("environment", key_env="BENCHWARMERS_KEY_CANARY")

    said: list[tuple[str, bytes]] = []
    members = []
    for n, failure in enumerate(FAILURES):
        members.append(bench.model(f"bad{n}", failure, endpoint=stored if n % 2 else from_environment))
    good = bench.model("good", reply("fine"), endpoint=stored)
    core = bench.collection([*members, good], timeout_s=3, keep_text=False)
    gateway_key = bench.key()
    for name in [core, *[m for m, f in zip(members, FAILURES, strict=True) if f is not FAILURES[-1]], good]:
        prompt = PROMPT if name == core else DIRECT_PROMPT
        said.append((f"the answer of {name}", bench.ask(name, prompt, key=gateway_key).body))
        with bench.stream(name, prompt, key=gateway_key) as stream:
            said.append((f"the stream of {name}", stream.rest()))
    assert bench.fake.call(good).headers["authorization"] == f"Bearer {STORED_KEY}"
    for headers in ({"authorization": f"Basic {gateway_key}"}, {"x-api-key": gateway_key + "x"}, {"authorization": f"Bearer {STORED_KEY}"}):
        said.append(("a refusal", bench.ask(good, DIRECT_PROMPT, headers=headers).body))
    said.append(("a refused query", live.send("GET", f"/v1/models?key={gateway_key}x").body))
    said.append(("a refused body", live.send("POST", "/v1/chat/completions", DIRECT_PROMPT.encode()).body))
    live.rows("health.Attempt")

    for path in ("panels", "models", "endpoints", "keys", "usage", "status", "collections", "schema"):
        said.append((f"/bench/{path}", live.send("GET", f"/bench/{path}?limit=500" if path != "schema" else "/bench/schema", key=live.operator_key).body))
    said.append(("metrics", live.send("GET", "/metrics", key=live.operator_key).body))
    said += [(page.url, page.content) for page in crawl(live, signed_in(live))]
    exports = live.folder / "exports"
    exports.mkdir(exist_ok=True)
    live.manage("roster", "dump", str(exports / "roster.yaml"))
    live.manage("backup", str(exports / "backup"))
    said.append(("the command line", (live.folder / "commands.log").read_bytes()))
    said.append(("the log", live.log.read_bytes()))
    kept = [*files(live.home), *files(exports)]

    for canary in (STORED_KEY, CANARY_KEY, gateway_key):
        assert not holding(canary, [*said, *kept]), canary[:9]
    assert not holding(DIRECT_PROMPT, [*said, *kept])
    with_prompt = holding(PROMPT, [*said, *kept])
    assert with_prompt, "a panel's prompt is kept"
    assert not [name for name in with_prompt if not ("sqlite3" in name or name.startswith(("exports", "backup", "outbox/", "http", "/bench/panels")))]
