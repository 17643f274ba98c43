"""Starts a PostgreSQL and a Redis of its own in a temporary folder, runs a command with DATABASE_URL and REDIS_URL set, and ends both.

`python scripts/services.py COMMAND …`. Where the environment names them already, those are used. Exit code 75: no PostgreSQL is installed.
"""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from contextlib import ExitStack
from pathlib import Path

NOT_INSTALLED = 75
START_S = 30.0


def free_port() -> int:
    with socket.socket() as door:
        door.bind(("127.0.0.1", 0))
        return int(door.getsockname()[1])


def wait_for(port: int, name: str) -> None:
    end = time.monotonic() + START_S
    while time.monotonic() < end:
        with socket.socket() as caller:
            if caller.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.1)
    sys.exit(f"{name} did not start within {START_S:.0f} s.")


def installed(name: str) -> str | None:
    """A program on the path, or where Debian keeps PostgreSQL's."""
    if found := shutil.which(name):
        return found
    versions = sorted(Path("/usr/lib/postgresql").glob(f"*/bin/{name}"), key=lambda p: int(p.parts[-3]) if p.parts[-3].isdigit() else 0)
    return str(versions[-1]) if versions else None


def start_postgres(stack: ExitStack) -> str | None:
    initdb, server = installed("initdb"), installed("postgres")
    if initdb is None or server is None:
        return None
    folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="bench-pg-", ignore_cleanup_errors=True)))
    # PostgreSQL refuses to run as root.
    owner = "postgres" if os.geteuid() == 0 else None
    if owner:
        shutil.chown(folder, owner)
    data, port = folder / "data", free_port()
    subprocess.run(
        [initdb, "-D", str(data), "-A", "trust", "-U", "postgres", "-E", "UTF8", "--no-sync"], check=True, stdout=subprocess.DEVNULL, cwd=folder, user=owner
    )
    command = [
        server,
        "-D",
        str(data),
        "-k",
        str(folder),
        "-h",
        "127.0.0.1",
        "-p",
        str(port),
        # Several servers at once, each with two workers, a queue and a command line of its own: more than the 100 that a PostgreSQL takes as it comes.
        "-c",
        "max_connections=500",
        "-c",
        "fsync=off",
        "-c",
        "max_connections=200",
        "-c",
        "timezone=UTC",
    ]
    process = subprocess.Popen(command, cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True, user=owner)
    stack.callback(end, process, signal.SIGINT)
    wait_for(port, "PostgreSQL")
    return f"postgresql://postgres@127.0.0.1:{port}/postgres"


def start_redis(stack: ExitStack) -> str | None:
    server = installed("redis-server")
    if server is None:
        return None
    folder, port = stack.enter_context(tempfile.TemporaryDirectory(prefix="bench-redis-")), free_port()
    command = [server, "--port", str(port), "--bind", "127.0.0.1", "--save", "", "--appendonly", "no", "--dir", folder]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True)
    stack.callback(end, process, signal.SIGTERM)
    wait_for(port, "Redis")
    return f"redis://127.0.0.1:{port}/0"


def end(process: subprocess.Popen[bytes], number: signal.Signals) -> None:
    process.send_signal(number)
    try:
        process.wait(20)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def main() -> int:
    signal.signal(signal.SIGTERM, lambda number, frame: sys.exit(143))
    with ExitStack() as stack:
        environment = dict(os.environ)
        for name, start in (("DATABASE_URL", start_postgres), ("REDIS_URL", start_redis)):
            if not environment.get(name) and (url := start(stack)):
                environment[name] = url
        if not environment.get("DATABASE_URL"):
            return NOT_INSTALLED
        if not environment.get("REDIS_URL"):
            print("Redis is not installed: the queue's broker is the database in this run.")
        process = subprocess.Popen(sys.argv[1:], env=environment)
        try:
            return process.wait()
        finally:
            if process.poll() is None:
                end(process, signal.SIGTERM)


if __name__ == "__main__":
    sys.exit(main())
