"""A deployment of one test's own: a data folder, and `manage.py` run on it as a deployer does, in a process and by the environment."""

from __future__ import annotations

import atexit
import os
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

from tests.live import CHECKOUT, SECRET, Database

TYPED_KEY = "sk-typed-0123456789"


@dataclass(frozen=True, slots=True)
class Done:
    """How a command ended. Shape: `said` is stdout and stderr together."""

    code: int
    said: str


@dataclass
class Deployment:
    """Shape: `more` are environment variables over the usual ones."""

    folder: Path
    more: dict[str, str] = field(default_factory=dict)
    database: Database = field(default_factory=lambda: Database(os.environ.get("DATABASE_URL", "")))

    @property
    def home(self) -> Path:
        return self.folder / "data"

    def environment(self, **more: str) -> dict[str, str]:
        kept = {k: v for k, v in os.environ.items() if not k.startswith(("BENCH", "DJANGO", "DATABASE_URL", "REDIS_URL", "DISPLAY", "WAYLAND"))}
        return {
            **kept,
            "HOME": str(self.folder),
            "XDG_CONFIG_HOME": str(self.folder / "config"),
            "BENCHWARMERS_HOME": str(self.home),
            "BENCHWARMERS_SECRET_KEYS": SECRET,
            "BENCH_PORT": "0",
            "BENCH_CATALOG_URLS": "models_dev=,openrouter=,freellmapi=",
            **({"DATABASE_URL": self.database.url} if self.database.name else {}),
            **self.more,
            **more,
        }

    def manage(self, *arguments: str, typed: str = "", **more: str) -> Done:
        """Runs one command to its end."""
        done = subprocess.run(
            [sys.executable, "manage.py", *arguments],
            cwd=CHECKOUT,
            env=self.environment(**more),
            input=typed,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=60,
            check=False,
        )
        return Done(done.returncode, done.stdout)

    def ready(self) -> Deployment:
        """Set up as `init` does, with an endpoint `sealed` whose key is stored: a copy of one that was, since setting up takes seconds."""
        original = prepared()
        if self.database.name:
            self.database.drop()
            self.database._run(f'CREATE DATABASE "{self.database.name}" TEMPLATE "{original.database.name}"')
        shutil.copytree(original.home, self.home, dirs_exist_ok=True)
        return self


@cache
def prepared() -> Deployment:
    folder = Path(tempfile.mkdtemp(prefix="benchwarmers-prepared-"))
    made = Deployment(folder)
    made.database.create()
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    atexit.register(made.database.drop)
    done = made.manage("init", "--endpoint", "sealed", "https://api.example.org/v1", "--key", typed=f"{TYPED_KEY}\n")
    assert done.code == 0, done.said
    return made
