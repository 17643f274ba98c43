"""The real sandbox, and what strangers' code tries in it: it sees nothing, stays within its limits with all that it starts, and is gone at their end."""

from __future__ import annotations

import asyncio
import os
import platform
import secrets
import time
from pathlib import Path

import pytest

from suite.sandbox import box, cgroup, seccomp, watcher
from tests.live import eventually

needs_box = pytest.mark.skipif(bool(box.trouble()), reason=f"no sandbox here: {box.trouble()}")
GONE_WITHIN_S = 6.0


async def python(code: str, *, files: dict[str, bytes] | None = None, **limits: float) -> box.Ended:
    return await box.run([box.PYTHON, "-c", code], files, box.Limits(**{"wall_s": 20, **limits}))  # type: ignore[arg-type]


def carriers(mark: str) -> list[int]:
    """Finds processes of this machine that carry a mark in their command line."""
    found = []
    for name in os.listdir("/proc"):
        if name.isdigit():
            try:
                if mark.encode() in Path("/proc", name, "cmdline").read_bytes():
                    found.append(int(name))
            except OSError:
                continue
    return found


async def gone(mark: str) -> None:
    """Waits until nothing with the mark is left. Errors: AssertionError where that takes too long."""
    began = time.monotonic()
    await asyncio.to_thread(eventually, lambda: not carriers(mark), "the end of the tree")
    assert time.monotonic() - began < GONE_WITHIN_S


def resident() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * watcher.PAGE


# ------------------------------------------------------------------ all of it ends

DAEMONS = """
import os, sys, time
for _ in range(3):
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            while True: time.sleep(1)
        os._exit(0)
"""


@needs_box
@pytest.mark.parametrize("rest", ["while True: pass", "import signal\nfor s in (1, 2, 15): signal.signal(s, signal.SIG_IGN)\nwhile True: time.sleep(1)"])
async def test_at_the_time_limit_the_whole_tree_is_gone(rest: str) -> None:
    mark = f"mark-{secrets.token_hex(8)}"
    began = time.monotonic()
    ended = await python(f"# {mark}\n{DAEMONS}\n{rest}", wall_s=1)
    assert ended.why == "timeout"
    assert time.monotonic() - began < 1 + GONE_WITHIN_S
    await gone(mark)


@needs_box
async def test_what_outlives_the_command_ends_with_it() -> None:
    mark = f"mark-{secrets.token_hex(8)}"
    ended = await python(f"# {mark}\n{DAEMONS}\nprint('done')")
    assert (ended.exit_code, ended.why, ended.stdout) == (0, "", b"done\n")
    await gone(mark)


@needs_box
async def test_whoever_no_longer_waits_leaves_nothing_running() -> None:
    mark = f"mark-{secrets.token_hex(8)}"
    waiting = asyncio.create_task(python(f"# {mark}\n{DAEMONS}\nwhile True: pass"))
    await asyncio.to_thread(eventually, lambda: carriers(mark), "the tree")
    waiting.cancel()
    await asyncio.gather(waiting, return_exceptions=True)
    await gone(mark)


# ------------------------------------------------------------------ limits of the whole tree


@needs_box
async def test_output_without_end_is_cut_and_costs_no_memory() -> None:
    before = resident()
    ended = await python("import sys\nprint('start')\nline = 'y' * 65536\nfor _ in range(80_000): sys.stdout.write(line)", output_bytes=64 * 1024)
    after = resident()
    assert (ended.why, ended.is_cut) == ("output", True)
    assert len(ended.stdout) <= 64 * 1024 + 100
    assert ended.stdout.startswith(b"start\n")
    assert b"bytes left out" in ended.stdout
    assert after - before < 50 * box.MB


@needs_box
async def test_output_so_far_comes_with_a_timeout() -> None:
    ended = await python("import time\nprint('start', flush=True)\ntime.sleep(1000)", wall_s=1)
    assert (ended.why, ended.stdout) == ("timeout", b"start\n")


@needs_box
async def test_a_fork_bomb_is_contained() -> None:
    mark = f"mark-{secrets.token_hex(8)}"
    ended = await python(f"# {mark}\nimport os\nwhile True:\n    try: os.fork()\n    except OSError: pass", processes=32)
    assert ended.why in ("processes", "memory")
    await gone(mark)


@needs_box
async def test_memory_is_counted_over_all_processes() -> None:
    each = (
        "import os, time\nfor _ in range(7):\n    if os.fork() == 0: break\n"
        "a = bytearray(40_000_000)\nfor i in range(0, len(a), 4096): a[i] = 1\ntime.sleep(1000)"
    )
    ended = await python(each, memory_mb=160)
    assert ended.why == "memory"
    alone = await python("a = bytearray(40_000_000)\nprint(len(a))", memory_mb=160)
    assert (alone.why, alone.exit_code) == ("", 0)


@needs_box
async def test_files_and_their_number_are_limited() -> None:
    many = await python("import itertools\nfor i in itertools.count(): open(f'f{i}', 'w').close()", disk_mb=16)
    assert many.why == "files"
    ten_thousand = await python("import os\nfor i in range(10_000): open(os.path.expanduser(f'~/{i}'), 'w').close()\nprint('fine')")
    assert (ten_thousand.why, ten_thousand.stdout) == ("", b"fine\n")


WRITES = {
    "a large sparse file": "f = open('big', 'wb')\nf.truncate(100 * 1024 ** 3)",
    "a large file": "f = open('big', 'wb')\nwhile True: f.write(b'x' * 1_000_000)",
    "many files": "import itertools, os\nfor i in itertools.count(): open(os.path.expanduser(f'~/f{i}'), 'wb').write(b'x' * 1_000_000)",
    "shared memory": "import itertools\nfor i in itertools.count(): open(f'/dev/shm/f{i}', 'wb').write(b'x' * 1_000_000)",
}


@needs_box
@pytest.mark.parametrize("code", WRITES.values(), ids=list(WRITES))
async def test_what_is_written_fits_its_folder(code: str) -> None:
    tried = code.replace("\n", "\n    ")
    ended = await python(
        f"import signal\nsignal.signal(signal.SIGXFSZ, signal.SIG_IGN)\ntry:\n    {tried}\nexcept OSError as e:\n    print('stopped', e.errno)", disk_mb=16
    )
    assert ended.stdout.startswith(b"stopped"), (ended.why, ended.stderr[-300:])


@needs_box
@pytest.mark.parametrize("path", ["/x", "/dev/x", "/usr/x", "/opt/kit/x", "/opt/python/x", "/etc/x", "/run/x", "/proc/x", "/opt/x"])
async def test_nothing_else_can_be_written(path: str) -> None:
    ended = await python(f"try:\n    open({path!r}, 'w').write('x')\nexcept OSError:\n    print('no')")
    assert ended.stdout == b"no\n"


SETTINGS = """
import os
found = []
for folder, _, names in os.walk("/proc/sys"):
    for name in names:
        try:
            os.close(os.open(f"{folder}/{name}", os.O_WRONLY))
            found.append(name)
        except OSError:
            pass
print(found)
"""


@needs_box
async def test_no_setting_of_the_kernel_can_be_opened_to_be_written() -> None:
    ended = await python(SETTINGS)
    assert ended.stdout == b"[]\n"


UNCOUNTED = {
    "a file in memory": "os.memfd_create('x')",
    "shared memory of System V": "libc.shmget(0, 4096, 0o1600)",
}


@needs_box
@pytest.mark.parametrize("call", UNCOUNTED.values(), ids=list(UNCOUNTED))
async def test_memory_that_no_process_shows_is_not_given(call: str) -> None:
    ended = await python(f"import ctypes, os\nlibc = ctypes.CDLL(None)\ntry:\n    print({call} >= 0)\nexcept OSError:\n    print(False)")
    assert ended.stdout == b"False\n", ended.stderr[-300:]


# ------------------------------------------------------------------ what it sees

LOOKS = {
    "no passwords": ("import os\nprint(os.path.exists('/etc/passwd') or os.path.exists('/etc/shadow'))", b"False\n"),
    "no home": ("import os\nprint(os.path.exists('/root') or os.path.exists('/home'))", b"False\n"),
    "no environment": ("import os\nprint(sorted(k for k in os.environ if k.startswith(('BENCH', 'DJANGO', 'DATABASE'))))", b"[]\n"),
    "no other process": ("import os\nprint(sum(p.isdigit() for p in os.listdir('/proc')) < 4)", b"True\n"),
    "no network but itself": ("import os\nprint(sorted(os.listdir('/sys/class/net')) if os.path.exists('/sys') else 'none')", b"none\n"),
    "nobody": ("import os\nprint(os.getuid(), os.getgid())", b"65534 65534\n"),
    "no metadata address": (
        "import socket\ntry:\n    socket.create_connection(('169.254.169.254', 80), 1)\n    print('there')\nexcept OSError:\n    print('away')",
        b"away\n",
    ),
    "no open files of ours": ("import os\nprint(sorted(os.listdir('/proc/self/fd')))", b"['0', '1', '2', '3']\n"),
}


@needs_box
@pytest.mark.parametrize(("code", "said"), LOOKS.values(), ids=list(LOOKS))
async def test_it_sees_nothing_of_the_host(code: str, said: bytes) -> None:
    ended = await python(code)
    assert ended.stdout == said, ended.stderr[-500:]


CALLS = {
    "ptrace": "libc.ptrace(16, 1, 0, 0)",
    "mount": "libc.mount(b'x', b'/tmp', b'tmpfs', 0, None)",
    "unshare": "libc.unshare(0x10000000)",
    "clone with a user namespace": "libc.syscall(NUMBER, 0x10000000 | 17, 0, 0, 0, 0)",
    "keyctl": "libc.syscall(KEYCTL, 0, -3, 0)",
}
NUMBERS = {"x86_64": (56, 250), "aarch64": (220, 219)}


@needs_box
@pytest.mark.skipif(platform.machine() not in NUMBERS, reason="the filter knows no such machine")
@pytest.mark.parametrize("call", CALLS.values(), ids=list(CALLS))
async def test_calls_that_nothing_needs_are_refused(call: str) -> None:
    clone, keyctl = NUMBERS[platform.machine()]
    call = call.replace("NUMBER", str(clone)).replace("KEYCTL", str(keyctl))
    ended = await python(f"import ctypes\nlibc = ctypes.CDLL(None, use_errno=True)\nfound = {call}\nprint(found, ctypes.get_errno())")
    assert ended.stdout == b"-1 1\n", ended.stderr[-300:]


ORDINARY = """
import multiprocessing, requests, sqlite3, subprocess, tempfile, threading
thread = threading.Thread(target=print, args=("thread",))
thread.start()
thread.join()
print(subprocess.run(["python3", "-c", "print(7)"], capture_output=True).stdout)
with multiprocessing.Pool(2) as pool:
    print(pool.map(abs, [-1]))
"""


@needs_box
async def test_ordinary_programs_run() -> None:
    ended = await python(ORDINARY)
    assert ended.stdout.split(b"\n")[:3] == [b"thread", b"b'7\\n'", b"[1]"], ended.stderr[-500:]


def test_the_filter_is_made_for_two_machines_and_no_third() -> None:
    assert seccomp.program("x86_64") != seccomp.program("aarch64")
    assert seccomp.program("riscv64") is None


@needs_box
@pytest.mark.parametrize("name", ["../x", "/x", "a/../../x", "", "a\0b"])
async def test_no_file_leads_out(name: str) -> None:
    with pytest.raises(ValueError, match="no name"):
        await python("", files={name: b""})


@needs_box
async def test_files_come_in_as_they_are() -> None:
    ended = await python("print(open('a/b.txt', 'rb').read())", files={"a/b.txt": b"\x00\xff"})
    assert ended.stdout == b"b'\\x00\\xff'\n"


@needs_box
async def test_what_no_text_is_comes_out_whole() -> None:
    ended = await python("import sys\nsys.stdout.buffer.write(b'\\xff\\xfe\\x00\\xed\\xa0\\x80')")
    assert ended.stdout == b"\xff\xfe\x00\xed\xa0\x80"


# ------------------------------------------------------------------ control groups


def delegated(root: Path, controllers: str = "cpu memory pids", enabled: str = "memory pids", own: str = "") -> tuple[Path, Path]:
    """A folder that looks like a group that was handed to us. Shape: the mount, and what /proc says of our own group."""
    group = root / "mount" / "service"
    (group / "server").mkdir(parents=True)
    for at in (group, group / "server"):
        (at / "cgroup.controllers").write_text(controllers)
        (at / "cgroup.subtree_control").write_text(enabled if at is group else "")
        (at / "cgroup.procs").write_text(own if at is group else "1\n")
    said = root / "own"
    said.write_text("0::/service/server\n")
    return root / "mount", said


def test_a_delegated_group_is_found_and_carries_the_limits(tmp_path: Path) -> None:
    mount, own = delegated(tmp_path)
    home = cgroup.found(mount, own)
    assert home == mount / "service"
    group = cgroup.made(1000, 7, home)
    assert group is not None
    assert ((group.path / "memory.max").read_text(), (group.path / "pids.max").read_text()) == ("1000", "7")
    assert group.broke() == ""
    (group.path / "memory.events").write_text("low 0\noom 1\noom_kill 2\n")
    assert group.broke() == "memory"
    group.end()
    assert (group.path / "cgroup.kill").read_text() == "1"


async def test_a_command_enters_its_group_before_it_becomes_itself(tmp_path: Path) -> None:
    group = cgroup.Group(tmp_path)
    process = await asyncio.create_subprocess_exec(*group.entered(["/bin/sh", "-c", 'cat "$0/cgroup.procs"; echo "$1"', str(tmp_path), "a b"]), stdout=-1)
    assert (await process.communicate())[0] == b"0\na b\n"


@pytest.mark.parametrize(
    "what",
    [{"controllers": "cpu"}, {"enabled": "", "own": "17\n"}, {"controllers": ""}],
    ids=["without what is needed", "with processes of its own", "empty"],
)
def test_a_group_that_is_not_ours_is_left_alone(tmp_path: Path, what: dict[str, str]) -> None:
    assert cgroup.found(*delegated(tmp_path, **what)) is None


def test_controllers_are_switched_on_where_they_may_be(tmp_path: Path) -> None:
    mount, own = delegated(tmp_path, enabled="")
    assert cgroup.found(mount, own) == mount / "service"
    assert (mount / "service" / "cgroup.subtree_control").read_text() == "+memory +pids"


@pytest.mark.parametrize("said", ["", "7:memory:/x\n", "0::/../../etc\n"])
def test_no_group_is_no_trouble(tmp_path: Path, said: str) -> None:
    (tmp_path / "own").write_text(said)
    assert cgroup.found(tmp_path, tmp_path / "own") is None
    assert cgroup.found(tmp_path, tmp_path / "missing") is None
