"""Real agents, fetched from npm into the user's cache folder. They run only where they are asked for: `make test-agents`."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import platformdirs
import pytest

CACHE = Path(platformdirs.user_cache_dir("benchwarmers", appauthor=False)) / "agents"
INSTALL_S = 900


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leaves agents out of every run that does not name their mark: they are several hundred megabytes."""
    if "agents" in (config.option.markexpr or ""):
        return
    mine = [item for item in items if item.get_closest_marker("agents")]
    if mine:
        config.hook.pytest_deselected(items=mine)
        items[:] = [item for item in items if item not in mine]


@pytest.fixture(scope="session")
def fetched() -> Callable[[str, str, str], Path]:
    """Gives a package's program at an exact version. Skips the test where it cannot be had."""

    def fetch(package: str, version: str, program: str) -> Path:
        folder = CACHE / f"{package.replace('/', '-').lstrip('@')}-{version}"
        path = folder / "node_modules" / ".bin" / program
        if path.exists():
            return path
        npm = shutil.which("npm")
        if not npm:
            pytest.skip("npm is not installed: Node.js 20 or later brings it.")
        folder.mkdir(parents=True, exist_ok=True)
        order = [npm, "install", "--prefix", str(folder), "--no-audit", "--no-fund", "--loglevel=error", f"{package}@{version}"]
        try:
            done = subprocess.run(order, capture_output=True, text=True, timeout=INSTALL_S, check=False)
        except subprocess.TimeoutExpired:
            pytest.skip(f"npm did not fetch {package}@{version} within {INSTALL_S} s.")
        if done.returncode or not path.exists():
            last = (done.stderr or done.stdout).strip().splitlines()[-1:] or ["it said nothing"]
            pytest.skip(f"npm could not fetch {package}@{version}: {last[0][:200]}")
        return path

    return fetch


@pytest.fixture
def rooms(tmp_path: Path) -> tuple[Path, dict[str, str]]:
    """A folder to work in and an environment without anything of the person's who runs the tests."""
    home, work = tmp_path / "home", tmp_path / "work"
    home.mkdir()
    work.mkdir()
    return work, {"PATH": os.environ["PATH"], "HOME": str(home), "TERM": "dumb", "LANG": "C.UTF-8"}
