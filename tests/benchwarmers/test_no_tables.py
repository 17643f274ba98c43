"""Commands on a data folder that was never set up say what to do instead of where Django gave up."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.benchwarmers.deployment import Deployment


@pytest.mark.parametrize("command", [("roster", "dump", "roster.json"), ("suite", "load", "starter")])
def test_a_folder_that_was_never_set_up_is_said_to_be_so(tmp_path: Path, command: tuple[str, ...]) -> None:
    there = Deployment(tmp_path)
    there.database.create()
    try:
        done = there.manage(*command)
    finally:
        there.database.drop()
    assert done.code != 0
    assert "Traceback" not in done.said
    assert "manage.py init" in done.said
