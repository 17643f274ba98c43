"""One command in one sandbox, by bubblewrap: its files in a memory of its own, the system read-only, no network, limits for all of its processes together.

files, command ─▶ bwrap (namespaces, seccomp) ─▶ output with a cap, exit code, what ended it
                      └── a watcher looks at memory and processes of the whole tree, and at the time
"""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cache
from importlib.util import find_spec
from pathlib import Path, PurePosixPath

from suite.sandbox import cgroup, seccomp, watcher

KIT = Path(__file__).parent / "kit"
MB = 1024 * 1024
LOOK_S = 0.05
PYTHON = "/opt/python/bin/python3"
FOLDER = "/box"
# What can be written, each a memory with a limit.
WRITABLE = ("/tmp", "/dev/shm", FOLDER)  # noqa: S108
MOST_FILES = 64
# What a scorer may import besides Python's own library.
OFFERED = ("requests", "urllib3", "idna", "charset_normalizer", "certifi")
NOBODY = "65534"


class SandboxUnavailable(Exception):
    """There is no sandbox on this machine. The message says what to do."""

    code = "sandbox_unavailable"


@dataclass(frozen=True, slots=True)
class Limits:
    """Units: `wall_s` and `cpu_s` seconds; the rest by name. `output_bytes` is what is kept of each stream; far more ends the command."""

    wall_s: float = 30.0
    cpu_s: int = 30
    memory_mb: int = 512
    disk_mb: int = 64
    processes: int = 64
    files: int = 20_000
    output_bytes: int = 256 * 1024


@dataclass(slots=True)
class Ended:
    """How a command ended. Shape: `why` is "" for by itself, else timeout, memory, processes, files or output; `exit_code` is negative for a signal."""

    exit_code: int
    stdout: bytes
    stderr: bytes
    why: str
    wall_s: float
    peak: watcher.Used
    is_cut: bool = False
    results: bytes = b""


@dataclass(slots=True)
class Stream:
    """Keeps a stream's beginning and end, and counts the rest."""

    most: int
    head: bytearray = field(default_factory=bytearray)
    tail: bytearray = field(default_factory=bytearray)
    total: int = 0

    def add(self, data: bytes) -> None:
        self.total += len(data)
        room = self.most // 2 - len(self.head)
        if room > 0:
            self.head += data[:room]
            data = data[room:]
        if data:
            self.tail += data
            if len(self.tail) > self.most:  # cut now and then, not at each piece
                del self.tail[: len(self.tail) - self.most // 2]

    def kept(self) -> tuple[bytes, bool]:
        tail = bytes(self.tail[-(self.most // 2) :]) if self.tail else b""
        left_out = self.total - len(self.head) - len(tail)
        return (bytes(self.head) + (f"\n[... {left_out} bytes left out ...]\n".encode() if left_out else b"") + tail, left_out > 0)


@cache
def trouble() -> str:
    """Says why there can be no sandbox here, "" where there can. Tried once a process."""
    if not sys.platform.startswith("linux"):
        return "Sandboxes need Linux. Run the suite's worker in a container, or leave out code kinds."
    bwrap = shutil.which("bwrap")
    if bwrap is None:
        return "bubblewrap is not installed. On Debian and Ubuntu: sudo apt-get install bubblewrap"
    if shutil.which("prlimit") is None:
        return "prlimit is not installed. On Debian and Ubuntu: sudo apt-get install util-linux"
    try:
        tried = subprocess.run(  # noqa: S603
            [bwrap, *namespaces(), "--ro-bind", "/usr", "/usr", *links(), "--proc", "/proc", "/usr/bin/env"], capture_output=True, timeout=20, check=False
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return f"bubblewrap cannot be started ({type(error).__name__})."
    if tried.returncode:
        said = tried.stderr.decode(errors="replace").strip()[:200]
        return f"bubblewrap may not make namespaces here ({said}). In containers its seccomp profile must allow it; see docs/SUITE.md."
    return ""


def offered() -> dict[str, str]:
    """Names what the sandbox offers, by version: a part of what an impl's results depend on."""
    from importlib.metadata import version

    return {"python": ".".join(str(part) for part in sys.version_info[:3]), "requests": version("requests")}


def namespaces() -> list[str]:
    return [
        "--unshare-all",
        "--unshare-user",
        "--die-with-parent",
        "--new-session",
        "--clearenv",
        "--uid",
        NOBODY,
        "--gid",
        NOBODY,
        "--cap-drop",
        "ALL",
        "--hostname",
        "box",
    ]


@cache
def links() -> tuple[str, ...]:
    """The system's top folders as this system has them: links into /usr, or folders of their own."""
    found: list[str] = []
    for name in ("bin", "sbin", "lib", "lib64", "lib32"):
        path = Path("/") / name
        if path.is_symlink():
            found += ["--symlink", f"usr/{name}", f"/{name}"]
        elif path.is_dir():
            found += ["--ro-bind", f"/{name}", f"/{name}"]
    return tuple(found)


@cache
def libraries() -> dict[str, str]:
    """Tells where Python's own shared library lies inside. It is looked for at its place outside, which is not there, and then the system's is taken."""
    return {"LD_LIBRARY_PATH": "/opt/python/lib"} if any((Path(sys.base_prefix) / "lib").glob("libpython*.so*")) else {}


@cache
def python_binds() -> tuple[str, ...]:
    """Brings this server's Python in, and of its packages those that are offered: none of its own code, and no settings."""
    found = ["--ro-bind", sys.base_prefix, "/opt/python"]
    if not (Path(sys.base_prefix) / "bin" / "python3").exists():
        raise SandboxUnavailable(f"Python's own folder {sys.base_prefix} holds no bin/python3.")
    for name in OFFERED:
        spec = find_spec(name)
        if spec is None or not spec.submodule_search_locations:
            raise SandboxUnavailable(f"The package {name} is missing from this server's Python.")
        found += ["--ro-bind", spec.submodule_search_locations[0], f"/opt/site/{name}"]
    return tuple(found)


def command_line(
    command: Sequence[str],
    limits: Limits,
    files: Mapping[str, int],
    filter_fd: int | None,
    env: Mapping[str, str],
    sockets: Mapping[str, Path],
    folders: Mapping[str, Path],
) -> list[str]:
    """Writes the whole command: limits of each process, namespaces, mounts, then what is to be run."""
    memory = limits.memory_mb * MB
    line = [
        "prlimit",
        f"--cpu={limits.cpu_s}:{limits.cpu_s + 1}",
        f"--fsize={limits.disk_mb * MB}",
        # Address space is not memory: interpreters reserve much more than they use. The watcher counts what is used.
        f"--as={max(4 * memory, 1024 * MB)}",
        "--nofile=256",
        "--core=0",
        "--",
        str(shutil.which("bwrap")),
        *namespaces(),
        "--ro-bind",
        "/usr",
        "/usr",
        *links(),
        *python_binds(),
        "--ro-bind",
        str(KIT),
        "/opt/kit",
        "--proc",
        "/proc",
        "--dev",
        "/dev",
    ]
    for folder in WRITABLE:
        line += ["--size", str(limits.disk_mb * MB), "--tmpfs", folder]
    line += ["--chdir", FOLDER]
    for name, descriptor in files.items():
        for parent in reversed(PurePosixPath(name).parents[:-1]):
            line += ["--dir", f"{FOLDER}/{parent}"]
        line += ["--perms", "0644", "--file", str(descriptor), f"{FOLDER}/{name}"]
    for inside, outside in sockets.items():
        line += ["--bind", str(outside), inside]
    for inside, outside in folders.items():
        line += ["--ro-bind", str(outside), inside]
    for name, value in {
        "PATH": "/opt/python/bin:/usr/bin:/bin",
        "HOME": "/tmp",  # noqa: S108
        "LANG": "C.UTF-8",
        "PYTHONPATH": "/opt/kit:/opt/site",
        "PYTHONDONTWRITEBYTECODE": "1",
        "PYTHONHASHSEED": "0",
        **libraries(),
        **env,
    }.items():
        line += ["--setenv", name, value]
    # The rest is a memory without a limit of its own: the root that bubblewrap makes, and /dev.
    # Below /proc/sys the kernel asks for the user alone, who outside is this server's: where that is root, what a core is piped to could be set from inside.
    line += ["--remount-ro", "/proc", "--remount-ro", "/dev", "--remount-ro", "/"]
    if filter_fd is not None:
        line += ["--seccomp", str(filter_fd)]
    # Counted in this sandbox's own user namespace, once that is there. The kernel exempts root; then the watcher alone counts.
    return [*line, "--", "prlimit", f"--nproc={limits.processes}", "--", *command]


def checked(files: Mapping[str, bytes]) -> Mapping[str, bytes]:
    """Looks at the names of files that go in. Errors: ValueError for one that leads out, or too many."""
    if len(files) > MOST_FILES:
        raise ValueError(f"{len(files)} files are more than the {MOST_FILES} that go into a sandbox.")
    for name in files:
        if not name or name.startswith("/") or ".." in PurePosixPath(name).parts or "\0" in name:
            raise ValueError(f"{name[:80]} is no name of a file in the sandbox.")
    return files


def memory_file(name: str, content: bytes) -> int:
    """Gives a descriptor to read content from, which no other process can find."""
    descriptor = os.memfd_create(name, 0)
    view = memoryview(content)
    while view:
        view = view[os.write(descriptor, view) :]
    os.lseek(descriptor, 0, os.SEEK_SET)
    return descriptor


async def run(
    command: Sequence[str],
    files: Mapping[str, bytes] | None = None,
    limits: Limits | None = None,
    *,
    env: Mapping[str, str] | None = None,
    sockets: Mapping[str, Path] | None = None,
    folders: Mapping[str, Path] | None = None,
    stdin: bytes | None = None,
    given_fds: Sequence[int] = (),
    with_results: bool = False,
) -> Ended:
    """Runs one command and waits until nothing of it is left.

    Shape: `files` stand in the working folder, writable; `sockets` are unix sockets of the host by the path that they have inside, `folders`
    folders of the host that can be read there. With `with_results` a descriptor is handed in whose number stands in BENCH_RESULTS, and what is written
    to it comes back apart from the output. `given_fds` go in under their numbers and are closed here, whatever happens.
    Errors: SandboxUnavailable.
    """
    mine: list[int] = list(given_fds)
    if found := trouble():
        for descriptor in mine:
            os.close(descriptor)
        raise SandboxUnavailable(found)
    limits = limits or Limits()
    environment = dict(env or {})
    group = cgroup.made(limits.memory_mb * MB, limits.processes + 4)  # prlimit, bubblewrap and its first process besides
    results: asyncio.Task[bytes] | None = None
    read_end = -1
    process: asyncio.subprocess.Process | None = None
    began = time.monotonic()
    try:
        filter_program = seccomp.program()
        filter_fd = memory_file("filter", filter_program) if filter_program else None
        if filter_fd is not None:
            mine.append(filter_fd)
        inside: dict[str, int] = {}
        for name, content in checked(files or {}).items():
            inside[name] = memory_file("file", content)
            mine.append(inside[name])
        if with_results:
            read_end, write_end = os.pipe()
            mine.append(write_end)
            environment["BENCH_RESULTS"] = str(write_end)
        line = command_line(command, limits, inside, filter_fd, environment, sockets or {}, folders or {})
        process = await asyncio.create_subprocess_exec(
            *(group.entered(line) if group is not None else line),
            stdin=subprocess.PIPE if stdin is not None else subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            pass_fds=mine,
            start_new_session=True,
            env={"PATH": os.defpath},
        )
    finally:
        for descriptor in mine:
            os.close(descriptor)
        if process is None:
            if read_end >= 0:
                os.close(read_end)
            if group is not None:
                group.remove()
    if with_results:
        results = asyncio.create_task(read_results(read_end, limits.output_bytes))
    out, err = Stream(limits.output_bytes), Stream(limits.output_bytes)
    pumps = [asyncio.create_task(pump(reader, stream)) for reader, stream in ((process.stdout, out), (process.stderr, err)) if reader is not None]
    if stdin is not None and process.stdin is not None:
        pumps.append(asyncio.create_task(feed(process.stdin, stdin)))
    why, peak = "", watcher.Used(0, 0)
    try:
        why, peak = await watched(process, limits, began, (out, err))
    finally:
        if group is not None:
            why = why or group.broke()
            group.end()
        await ended(process)
        if group is not None:
            group.remove()
        # A process that let go of the sandbox's namespace cannot be: what still holds the pipes goes with it.
        _, left = await asyncio.wait(pumps, timeout=5) if pumps else (set(), set())
        for task in left:
            task.cancel()
    stdout, cut_out = out.kept()
    stderr, cut_err = err.kept()
    said = b""
    if results is not None:
        try:
            said = await asyncio.wait_for(results, 5)
        except TimeoutError:
            said = b""
    return Ended(process.returncode if process.returncode is not None else -9, stdout, stderr, why, time.monotonic() - began, peak, cut_out or cut_err, said)


async def watched(process: asyncio.subprocess.Process, limits: Limits, began: float, streams: Sequence[Stream]) -> tuple[str, watcher.Used]:
    """Waits until the command has ended or broken a limit; says which."""
    namespace, first, peak = "", None, watcher.Used(0, 0)
    waiting = asyncio.create_task(process.wait())
    try:
        while True:
            left = began + limits.wall_s - time.monotonic()
            if left <= 0:
                return "timeout", peak
            done, _ = await asyncio.wait({waiting}, timeout=min(LOOK_S, left))
            if done:
                return "", peak
            if not namespace and (first := watcher.init_of(process.pid)) is not None:
                namespace = watcher.namespace_of(first)
            if namespace:
                now = replace(watcher.used(namespace), files=watcher.files(first or 0, WRITABLE))
                peak |= now
                if now.memory > limits.memory_mb * MB:
                    return "memory", peak
                if now.processes > limits.processes:
                    return "processes", peak
                if now.files > limits.files:
                    return "files", peak
            if sum(stream.total for stream in streams) > 256 * limits.output_bytes:
                return "output", peak
    finally:
        if not waiting.done():
            waiting.cancel()


async def ended(process: asyncio.subprocess.Process) -> None:
    """Ends what is left: the namespace's first process, with which the kernel ends every other in it, then bubblewrap itself."""
    if process.returncode is None:
        first = watcher.init_of(process.pid)
        for pid in (first, process.pid):
            if pid is not None:
                with suppress(ProcessLookupError, PermissionError):
                    os.kill(pid, signal.SIGKILL)
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, signal.SIGKILL)
    await process.wait()


async def pump(reader: asyncio.StreamReader, stream: Stream) -> None:
    while data := await reader.read(65536):
        stream.add(data)


async def feed(writer: asyncio.StreamWriter, data: bytes) -> None:
    with suppress(ConnectionError):
        writer.write(data)
        await writer.drain()
    with suppress(ConnectionError):
        writer.close()


async def read_results(descriptor: int, most: int) -> bytes:
    """Reads what comes on a pipe, to its end; more than fits is no result."""
    loop = asyncio.get_running_loop()
    reader = asyncio.StreamReader()
    file = os.fdopen(descriptor, "rb", buffering=0)
    transport, _ = await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), file)
    try:
        found = bytearray()
        while data := await reader.read(65536):
            found += data
            if len(found) > 64 * most:
                return b""
        return bytes(found)
    finally:
        transport.close()


def scratch() -> tempfile.TemporaryDirectory[str]:
    """Makes a folder for a sandbox's sockets, with a path short enough for one."""
    return tempfile.TemporaryDirectory(prefix="box-", dir="/tmp" if Path("/tmp").is_dir() else None)  # noqa: S108
