"""The pages at the top of the checkout are true: links lead somewhere, commands exist, and what can be copied works on the running server."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.fake import reply
from tests.live import Bench
from tests.test_documents import commands
from tests.test_house import CHECKOUT

PAGES = sorted([*CHECKOUT.glob("*.md"), *(CHECKOUT / "docs").glob("*.md")])
README = (CHECKOUT / "README.md").read_text(encoding="utf-8")
FENCE = re.compile(r"^( *)```(\w*)\n(.*?)^ *```", re.MULTILINE | re.DOTALL)
ADDRESS = "http://127.0.0.1:8122"


def blocks(text: str, language: str) -> list[str]:
    """Fenced blocks of a language, without their indentation."""
    return [re.sub(rf"^{indent}", "", body, flags=re.MULTILINE) for indent, name, body in FENCE.findall(text) if name == language]


def anchors(path: Path) -> set[str]:
    """What a page's headings are linked by."""
    titles = re.findall(r"^#+ (.+)$", FENCE.sub("", path.read_text(encoding="utf-8")), re.MULTILINE)
    return {re.sub(r"[^\w -]", "", title.replace("`", "").lower()).strip().replace(" ", "-") for title in titles}


def curls() -> list[str]:
    """Every curl line of the README with its continuation lines."""
    return [line.replace("\\\n", " ") for block in blocks(README, "sh") for line in re.findall(r"^curl (?:.*\\\n)*.*$", block, re.MULTILINE)]


@pytest.mark.parametrize("page", PAGES, ids=lambda p: str(p.relative_to(CHECKOUT)))
def test_links_lead_somewhere(page: Path) -> None:
    wrong = []
    for target in re.findall(r"\]\(([^)\s]+)\)", FENCE.sub("", page.read_text(encoding="utf-8"))):
        if target.startswith(("https://", "http://", "mailto:")):
            continue
        name, _, anchor = target.partition("#")
        path = (page.parent / name).resolve() if name else page
        if not path.exists() or (anchor and anchor not in anchors(path)):
            wrong.append(target)
    assert not wrong


@pytest.mark.parametrize("page", PAGES, ids=lambda p: str(p.relative_to(CHECKOUT)))
def test_commands_that_are_named_exist(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    targets = set(re.findall(r"^([a-z][a-z-]*):", (CHECKOUT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE))
    named = re.findall(r"(?:`|^\s*|&& |\w=\S+ )make ([a-z][a-z-]*)", text, re.MULTILINE)
    assert not {name for name in named if name not in targets}
    django = {"migrate", "makemigrations", "check", "shell"}
    assert not {name for name in re.findall(r"manage\.py ([a-z_]+)", text) if name not in commands() | django}
    scripts = re.findall(r"\bscripts/[\w-]+\.(?:sh|py)\b", text)
    assert not {name for name in scripts if not (CHECKOUT / name).exists()}


@pytest.mark.parametrize("page", PAGES, ids=lambda p: str(p.relative_to(CHECKOUT)))
def test_files_that_are_named_exist(page: Path) -> None:
    folders = {p.name for p in CHECKOUT.iterdir() if p.is_dir()}
    named = set(re.findall(r"`((?:[\w-]+/)+[\w.-]+\.(?:py|sh|md|yaml|html))`", page.read_text(encoding="utf-8")))
    assert not {name for name in named if name.split("/")[0] in folders and not (CHECKOUT / name).exists()}


def test_the_notice_names_every_package_that_is_served_with() -> None:
    notice = (CHECKOUT / "NOTICE").read_text(encoding="utf-8")
    locked = re.findall(r"^([a-z0-9][\w.-]*)==", (CHECKOUT / "requirements.lock").read_text(encoding="utf-8"), re.MULTILINE)
    assert len(locked) > 30
    assert not {name for name in locked if not re.search(rf"(?<![\w-]){re.escape(name)}(?![\w-])", notice)}


def test_the_notice_names_every_file_that_is_kept_of_others() -> None:
    notice = (CHECKOUT / "NOTICE").read_text(encoding="utf-8")
    kept = {file.name for file in (CHECKOUT / "templates/static/vendor").iterdir()} - {"LICENCES.txt"}
    assert kept
    licences = (CHECKOUT / "templates/static/vendor/LICENCES.txt").read_text(encoding="utf-8")
    assert not {name for name in kept if f"  {name} " not in notice or f"{name}: " not in licences}


def test_the_readme_shows_every_format() -> None:
    from wire import dialects

    asked = "\n".join(curls())
    for dialect in dialects.every():
        paths = [r.path for r in dialect.routes if r.operation == "ask"]
        assert any(path.rstrip("/") in asked for path in paths), f"no curl asks in the format {dialect.name}"


@pytest.mark.skipif(shutil.which("curl") is None, reason="curl is not installed")
@pytest.mark.parametrize("curl", curls(), ids=lambda c: c.split()[1].strip("'").removeprefix(ADDRESS))
def test_a_curl_of_the_readme_answers(bench: Bench, curl: str) -> None:
    fast, slow = bench.model("fast", reply("hello from fast")), bench.model("slow", reply("hello from slow"))
    core = bench.collection([fast, slow])
    call = bench.ask(core).json["bench"]["seats"][0]["call"]
    order = curl.replace(ADDRESS, bench.live.url).replace("bench/core", core).replace("call_01J…", call)
    done = subprocess.run(["sh", "-c", f"{order} --silent --show-error --fail-with-body"], capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    if "/bench/verdict" in curl:
        assert json.loads(done.stdout)["call"] == call
    else:
        assert "hello from fast" in done.stdout


def test_the_python_of_the_readme_runs(bench: Bench, capsys: pytest.CaptureFixture[str]) -> None:
    fast, slow = bench.model("fast", reply("hello from fast")), bench.model("slow", reply("hello from slow"))
    core = bench.collection([fast, slow])
    bench.load()
    (code,) = blocks(README, "python")
    assert "bw_live_…" in code
    code = code.replace(ADDRESS, bench.live.url).replace("bench/core", core).replace("bw_live_…", bench.key())
    exec(compile(code, "README.md", "exec"), {})
    printed = capsys.readouterr().out
    assert "hello from fast" in printed
    assert "hello from slow" in printed
    assert "call_" in printed
