"""The client alone in an environment of its own, installed from a running server, as on a colleague's machine."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.client.conftest import environment
from tests.fake import reply
from tests.live import Bench, Live

INSTALL_S = 300.0


def run(*order: str, env: dict[str, str] | None = None, timeout: float = INSTALL_S) -> subprocess.CompletedProcess[str]:
    return subprocess.run(order, capture_output=True, text=True, env=env, timeout=timeout, check=False, stdin=subprocess.DEVNULL)


@pytest.fixture(scope="module")
def installed(live: Live, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A fresh environment's folder of programs. The wheel is this server's; what it needs comes from the machine's package index."""
    folder = tmp_path_factory.mktemp("clean") / "venv"
    made = run(sys.executable, "-m", "venv", str(folder))
    if made.returncode:
        pytest.skip(f"this Python makes no environments: {made.stdout[-200:]}")
    order = live.send("GET", "/bench/client").json["install"]["pip"].split()
    assert order[:4] == ["python3", "-m", "pip", "install"]
    quick = ["--disable-pip-version-check", "--no-input", "--retries", "1", "--timeout", "20", "--no-cache-dir"]
    env = {**os.environ, "NO_PROXY": "127.0.0.1", "no_proxy": "127.0.0.1"}
    try:
        done = run(str(folder / "bin" / "python"), *order[1:], *quick, env=env)
    except subprocess.TimeoutExpired:
        pytest.skip(f"the package index did not answer within {INSTALL_S:.0f} s")
    if done.returncode:
        bare = run(str(folder / "bin" / "python"), *order[1:], *quick, "--no-deps", env=env)
        assert bare.returncode == 0, "the wheel itself needs no index: " + bare.stderr[-1500:]
        pytest.skip("no package index is in reach for what the client needs: " + done.stderr.strip().splitlines()[-1][:200])
    return folder / "bin"


@pytest.mark.parametrize("program", ["bench", "benchwarmers"])
def test_a_server_on_another_port_is_asked_with_a_key(installed: Path, bench: Bench, tmp_path: Path, program: str) -> None:
    core = bench.collection([bench.model("one", reply("one says")), bench.model("two", reply("two says"))]).removeprefix("bench/")
    env = environment(tmp_path, BENCHWARMERS_KEY=bench.key(), BENCHWARMERS_URL=bench.live.url)
    del env["PYTHONPATH"]
    asked = run(str(installed / program), "ask", core, "Which?", env=env)
    assert asked.returncode == 0, asked.stderr
    assert "one says" in asked.stdout
    assert "two says" in asked.stdout
    call = next(line.split("\t")[0] for line in asked.stderr.splitlines() if line.startswith("call_"))
    assert run(str(installed / program), "verdict", call, "--useful", env=env).returncode == 0
    refused = run(str(installed / program), "models", env=env)
    assert (refused.returncode, refused.stdout) == (1, ""), "this key may ask and judge"
    env["BENCHWARMERS_URL"] = "http://127.0.0.1:1"
    assert run(str(installed / program), "--url", bench.live.url, "--json", "collections", env=env).returncode == 0
    assert run(str(installed / program), "status", env=env).returncode == 3


def test_nothing_of_the_server_came_along(installed: Path) -> None:
    listed = {one["name"].lower() for one in json.loads(run(str(installed / "python"), "-m", "pip", "list", "--format", "json").stdout)}
    assert "benchwarmers-client" in listed
    assert not listed & {"django", "djangorestframework", "aiohttp", "gunicorn"}
