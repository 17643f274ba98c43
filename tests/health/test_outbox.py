from __future__ import annotations

import fcntl
import os
import stat
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from health.lines import Line, dumps, loads
from health.outbox import REJECTED, ROTATE_BYTES, Outbox, drain_dead, files, read_uncommitted
from tests.health.conftest import row


class Kept(list[Line]):
    """Stands where the database would: keeps what was committed."""

    def __call__(self, lines: Sequence[Line]) -> None:
        self.extend(lines)

    def attempts(self) -> dict[str, str]:
        """Ids and statuses, the first of each id as the ledger would have it."""
        found: dict[str, str] = {}
        for line in self:
            for one in line.get("attempts", ()):
                found.setdefault(one["id"], one["status"])
        return found


def dead(folder: Path, *lines: bytes) -> Path:
    """A file that nobody holds."""
    path = folder / f"gone-{len(files(folder))}.jsonl"
    path.write_bytes(b"".join(lines))
    return path


def test_a_line_is_in_the_file_as_soon_as_it_is_appended(folder: Path) -> None:
    box = Outbox(folder, "worker-0")
    box.append({"attempts": [row("a")]})
    assert [line["attempts"][0]["id"] for line in read_uncommitted(folder)] == ["a"]
    box.close()


def test_the_file_is_for_its_owner_only_and_closed_for_children(folder: Path) -> None:
    box = Outbox(folder, "worker-0")
    assert stat.S_IMODE(box.path.stat().st_mode) == 0o600
    seen = subprocess.run([sys.executable, "-c", "import os, sys; os.fstat(int(sys.argv[1]))", str(box._fd)], capture_output=True, check=False)
    assert seen.returncode != 0
    box.close()


def test_a_living_processs_file_is_not_drained(folder: Path) -> None:
    box, kept = Outbox(folder, "worker-0"), Kept()
    box.append({"attempts": [row("a")]})
    assert drain_dead(folder, kept).files == 0
    assert box.path.exists()
    box.close()
    assert drain_dead(folder, kept).files == 1
    assert kept.attempts() == {"a": "ok"}
    assert files(folder) == []


def test_a_file_that_a_drain_takes_for_a_dead_processs_while_it_is_made_is_made_again(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    really, kept = fcntl.flock, Kept()

    def drained_first(fd: int, how: int) -> None:
        monkeypatch.setattr(fcntl, "flock", really)
        drain_dead(folder, kept)  # between the opening of the new file and its lock
        really(fd, how)

    monkeypatch.setattr(fcntl, "flock", drained_first)
    box = Outbox(folder, "worker-0")
    box.append({"attempts": [row("a")]})
    assert box.path.exists()
    assert drain_dead(folder, kept).files == 0
    box.close()
    assert drain_dead(folder, kept).files == 1
    assert kept.attempts() == {"a": "ok"}


def test_a_call_without_an_end_is_lost_and_one_with_an_end_is_not(folder: Path) -> None:
    stubs = [row(name, input_tokens=9) for name in ("ended", "flying", "settled", "over")]
    dead(
        folder,
        dumps({"begin": [*stubs, {"id": "pan-1", "panel": "pan-1"}, {"id": "pan-2", "panel": "pan-2"}]}),
        dumps({"attempts": [row("ended")], "settle": [{"permit": "ended"}, {"permit": "pan-1", "truth": {}}]}),
        dumps({"settle": [{"permit": "settled", "unused": True}]}),
        dumps({"over": ["over"]}),
    )
    kept = Kept()
    drained = drain_dead(folder, kept)
    assert (drained.files, drained.lines, drained.lost) == (1, 2, 1)
    assert kept.attempts() == {"ended": "ok", "flying": "lost"}
    lost = kept[-2]
    assert lost["attempts"][0] == {**stubs[1], "status": "lost", "estimated": True}
    assert lost["settle"] == [{"permit": "flying"}]
    assert kept[-1]["settle"] == [{"permit": "pan-2", "panel": "pan-2", "unused": True}]
    assert [one["panel"] for one in kept[-1]["lost"]] == ["pan-2"]


def test_a_line_cut_in_the_middle_is_passed_over_and_its_call_lost(folder: Path) -> None:
    whole = dumps({"attempts": [row("a")]})
    for cut in (1, len(whole) // 2, len(whole) - 1):
        dead(folder, dumps({"begin": [row("a"), row("b")]}), dumps({"attempts": [row("b")]}), whole[:cut])
        kept = Kept()
        drain_dead(folder, kept)
        assert kept.attempts() == {"b": "ok", "a": "lost"}
    assert not (folder / REJECTED).exists()


@pytest.mark.parametrize("garbage", [b"\0\0\0\0\n", b"[1]\n", b'{"attempts": 3}\n', b"\xff\xfe\n", b'{"attempts": [\n'])
def test_a_line_that_is_none_is_set_aside_and_holds_no_other_up(folder: Path, garbage: bytes, caplog: pytest.LogCaptureFixture) -> None:
    dead(folder, dumps({"attempts": [row("a")]}), garbage, dumps({"attempts": [row("b")]}))
    kept = Kept()
    drain_dead(folder, kept)
    assert kept.attempts() == {"a": "ok", "b": "ok"}
    assert (folder / REJECTED).read_bytes() == garbage
    assert "set aside" in caplog.text


def test_a_file_stays_until_its_lines_are_committed(folder: Path) -> None:
    dead(folder, dumps({"begin": [row("b")], "attempts": [row("a")]}))

    def refuse(lines: Sequence[Line]) -> None:
        raise ConnectionError

    with pytest.raises(ConnectionError):
        drain_dead(folder, refuse)
    kept = Kept()
    drain_dead(folder, kept)
    assert kept.attempts() == {"a": "ok", "b": "lost"}


def test_what_is_committed_is_dropped_once_nothing_is_under_way(folder: Path) -> None:
    box = Outbox(folder, "worker-0")
    box.append({"begin": [row("a")]})
    position = box.append({"attempts": [row("a")]})
    assert box.in_flight == 0
    assert box.size > 0
    box.committed(position)
    assert box.size == box.path.stat().st_size == 0
    assert box.position == position
    assert box.append({"attempts": [row("b")]}) > position
    assert [line["attempts"][0]["id"] for line in read_uncommitted(folder)] == ["b"]
    box.close()


def test_what_is_not_committed_yet_is_kept(folder: Path) -> None:
    box = Outbox(folder, "worker-0")
    first = box.append({"attempts": [row("a")]})
    box.append({"attempts": [row("b")]})
    box.committed(first)
    assert box.size > 0
    box.close()
    assert box.path.exists()


def test_a_large_file_is_begun_anew_with_what_is_under_way_and_what_is_not_committed(folder: Path) -> None:
    box = Outbox(folder, "worker-0")
    box.append({"begin": [row("long"), row("short"), {"id": "pan-1", "panel": "pan-1"}]})
    box.append({"attempts": [row("short")]})
    while box.size < ROTATE_BYTES + 10_000:
        position = box.append({"attempts": [row()]})
    last = box.append({"attempts": [row("tail")]})
    box.committed(position)
    assert box.size < 5_000
    assert box.path.stat().st_size == box.size
    assert box.position == last
    assert [one["attempts"][0]["id"] for _, one in box.read(position)] == ["tail"]
    box.append({"attempts": [row("after")]})
    assert drain_dead(folder, Kept()).files == 0  # the lock goes with it
    box.close()
    kept = Kept()
    drain_dead(folder, kept)
    assert kept.attempts() == {"tail": "ok", "after": "ok", "long": "lost"}


def test_a_long_tail_is_not_copied_again_and_again(folder: Path) -> None:
    box = Outbox(folder, "worker-0")
    box.append({"begin": [row("long")]})
    positions = [box.append({"attempts": [row(error="x" * 400) for _ in range(100)]}) for _ in range(60)]
    before = box.path.stat().st_ino
    for position in positions[:29]:
        box.committed(position)
    assert box.path.stat().st_ino == before
    for position in positions[29:]:
        box.committed(position)
    assert box.path.stat().st_ino != before
    box.close()


def test_a_full_disk_leaves_no_half_line_behind(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    box = Outbox(folder, "worker-0")
    write = os.write
    monkeypatch.setattr(os, "write", lambda fd, data: write(fd, data[:10]))
    with pytest.raises(OSError, match="full"):
        box.append({"attempts": [row("a")]})
    monkeypatch.undo()
    box.append({"attempts": [row("b")]})
    assert [line["attempts"][0]["id"] for line in read_uncommitted(folder)] == ["b"]
    box.close()


def test_a_look_up_reads_only_lines_that_name_what_it_looks_for(folder: Path) -> None:
    box = Outbox(folder, "worker-0")
    box.append({"attempts": [row("a"), row("b")]})
    box.append({"attempts": [row("c")]})
    box.append({"begin": [row("d")]})
    assert [line["attempts"][0]["id"] for line in read_uncommitted(folder, "call-b")] == ["a"]
    assert list(read_uncommitted(folder, "call-d")) == []
    box.close()


def test_a_file_that_was_never_finished_is_cleared_away(folder: Path) -> None:
    (folder / "worker-0.new").write_bytes(b"")
    drain_dead(folder, Kept())
    assert list(folder.iterdir()) == []


def test_a_process_that_ended_well_leaves_nothing(folder: Path) -> None:
    box = Outbox(folder, "worker-0")
    box.append({"begin": [row("a")]})
    box.committed(box.append({"attempts": [row("a")]}))
    box.append({"over": ["a"]})
    box.close()
    assert list(folder.iterdir()) == []


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats() | st.text(st.characters(exclude_categories=()), max_size=20), lambda v: st.lists(v, max_size=3)
    )
)
def test_whatever_a_line_holds_it_is_one_line_that_reads_back(value: object) -> None:
    data = dumps({"things": [value]})
    assert data.endswith(b"\n")
    assert data.count(b"\n") == 1
    assert "things" in loads(data)


def test_half_a_surrogate_pair_becomes_a_replacement_character() -> None:
    assert loads(dumps({"things": ["a\ud800b"]})) == {"things": ["a\ufffdb"]}
    assert orjson.loads(dumps({"things": ["\ud83d\ude00"]})) == {"things": ["😀"]}
