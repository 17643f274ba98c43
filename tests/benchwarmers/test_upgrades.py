"""One folder with everything in it: brought up to date whole or not at all, after a copy, and refused before anything is written."""

from __future__ import annotations

import os
import shutil
import signal
import sqlite3
import subprocess
import sys
import threading
from contextlib import closing
from pathlib import Path

import pytest

from benchwarmers import startup
from benchwarmers.refusals import Refusal
from tests.benchwarmers.deployment import Deployment
from tests.live import CHECKOUT, eventually


def contents(folder: Path) -> dict[str, bytes]:
    return {str(p.relative_to(folder)): p.read_bytes() for p in sorted(folder.rglob("*")) if p.is_file()}


@pytest.mark.parametrize("after_s", [0.0, 0.05, 0.3])
def test_a_migration_that_is_killed_is_made_whole_by_the_next_start(deployment: Deployment, after_s: float) -> None:
    if deployment.database.name:
        pytest.skip("SQLite alone is copied and migrated without being asked to")
    deployment.ready()
    older = deployment.manage("migrate", "panels", "zero")  # as a release before these tables had it
    assert older.code == 0, older.said
    backups = deployment.home / "backups"
    with (deployment.folder / "log").open("wb") as log:
        command = [sys.executable, "manage.py", "serve", "--no-browser"]
        serve = subprocess.Popen(command, cwd=CHECKOUT, env=deployment.environment(), stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True)
    try:
        eventually(lambda: list(backups.glob("before-migrating-*.sqlite3")), "the copy before migrating")
        threading.Event().wait(after_s)
    finally:
        os.killpg(serve.pid, signal.SIGKILL)
        serve.wait(30)
    with closing(sqlite3.connect(deployment.home / "benchwarmers.sqlite3")) as database:
        assert database.execute("PRAGMA integrity_check").fetchone() == ("ok",)
        applied = {name for (name,) in database.execute("SELECT name FROM django_migrations WHERE app = 'panels'")}
        tables = {name for (name,) in database.execute("SELECT name FROM sqlite_master WHERE type = 'table' AND name LIKE 'panels_%'")}
    assert bool(tables) == ("0001_initial" in applied), "half a migration"

    again = deployment.manage("init")
    assert again.code == 0, again.said
    assert deployment.manage("migrate", "--check").code == 0
    assert "endpoint sealed" in deployment.manage("doctor").said
    copies = sorted(backups.glob("before-migrating-*.sqlite3"))
    with closing(sqlite3.connect(copies[0])) as copy:
        if copy.execute("PRAGMA integrity_check").fetchone() == ("ok",) and after_s:
            assert copy.execute("SELECT name FROM catalog_endpoint").fetchall() == [("sealed",)]


def test_somebody_elses_folder_is_refused_before_anything_is_written(deployment: Deployment) -> None:
    if os.geteuid() != 0 or deployment.database.name:
        pytest.skip("only root can give a folder away")
    deployment.ready()
    for path in (deployment.home, *deployment.home.rglob("*")):
        os.chown(path, 12345, 12345)
    before = contents(deployment.home)
    done = deployment.manage("serve")
    assert done.code != 0
    assert "12345" in done.said
    assert "BENCHWARMERS_HOME" in done.said
    assert len(done.said.strip().splitlines()) == 1
    assert contents(deployment.home) == before


def test_a_read_only_folder_is_refused_before_anything_is_written(deployment: Deployment) -> None:
    if deployment.database.name:
        pytest.skip("the refusal comes before any database")
    deployment.ready()
    before = contents(deployment.home)
    if os.geteuid() == 0:  # root may write everywhere: somebody else tries
        for path in (deployment.folder, deployment.home, *deployment.home.rglob("*")):
            os.chown(path, 65534, 65534)
        for parent in deployment.folder.parents:
            if not parent.stat().st_mode & 0o001:
                parent.chmod(parent.stat().st_mode | 0o001)
        who: dict[str, int] = {"user": 65534, "group": 65534}
    else:
        who = {}
    deployment.home.chmod(0o500)
    try:
        done = subprocess.run(  # type: ignore[call-overload]
            [sys.executable, "manage.py", "serve"], cwd=CHECKOUT, env=deployment.environment(), capture_output=True, text=True, timeout=60, check=False, **who
        )
    except PermissionError:
        pytest.skip("nobody but root may read this checkout")
    deployment.home.chmod(0o700)
    assert done.returncode != 0
    assert "read-only" in done.stderr, done.stderr
    assert "Traceback" not in done.stderr
    assert contents(deployment.home) == before


def test_a_full_disk_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    usage = shutil.disk_usage(tmp_path)
    monkeypatch.setattr(shutil, "disk_usage", lambda path: usage._replace(free=1024 * 1024))
    with pytest.raises(Refusal, match="Make room"):
        startup.check_folder(tmp_path)
    assert not list(tmp_path.iterdir())
