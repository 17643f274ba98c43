"""Keeps the web server and the queue running, and the demo model while it is switched on: starts them, restarts what dies, reloads on SIGHUP, ends all in
order on SIGTERM.

One thread and one loop. Each child leads a process session of its own, and its whole group has ended before another is started: django-q2's workers
outlive a killed parent, and two queues would do the work twice.
"""

from __future__ import annotations

import os
import select
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from benchwarmers import doors, processes

TICK_S = 0.25
END_DEAD_GROUP_S = 10.0  # for what is left of a group whose leader died
FIRST_RESTART_S = 0.5
LONGEST_RESTART_S = 30.0
SETTLED_AFTER_S = 60.0
HURRY_S = 3.0
REPEAT_S = 1.0


@dataclass(slots=True)
class Child:
    """One kind of child process and its present instance.

    Shape: `whole_group` is whether a stop is told to the group or to its leader alone; `keep` are descriptors it inherits; `switch` tells whether
    it is wanted just now, None where it always is.
    Units: `grace_s` seconds from a stop until what is left is killed.
    """

    name: str
    command: list[str]
    environment: Mapping[str, str]
    folder: str
    grace_s: float
    whole_group: bool
    keep: tuple[int, ...] = ()
    switch: Callable[[], bool] | None = None
    wanted: bool = True
    process: subprocess.Popen[bytes] | None = None
    died_at: float | None = None
    kill_at: float | None = None
    told_at: float = 0.0
    started_at: float = 0.0
    start_at: float = 0.0
    failures: int = field(default=0)

    @property
    def is_running(self) -> bool:
        return self.process is not None and self.died_at is None

    def start(self, now: float) -> None:
        self.process = subprocess.Popen(  # noqa: S603
            self.command,
            env=dict(self.environment),
            cwd=self.folder,
            stdin=subprocess.DEVNULL,
            pass_fds=self.keep,
            start_new_session=True,
            preexec_fn=processes.before_exec(signal.SIGTERM),
        )
        self.died_at, self.kill_at, self.started_at = None, None, now

    def end(self, now: float, grace_s: float) -> None:
        """Asks it to end; what is left after the grace is killed."""
        if self.process is None:
            return
        self.tell(now)
        self.kill_at = now + grace_s if self.kill_at is None else min(self.kill_at, now + grace_s)

    def tell(self, now: float) -> None:
        assert self.process is not None
        self.told_at = now
        if self.whole_group or self.died_at is not None:
            processes.signal_group(self.process.pid, signal.SIGTERM)
        else:
            self.signal(signal.SIGTERM)

    def signal(self, number: signal.Signals) -> None:
        """Signals the leader alone. Not by Popen's own method: that looks whether the child has ended, and takes an exit that `reap` must see."""
        if self.is_running and self.process is not None:
            processes.signal_one(self.process.pid, number)

    def told_dead(self, now: float, status: int) -> None:
        assert self.process is not None
        self.process.returncode = os.waitstatus_to_exitcode(status)
        self.died_at = now
        if self.kill_at is not None:
            self.kill_at = min(self.kill_at, now + END_DEAD_GROUP_S)


@dataclass(frozen=True, slots=True)
class Hooks:
    """Shape: `say` speaks to a person; `ready` runs once the web server first answers; `stopping` before anything is ended;
    `reason_against` tells why a reload must not be, or None.
    """

    say: Callable[[str], None]
    ready: Callable[[], None]
    stopping: Callable[[], None]
    reason_against: Callable[[], str | None]


class Supervisor:
    """Runs the children behind one door."""

    def __init__(self, door: socket.socket, web: Child, queue: Child | None, hooks: Hooks, demo: Child | None = None) -> None:
        self.door, self.web, self.queue, self.demo, self.hooks = door, web, queue, demo, hooks
        self.say = hooks.say
        self.address = doors.local_address(door)
        self.signals: list[int] = []
        self.knocking: socket.socket | None = None
        self.has_been_ready = False
        self.is_stopping = False
        self.failed = False
        self.had_terminal = signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN and has_terminal()

    @property
    def children(self) -> list[Child]:
        return [child for child in (self.web, self.queue, self.demo) if child is not None]

    def run(self) -> int:
        """Runs until told to stop. Shape: the exit code."""
        processes.adopt_orphans()
        woken, wake = os.pipe()
        os.set_blocking(woken, False)
        os.set_blocking(wake, False)
        signal.set_wakeup_fd(wake, warn_on_full_buffer=False)
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            signal.signal(number, lambda got, frame: self.signals.append(got))
        signal.signal(signal.SIGCHLD, lambda got, frame: None)
        self.door.listen(doors.BACKLOG)
        while True:
            now = time.monotonic()
            self.reap(now)
            self.obey(now)
            for child in self.children:
                self.heed_switch(child, now)
                self.tend(child, now)
            if self.is_stopping and self.web.process is None:
                for child in self.children:
                    if child.wanted:
                        child.wanted = False
                        child.end(now, child.grace_s)
            if self.is_stopping and all(c.process is None for c in self.children):
                return 1 if self.failed else 0
            waiting: list[int | socket.socket] = [woken, *([self.knocking] if self.knocking else [])]
            readable, _, _ = select.select(waiting, [], [], TICK_S)
            if woken in readable:
                os.read(woken, 4096)
            if self.knocking in readable:
                self.hear()

    def reap(self, now: float) -> None:
        """Takes the exit of every child, and of orphans that became ours."""
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return
            if pid == 0:
                return
            for child in self.children:
                if child.process is not None and child.process.pid == pid:
                    child.told_dead(now, status)

    def obey(self, now: float) -> None:
        """Does what the signals that came in ask for."""
        signals, self.signals = self.signals, []
        for number in signals:
            if number == signal.SIGHUP and not (self.had_terminal and not has_terminal()):
                self.reload(now)
            elif not self.is_stopping:
                self.stop(now)
            else:
                self.hurry(now)

    def stop(self, now: float) -> None:
        """Begins the end: no longer ready, then the web server, and the queue after it."""
        self.is_stopping = True
        self.say("Stopping; open streams may finish. Once more to stop at once.")
        self.hooks.stopping()
        self.forget_knock()
        self.door.close()  # workers with open streams hold it on, and say that they stop
        self.web.wanted = False
        self.web.end(now, self.web.grace_s)

    def hurry(self, now: float) -> None:
        """Ends open streams too."""
        for child in self.children:
            child.wanted = False
            if child.process is not None:
                processes.signal_group(child.process.pid, signal.SIGQUIT if child is self.web else signal.SIGTERM)
                child.kill_at = min(child.kill_at or now + HURRY_S, now + HURRY_S)

    def reload(self, now: float) -> None:
        """Takes up new code and settings: new workers, then the old ones end; the queue is restarted. Not where the new code would not start."""
        if self.is_stopping:
            return
        if reason := self.hooks.reason_against():
            self.say(f"Not reloaded, the old code goes on: {reason}")
            return
        self.say("Reloading.")
        self.web.signal(signal.SIGHUP)
        if self.queue and self.queue.is_running:
            self.queue.failures = 0
            self.queue.end(now, self.queue.grace_s)

    def heed_switch(self, child: Child, now: float) -> None:
        """Ends what was switched off; what was switched on is started as any other child."""
        if child.switch is None or self.is_stopping:
            return
        was, child.wanted = child.wanted, child.switch()
        if child.wanted and not was:
            child.failures, child.start_at = 0, now
        elif not child.wanted and child.is_running and child.kill_at is None:
            child.end(now, child.grace_s)

    def tend(self, child: Child, now: float) -> None:
        """Moves one child on: starts it, notices its death, ends what it left."""
        if child.process is None:
            if child.wanted and now >= child.start_at:
                child.start(now)
                if child is self.web:
                    self.knock()
            return
        if child.died_at is not None and child.kill_at is None:
            self.mourn(child, now)
        if child.kill_at is not None and not (child.is_running or processes.group_is_alive(child.process.pid)):
            self.bury(child, now)
        elif child.kill_at is not None and now > child.kill_at:
            processes.signal_group(child.process.pid, signal.SIGKILL)
        elif child.kill_at is not None and child.whole_group and now - child.told_at > REPEAT_S:
            child.tell(now)  # a web process that was just starting has not heard it: gunicorn forgets signals until its handlers are in place

    def mourn(self, child: Child, now: float) -> None:
        """Takes note of a death that nobody asked for."""
        assert child.process is not None
        if not child.wanted:  # it ended by itself what was switched off
            child.end(now, END_DEAD_GROUP_S)
            return
        if child is self.web and not self.has_been_ready:
            self.say("The web server did not start; the lines above say why.")
            self.failed = True
            if not self.is_stopping:
                self.stop(now)
            return
        child.failures = 0 if now - child.started_at > SETTLED_AFTER_S else child.failures + 1
        self.say(f"The {child.name} ended unasked ({ended_how(child.process.returncode)}); starting it again.")
        child.end(now, END_DEAD_GROUP_S)

    def bury(self, child: Child, now: float) -> None:
        """Forgets an instance of which no process is left."""
        child.process, child.kill_at = None, None
        child.start_at = now + (min(LONGEST_RESTART_S, FIRST_RESTART_S * 2 ** (child.failures - 1)) if child.failures else 0)
        if child is self.web:
            self.forget_knock()

    # ---------------------------------------------------------------- is the web server there yet?

    def knock(self) -> None:
        self.forget_knock()
        try:
            self.knocking = doors.knock(*self.address)
        except OSError as error:
            self.say(f"The server cannot reach itself at {self.address[0]}: {error}.")

    def hear(self) -> None:
        assert self.knocking is not None
        try:
            answer = self.knocking.recv(64)
        except OSError:
            answer = b""
        if answer.startswith(b"HTTP/1.1 200"):
            self.forget_knock()
            if not self.has_been_ready:
                self.has_been_ready = True
                self.hooks.ready()
        elif self.web.is_running and not self.is_stopping:
            time.sleep(TICK_S)
            self.knock()
        else:
            self.forget_knock()

    def forget_knock(self) -> None:
        if self.knocking:
            self.knocking.close()
            self.knocking = None


def ended_how(code: int | None) -> str:
    """Says an exit code in words."""
    if code is not None and code < 0:
        return f"by {signal.Signals(-code).name}"
    return f"exit code {code}"


def has_terminal() -> bool:
    """Tells whether the terminal this was started from is still there."""
    try:
        os.close(os.open("/dev/tty", os.O_RDWR | os.O_NOCTTY))
    except OSError:
        return False
    return True


def web_command(door: socket.socket, home: str, workers: int, graceful_timeout_s: int, trusted: str) -> list[str]:
    """gunicorn's command line. Everything is said here: no setting may be imported by its master, which a reload does not start anew."""
    options = {
        "bind": f"fd://{door.fileno()}",
        "worker-class": "benchwarmers.worker.Worker",
        "asgi-lifespan": "on",
        "logger-class": "benchwarmers.server_logs.ServerLogger",
        "log-level": "warning",
        "workers": workers,
        "backlog": doors.BACKLOG,
        "worker-connections": 4000,
        "timeout": 60,
        "keep-alive": 30,
        "graceful-timeout": graceful_timeout_s + processes.CLOSING_S,
        "limit-request-line": 8190,
        "forwarded-allow-ips": trusted,
        "env": f"BENCH_SERVER_HOME={home}",
    }
    return [
        sys.executable,
        "-m",
        "gunicorn",
        "--no-control-socket",
        *(["--worker-tmp-dir=/dev/shm"] if os.access("/dev/shm", os.W_OK) else []),  # noqa: S108 - heartbeats do not belong on a disk
        *(f"--{name}={value}" for name, value in options.items()),
        "benchwarmers.asgi:application",
    ]


def queue_command(manage: str) -> list[str]:
    return [sys.executable, manage, "queue"]


def demo_command(manage: str) -> list[str]:
    return [sys.executable, manage, "demo"]
