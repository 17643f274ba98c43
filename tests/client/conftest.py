"""The `bench` command as a process of its own, in an environment of a test's making."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.live import CHECKOUT, Live

PATIENCE_S = 60.0


@dataclass(frozen=True, slots=True)
class Ran:
    """How a command ended."""

    code: int
    out: str
    err: str


def environment(folder: Path, **changes: str) -> dict[str, str]:
    """An environment that knows no server, no key and no proxy but what is given."""
    clean = {k: v for k, v in os.environ.items() if not k.startswith(("BENCH", "HTTP", "NO_PROXY", "http_", "https_", "no_proxy", "ALL_PROXY"))}
    return {**clean, "HOME": str(folder), "BENCHWARMERS_HOME": str(folder / "none"), "PYTHONPATH": str(CHECKOUT / "client" / "src"), **changes}


COMMAND = [sys.executable, "-m", "benchwarmers_client.main"]
Cli = Callable[..., Ran]


@pytest.fixture
def cli(live: Live, tmp_path: Path) -> Cli:
    """Runs the command against the running server with its operator's key."""

    def run(*arguments: str, pipe: str | bytes = "", cwd: Path | None = None, env: Mapping[str, str] | None = None) -> Ran:
        known = {"BENCHWARMERS_URL": f"http://{live.host}:{live.port}", "BENCHWARMERS_KEY": live.operator_key}
        data = pipe.encode() if isinstance(pipe, str) else pipe
        full = environment(tmp_path, **{**known, **(env or {})})
        done = subprocess.run([*COMMAND, *arguments], input=data, capture_output=True, cwd=cwd or tmp_path, env=full, timeout=PATIENCE_S)
        return Ran(done.returncode, done.stdout.decode(), done.stderr.decode())

    return run
