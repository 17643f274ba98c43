"""The fault run in its short form: each kind of process killed once, at fixed points, with calls, onboarding and a run of the suite under way."""

from __future__ import annotations

import asyncio
import shutil
import sys
from pathlib import Path

import pytest

from bench.soak import Soak, short_plan

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="finds the processes it kills in /proc")


def test_no_answer_is_lost_and_nothing_done_or_counted_twice_when_processes_are_killed(tmp_path: Path) -> None:
    said: list[str] = []
    soak = Soak(tmp_path, seed=7, blows=short_plan(3), calls=160, callers=10, pace=0.4, onboards=3, runs=1, tasks=30, new_s=(3.0, 6.0), say=said.append)
    try:
        found = asyncio.run(soak.run())
    except BaseException:
        for log in tmp_path.glob("*/*.log"):
            print(log.read_text(errors="replace")[-3000:])
        raise
    finally:
        print("\n".join(said))
    assert not found.wrong, "\n".join(found.wrong)
    assert sorted(soak.fallen) == ["database", "master", "queue", "serve", "worker"]
    assert found.counts["answers received whole"] > 0
    assert found.counts["newcomers"] == {"done": 3}
    assert (found.counts["runs"], found.counts["samples"]) == ({"ok": 1}, 30)
    # One by the queue's death; a queue whose server died may still bring its own to an end.
    assert 1 <= found.counts["newcomers' calls lost in flight"] <= 2
    shutil.rmtree(tmp_path)
