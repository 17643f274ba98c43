"""Measures this server beside LiteLLM's proxy, in one run on one machine, against the same fake upstream: `python -m bench.run`, or `make bench`.

`--quick` takes about a minute and a half, `--only direct,streams` some of the phases, `--no-litellm` leaves the comparison out (and its 800 MB download),
`--write` renders the results into docs/PERFORMANCE.md. Everything stays on 127.0.0.1; every load is bounded in count and time.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack
from datetime import UTC, datetime
from importlib import metadata
from pathlib import Path
from typing import Any

from bench import compiled, machine, phases, servers, tables
from bench.phases import Bench, Target

RESULTS = Path(__file__).resolve().parent / "results"
PHASES = ("direct", "paced", "streams", "translated", "panels")
PACKAGES = ("Django", "djangorestframework", "gunicorn", "aiohttp", "uvloop", "orjson")


def options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m bench.run", description=__doc__.split("\n")[0] if __doc__ else None)
    parser.add_argument("--quick", action="store_true", help="one short round of each phase, fewer streams and panels")
    parser.add_argument("--only", default=",".join(PHASES), help=f"some of {', '.join(PHASES)}; comma between")
    parser.add_argument("--no-litellm", action="store_true", help="this server alone")
    parser.add_argument("--rounds", type=int, default=0, help="rounds of the direct and paced phases (3, quick 1)")
    parser.add_argument("--write", action="store_true", help="render the results into docs/PERFORMANCE.md")
    given = parser.parse_args()
    given.only = [name.strip() for name in given.only.split(",") if name.strip()]
    if wrong := [name for name in given.only if name not in PHASES]:
        parser.error(f"--only: no phase is called {wrong[0]}; there are {', '.join(PHASES)}")
    return given


def versions(with_litellm: bool) -> dict[str, str]:
    found = {}
    for name in PACKAGES:
        try:
            found[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            found[name] = "absent"
    return found | ({"litellm": servers.LITELLM_VERSION} if with_litellm else {})


def rounds(given: argparse.Namespace) -> Iterator[tuple[phases.Load, str]]:
    """Shape: loads in order, each with the targets it is for: `all`, `ours` (panels: nobody else has them) or `peers` (one key is enough)."""
    seconds = 2.0 if given.quick else 5.0
    for _ in range(given.rounds or (1 if given.quick else 3)):
        if "direct" in given.only:
            for load in phases.direct_loads(seconds, (1, 16, 64)):
                yield load, "all"
        if "paced" in given.only:
            yield phases.paced_load(seconds, 25), "all"
    if "streams" in given.only:
        for count in (200,) if given.quick else (500, 1000):
            yield phases.stream_load(count), "peers"
    if "translated" in given.only:
        for load in phases.translated_loads(2 if given.quick else 5):
            yield load, "gateways"
    if "panels" in given.only:
        yield phases.panel_load(200, 1 if given.quick else 3), "ours"


def measure(given: argparse.Namespace, tools: dict[str, Path], folder: Path) -> dict[str, Any]:
    with ExitStack() as stack:
        upstream = servers.start_upstream(tools["upstream"], folder)
        stack.callback(upstream.end)
        print("Starting this server …", flush=True)
        ours = servers.start_ours(folder, upstream.port, [phases.STREAM, phases.FAST_STREAM], phases.SEAT)
        stack.callback(ours.running.end)
        free, limited = (
            Target(f"ours{suffix}", ours.running.port, ours.keys[key], ours.running.pid, ours.web_workers, ours)
            for suffix, key in (("", "free"), ("+limits", "limited"))
        )
        targets = [Target("upstream", upstream.port), free, limited]
        if not given.no_litellm:
            print("Starting LiteLLM's proxy …", flush=True)
            litellm = servers.start_litellm(folder, upstream.port)
            stack.callback(litellm.end)
            targets.append(Target("litellm", litellm.port, servers.LITELLM_KEY, litellm.pid, lambda: [p.pid for p in machine.tree(litellm.pid)]))
        bench = Bench(tools["loadgen"], upstream)
        print("Warming up", flush=True)
        for target in targets[1:]:
            bench.run(target, phases.Load("warm-up", 16, ("-t", "2" if given.quick else "4")))
        bench.rows.clear()
        for load, whom in rounds(given):
            print(f"{load.phase}, {load.clients} clients", flush=True)
            for target in targets:
                if whom == "gateways" and target.name not in ("ours", "litellm"):
                    continue
                if (target is limited and whom == "peers") or (target.name == "litellm" and whom == "ours"):
                    continue
                if load.phase == "panels" and target.name == "upstream":
                    bench.run(target, phases.seats_load(load.clients, 1 if given.quick else 3))
                    continue
                bench.run(target, load)
        return {
            "at": datetime.now(UTC).isoformat(timespec="seconds"),
            "revision": machine.revision(servers.ROOT),
            "machine": machine.describe(),
            "versions": versions(not given.no_litellm),
            "quick": given.quick,
            "rows": bench.rows,
        }


def main() -> int:
    given = options()
    try:
        tools = compiled.tools()
    except compiled.CannotBuild as reason:
        print(f"The benchmark is skipped: {reason}")
        return 0
    with tempfile.TemporaryDirectory(prefix="benchwarmers-bench-") as name:
        try:
            results = measure(given, tools, Path(name))
        except servers.CannotStart as reason:
            print(f"The benchmark cannot run: {reason}", file=sys.stderr)
            return 1
    RESULTS.mkdir(exist_ok=True)
    path = RESULTS / f"{results['at'].replace(':', '').replace('+0000', 'Z')}-{results['revision'].rstrip('+')}.json"
    path.write_text(json.dumps(results, indent=1) + "\n")
    text = tables.render(results)
    print(f"\n{text}\nKept as {path.relative_to(servers.ROOT)}")
    if given.write:
        tables.write(text)
    wrong = [
        f"{row['phase']} {row['target']}"
        for row in results["rows"]
        if row["errors"] or row["crossed"] or row["incomplete"] or not row.get("ledger_exact", True)
    ]
    if wrong:
        print(f"Errors, crossed answers or an inexact ledger in: {', '.join(wrong)}", file=sys.stderr)
    return 1 if any(name.split()[1].startswith("ours") for name in wrong) else 0


if __name__ == "__main__":
    sys.exit(main())
