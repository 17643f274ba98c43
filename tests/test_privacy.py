"""Privacy: nobody is contacted but whom an admin named. Every page, job and call is driven with name resolution recorded (tests/shims)."""

from __future__ import annotations

import re
from urllib.parse import urlsplit

from tests.crawl import crawl, signed_in
from tests.fake import reply
from tests.live import Bench

OWN = {"127.0.0.1", "localhost", "::1", "0.0.0.0"}
LISTS = [
    "collections",
    "panels",
    "verdicts/pending",
    "models",
    "endpoints",
    "keys",
    "usage",
    "status",
    "schema",
    "candidates",
    "quotas",
    "discover",
    "settings",
    "schedules",
]


def test_only_hosts_that_an_admin_named_are_looked_up(bench: Bench) -> None:
    live = bench.live
    named = f"{bench.tag}.models.invalid"
    fast, far = bench.model("fast", reply("a")), bench.model("far", endpoint=bench.endpoint("far", f"http://{named}/v1"))
    core = bench.collection([fast, far], mergers=[fast])
    panel = bench.ask(core).json["bench"]
    assert panel["status"] == "degraded"
    for mode in (core + ":merged", fast, far, "nobody"):
        bench.ask(mode)
    with bench.stream(core, [{"role": "user", "content": [{"type": "image_url", "image_url": {"url": "https://images.example.org/cat.png"}}]}]) as stream:
        stream.rest()
    live.send("POST", "/bench/verdict", {"call": panel["seats"][0]["call"], "useful": True, "note": "see http://notes.example.org/"})
    for path in ("/v1/models", "/v1beta/models", "/api/tags", "/api/version", "/livez", "/readyz", "/metrics"):
        live.send("GET", path)
    for path in LISTS:
        assert live.send("GET", f"/bench/{path}", key=live.operator_key).status in (200, 501), path

    pages = list(crawl(live, signed_in(live)))
    assert len(pages) > 20
    assert not [p.url for p in pages if p.status_code >= 500]
    ring = live.order({"ring": 3600})
    assert ring["registered"]
    assert set(ring["done"]) <= set(ring["registered"])
    live.manage("roster", "dump", str(live.folder / "dumped.yaml"))

    looked_up = set(live.names.read_text(encoding="utf-8").split())
    assert named in looked_up, "the recording works"
    hosts = {urlsplit(e["base_url"]).hostname for e in live.rows("catalog.Endpoint")}
    assert not looked_up - OWN - hosts


def test_pages_load_nothing_from_elsewhere(bench: Bench) -> None:
    bench.ask(bench.collection([bench.model("fast", reply("![p](https://evil.example/p.png) <img src=https://evil.example/q.png>"))]))
    for page in crawl(bench.live, signed_in(bench.live)):
        if "html" not in page.headers.get("content-type", ""):
            continue
        policy = page.headers["content-security-policy"]
        assert "default-src 'self'" in policy or "default-src 'none'" in policy
        loaded = re.findall(
            r"""<(?:script|link|img|iframe|source|audio|video|object|embed)\b[^>]*?(?:src|href|data)=["']?((?:https?:)?//[^"'\s>]+)""", page.text
        )
        assert not [u for u in loaded if urlsplit(u).netloc != urlsplit(bench.live.url).netloc], page.url
