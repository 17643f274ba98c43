"""What the sandbox gives a repository's tests: this server's own Python, and folders to read."""

from __future__ import annotations

import asyncio
import json
import sys
from pathlib import Path

import pytest

from suite.sandbox import box

pytestmark = pytest.mark.skipif(bool(box.trouble()), reason=f"no sandbox here: {box.trouble()}")


def test_python_inside_is_the_one_outside_with_its_extensions() -> None:
    code = "import sys, ssl, sqlite3, requests, json; print(json.dumps([sys.version, requests.__version__]))"
    ended = asyncio.run(box.run([box.PYTHON, "-s", "-c", code]))
    assert ended.exit_code == 0, ended.stderr
    assert json.loads(ended.stdout) == [sys.version, box.offered()["requests"]]


def test_a_folder_can_be_read_and_not_written(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("hello")
    code = "print(open('/repo/a.txt').read()); open('/repo/b.txt', 'w')"
    ended = asyncio.run(box.run([box.PYTHON, "-s", "-c", code], folders={"/repo": tmp_path}))
    assert ended.stdout == b"hello\n"
    assert b"Read-only file system" in ended.stderr
    assert not (tmp_path / "b.txt").exists()
