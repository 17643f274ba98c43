"""Takes the tour: a newcomer's way from an empty server to a first verdict, once in a browser and once by the command line, and writes docs/TOUR.md of it.

`.venv/bin/python scripts/tour.py` needs what `make test` installs (Chromium among it) and fetches the demo model, about 130 MB, where it is not there yet.
The server and its data folder are its own and gone afterwards.
"""

from __future__ import annotations

import json
import os
import pty
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import termios
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from playwright.sync_api import sync_playwright

CHECKOUT = Path(__file__).resolve().parent.parent
PICTURES = CHECKOUT / "docs" / "pictures" / "tour"
PAGE = CHECKOUT / "docs" / "TOUR.md"
PORT = os.environ.get("BENCH_PORT", "8129")
ADDRESS = f"http://127.0.0.1:{PORT}"
QUESTION = "Name one reason why a cache may return a stale value. Answer in one sentence."
PATIENCE_S = 300
DESK, PHONE = {"width": 1440, "height": 900}, {"width": 390, "height": 844}


class Tour:
    """What is written: steps with their pictures or output."""

    def __init__(self) -> None:
        self.parts: list[str] = []
        self.count = 0

    def picture(self, page: Any, name: str, words: str) -> None:
        self.count += 1
        file = f"{self.count:02}-{name}.png"
        page.screenshot(path=PICTURES / file)
        self.parts.append(f"{self.count}. {words}\n\n   ![{words.split('.')[0]}](pictures/tour/{file})\n")

    def output(self, command: str, said: str, words: str) -> None:
        body = "\n".join(f"   {line}".rstrip() for line in f"$ {command}\n{said}".splitlines())
        self.count += 1
        self.parts.append(f"{self.count}. {words}\n\n   ```text\n{body}\n   ```\n")


@contextmanager
def server(home: Path) -> Iterator[dict[str, str]]:
    environment = {
        **{name: value for name, value in os.environ.items() if not name.startswith(("BENCH", "DATABASE_URL", "REDIS_URL", "DJANGO"))},
        "BENCHWARMERS_HOME": str(home),
        "BENCHWARMERS_SECRET_KEYS": "a-secret-of-the-tour-0123456789",
        "BENCH_PORT": PORT,
        "BENCH_CATALOG_URLS": "models_dev=,openrouter=,freellmapi=",
        "NO_COLOR": "1",
        "COLUMNS": "110",
    }
    with (home / "server.log").open("wb") as log:
        process = subprocess.Popen(
            [sys.executable, str(CHECKOUT / "manage.py"), "serve", "--no-browser"],
            env=environment,
            stdout=log,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    try:
        until = time.monotonic() + PATIENCE_S
        while True:
            try:
                urllib.request.urlopen(f"{ADDRESS}/readyz", timeout=2)
                break
            except OSError:
                if process.poll() is not None or time.monotonic() > until:
                    sys.exit(f"The server did not start: {(home / 'server.log').read_text(errors='replace')[-2000:]}")
                time.sleep(0.5)
        yield environment
    finally:
        process.send_signal(signal.SIGTERM)
        try:
            process.wait(60)
        except subprocess.TimeoutExpired:
            process.kill()


def run(environment: dict[str, str], *command: str) -> str:
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=PATIENCE_S, check=False)
    if done.returncode:
        sys.exit(f"{' '.join(command)} failed: {done.stdout}{done.stderr}")
    return (done.stdout + done.stderr).rstrip()


def typed(environment: dict[str, str], *command: str) -> str:
    """Runs a command as on a terminal and gives what stands there afterwards, without colours."""
    ours, theirs = pty.openpty()
    termios.tcsetwinsize(theirs, (60, 110))
    with subprocess.Popen(command, env={**environment, "TERM": "dumb"}, stdin=subprocess.DEVNULL, stdout=theirs, stderr=theirs) as process:
        os.close(theirs)
        said = b""
        try:
            while data := os.read(ours, 65536):
                said += data
        except OSError:  # the other end is closed
            pass
        os.close(ours)
    if process.returncode:
        sys.exit(f"{' '.join(command)} failed: {said.decode(errors='replace')}")
    text = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", said.decode(errors="replace")).replace("\r\n", "\n")
    return "\n".join(line.rsplit("\r", 1)[-1].rstrip() for line in text.splitlines()).strip("\n")


def in_a_browser(tour: Tour, environment: dict[str, str]) -> None:
    link = re.search(r"https?://\S+/signin/\S+", run(environment, sys.executable, str(CHECKOUT / "manage.py"), "signin"))
    assert link, "signin prints a link"
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        context = browser.new_context(viewport=DESK)
        page = context.new_page()
        page.set_default_timeout(PATIENCE_S * 1000)
        page.goto(link[0])
        page.wait_for_load_state("networkidle")
        tour.picture(page, "first-steps", "The one-time link that `make run` opens leads to the first steps. There is no endpoint yet.")
        page.click("summary:has-text('The small demo model')")
        page.wait_for_selector("button[value=demo]")
        tour.picture(page, "demo", "Whoever has no key at hand takes the small demo model. How much is fetched, and from where, is said before.")
        page.click("button[value=demo]")
        page.wait_for_selector("#step-4 [href*='/app/ask'], #step-2.is-done, #step-3.is-now", state="attached")
        page.goto(f"{ADDRESS}/app/start")
        page.wait_for_load_state("networkidle")
        if page.locator("#step-2.is-now").count():
            for box in page.locator("#step-2 input[type=checkbox]").all():
                box.check()
            tour.picture(page, "models", "What the endpoint serves is listed; those that shall play are ticked.")
            page.click("button[value=add]")
            page.wait_for_load_state("networkidle")
            page.goto(f"{ADDRESS}/app/start")
        if page.locator("#step-3.is-now").count():
            tour.picture(page, "collection", "A collection is what one asks: a name and its members.")
            page.click("#step-3 form button.primary")
            page.wait_for_load_state("networkidle")
        page.goto(f"{ADDRESS}/app/start?step=4")
        page.wait_for_load_state("networkidle")
        tour.picture(page, "ready", "All is there for the first question.")
        page.click("#step-4 a.button.primary")
        page.fill("#prompt", QUESTION)
        page.wait_for_selector("#cost-table:not([hidden])")
        tour.picture(page, "ask", "The question, and what it will cost, before anything is sent.")
        page.click("#send")
        # Not by wait_for_function: the pages' policy forbids what that evaluates.
        while page.evaluate("[...document.querySelectorAll('.seat .answer')].filter(e => e.textContent.trim().length > 30).length") < 2:
            page.wait_for_timeout(50)
        tour.picture(page, "streaming", "Each seat writes into its own column.")
        page.wait_for_selector("#same-again:not([hidden])")
        page.locator("form[data-judge] button[value=true]").first.click()
        page.wait_for_selector("form[data-judge][data-judged]")
        tour.picture(page, "verdict", "A verdict on the spot. It decides who sits next.")
        for path, name, words in (
            ("/app/models", "models-page", "The bench: every model with its record, speed, price and what is left of its limits."),
            ("/app/usage", "usage", "What was spent, on what."),
            ("/app/connect", "connect", "Snippets with the real address, for the programs that people use already."),
        ):
            page.goto(ADDRESS + path)
            page.wait_for_load_state("networkidle")
            tour.picture(page, name, words)
        phone = browser.new_context(viewport=PHONE, color_scheme="dark", storage_state=context.storage_state()).new_page()
        phone.goto(f"{ADDRESS}/app/ask")
        phone.wait_for_load_state("networkidle")
        tour.picture(phone, "phone", "The same on a phone, in the dark.")
        browser.close()


def in_the_suite(tour: Tour, environment: dict[str, str]) -> None:
    """Loads the starter pack and has four of its tasks asked of the demo model."""
    benchwright = str(CHECKOUT / ".venv" / "bin" / "benchwright")
    key = (Path(environment["BENCHWARMERS_HOME"]) / "operator.key").read_text().strip()
    environment = {**environment, "BW_BASE_URL": ADDRESS, "BW_PAT": key, "XDG_CONFIG_HOME": environment["BENCHWARMERS_HOME"]}
    model = json.loads(run({**environment, "BENCHWARMERS_URL": ADDRESS, "BENCHWARMERS_KEY": key}, str(CHECKOUT / ".venv/bin/bench"), "models", "--json"))
    alias = model["data"][0]["alias"]
    link = re.search(r"https?://\S+/signin/\S+", run(environment, sys.executable, str(CHECKOUT / "manage.py"), "signin"))
    assert link, "signin prints a link"
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        page = browser.new_context(viewport=DESK).new_page()
        page.set_default_timeout(PATIENCE_S * 1000)
        page.goto(link[0])
        page.goto(f"{ADDRESS}/app/suite")
        page.wait_for_load_state("networkidle")
        tour.picture(page, "suite", "The suite of a new server: review tasks ship with it, and are loaded where somebody says so.")
        run(environment, sys.executable, str(CHECKOUT / "manage.py"), "suite", "load", "starter")
        words = ["run", "--benchmark", "rebench", "--subset", "rebench-starter-real", "--model", alias]
        tour.output(f"benchwright {' '.join(words)}", typed(environment, benchwright, *words), "Four of them, asked of the demo model.")
        tour.output("benchwright run tasks @last", typed(environment, benchwright, "run", "tasks", "@last"), "What became of each.")
        made = json.loads(run(environment, benchwright, "run", "ls", "--output", "json"))
        page.goto(f"{ADDRESS}/app/runs/{(made['data'] if isinstance(made, dict) else made)[0]['id']}")
        page.wait_for_load_state("networkidle")
        tour.picture(page, "run", "The same on its page, with the interval that four tasks deserve.")
        browser.close()


def by_the_command_line(tour: Tour, environment: dict[str, str]) -> None:
    bench = str(CHECKOUT / ".venv" / "bin" / "bench")
    key = (Path(environment["BENCHWARMERS_HOME"]) / "operator.key").read_text().strip()
    environment = {**environment, "BENCHWARMERS_URL": ADDRESS, "BENCHWARMERS_KEY": key}
    tour.output("bench status", typed(environment, bench, "status"), "What runs, and where.")
    tour.output("bench collections", typed(environment, bench, "collections"), "What can be asked.")
    collection = json.loads(run(environment, bench, "collections", "--json"))["data"][0]["name"]
    asked = typed(environment, bench, "ask", collection, QUESTION)
    tour.output(f'bench ask {collection} "{QUESTION}"', asked, "A panel, with the table of call ids to judge it by.")
    call = re.findall(r"call_[0-9A-Z]{26}", asked)[-1]
    tour.output(f"bench verdict {call} --useful", typed(environment, bench, "verdict", call, "--useful"), "A verdict on one of them.")
    tour.output("bench models", typed(environment, bench, "models"), "The bench after it.")


def main() -> None:
    shutil.rmtree(PICTURES, ignore_errors=True)
    PICTURES.mkdir(parents=True)
    tour = Tour()
    with tempfile.TemporaryDirectory(prefix="tour-") as folder, server(Path(folder)) as environment:
        in_a_browser(tour, environment)
        browser_parts, tour.parts, tour.count = tour.parts, [], 0
        by_the_command_line(tour, environment)
        command_parts, tour.parts = tour.parts, []
        in_the_suite(tour, environment)
    text = (
        "# The tour\n\nFrom an empty server to a first verdict. `scripts/tour.py` took these pictures and this output, and takes them again.\n\n"
        "## In a browser\n\n`make run` sets everything up, serves, and opens a one-time sign-in link.\n\n"
        + "\n".join(browser_parts)
        + "\n## By the command line\n\nThe same server, asked with `bench`. The small demo model says what it can.\n\n"
        + "\n".join(command_parts)
        + "\n## The suite\n\nMeasuring a model, by the tasks that ship.\n\n"
        + "\n".join(tour.parts)
    )
    PAGE.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
