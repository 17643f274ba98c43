"""A server's life: found, stopped, killed, reloaded. Each process of it, and what clients see meanwhile."""

from __future__ import annotations

import json
import os
import signal
import socket
import stat
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.benchwarmers.deployment import Deployment
from tests.fake import FakeProvider, reply
from tests.live import CHECKOUT, Bench, Live, eventually


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Live]:
    """A server of this file's own: its tests kill parts of it, and leave it whole."""
    server = Live(tmp_path_factory.mktemp("served"), BENCH_WORKERS="1")
    try:
        server.start()
        yield server
    finally:
        server.stop()


def processes(server: Live) -> dict[int, tuple[int, str]]:
    """All processes under `serve`: parent and command by id."""
    listed = subprocess.run(["ps", "-A", "-ww", "-o", "pid=,ppid=,stat=,command="], capture_output=True, text=True, check=True).stdout
    every = {}
    for line in listed.splitlines():
        pid, parent, state, command = line.split(None, 3)
        if not state.startswith("Z"):
            every[int(pid)] = (int(parent), command)
    found: dict[int, tuple[int, str]] = {}
    queue = [server.pid]
    while queue:
        parent = queue.pop()
        for pid, (its_parent, command) in every.items():
            if its_parent == parent and pid not in found:
                found[pid] = (its_parent, command)
                queue.append(pid)
    return found


def child(server: Live, what: str) -> int:
    return eventually(lambda: next((pid for pid, (parent, command) in processes(server).items() if parent == server.pid and what in command), None), what)


def are_gone(pids: list[int]) -> bool:
    running = subprocess.run(["ps", "-A", "-ww", "-o", "pid=,stat="], capture_output=True, text=True, check=True).stdout
    alive = {int(line.split()[0]) for line in running.splitlines() if not line.split()[1].startswith("Z")}
    return not alive & set(pids)


def told(server: Live) -> dict[str, object]:
    found: dict[str, object] = json.loads((server.home / "server.json").read_text())
    return found


def is_ready(server: Live) -> bool:
    return server.send("GET", "/readyz").status == 200


# ------------------------------------------------------------------ while it runs


def test_server_json_says_where_it_is_to_its_owner_alone(served: Live) -> None:
    eventually(lambda: (served.home / "server.json").exists(), "server.json")
    assert told(served) == {"url": served.url, "pid": served.pid, "version": told(served)["version"], "stopping": False}
    assert stat.S_IMODE((served.home / "server.json").stat().st_mode) == 0o600


def test_a_second_server_on_the_folder_is_told_of_the_first(served: Live) -> None:
    second = subprocess.run(
        [sys.executable, "manage.py", "serve", "--port", "0"], cwd=CHECKOUT, env=served.environment, capture_output=True, text=True, timeout=60, check=False
    )
    assert second.returncode != 0
    assert f"process {served.pid}" in second.stderr
    assert "Traceback" not in second.stderr
    assert served.is_alive()


def test_a_restore_waits_for_the_server_to_be_stopped(served: Live) -> None:
    backup = served.folder / "beside.tar.gz"
    run = [sys.executable, "manage.py"]
    made = subprocess.run([*run, "backup", str(backup)], cwd=CHECKOUT, env=served.environment, capture_output=True, text=True, timeout=60, check=False)
    assert made.returncode == 0, made.stderr
    refused = subprocess.run([*run, "restore", str(backup)], cwd=CHECKOUT, env=served.environment, capture_output=True, text=True, timeout=60, check=False)
    assert refused.returncode != 0
    assert f"process {served.pid}" in refused.stderr


def test_it_becomes_ready_once_a_queue_worker_has_rung(served: Live) -> None:
    eventually(lambda: is_ready(served), "readiness")
    checks = served.send("GET", "/readyz").json["checks"]
    assert set(checks) == {"server", "database", "migrations", "outbox", "queue"}
    assert all(check["ok"] for check in checks.values())


def test_metrics_are_for_this_machine_and_for_operators(served: Live, fake: FakeProvider) -> None:
    bench = Bench(served, fake)
    fast = bench.model("fast", reply("hi", usage=(10, 5)))
    assert bench.ask(fast).status == 200
    served.attempts(1, model=fast)
    assert served.send("GET", "/livez").json == {"status": "ok"}
    local = served.send("GET", "/metrics")
    assert local.status == 200
    assert local.headers["content-type"].startswith("text/plain")
    assert "bench_queue_workers 1" in local.text
    forwarded = {"x-forwarded-for": "192.0.2.7"}
    assert served.send("GET", "/metrics", headers=forwarded).status == 401
    asker = bench.key()
    assert served.send("GET", "/metrics", key=asker, headers=forwarded).status == 403
    figures = served.send("GET", "/metrics", key=served.operator_key, headers={**forwarded, "accept": "application/openmetrics-text"}).text
    eventually(lambda: f'model="{fast}",status="ok"}} 1' in served.send("GET", "/metrics").text, "the call in the metrics")
    assert "bw_live" not in figures


# ------------------------------------------------------------------ what dies comes back


def test_a_killed_web_server_comes_back_and_refuses_nobody_meanwhile(served: Live) -> None:
    before = child(served, "gunicorn")
    members = [pid for pid in processes(served) if os.getpgid(pid) == before]
    os.kill(before, signal.SIGKILL)
    assert served.send("GET", "/livez").status == 200
    assert eventually(lambda: (now := child(served, "gunicorn")) != before and now, "another web server")
    eventually(lambda: are_gone(members), "the end of the old one's processes")


def test_a_killed_web_process_comes_back(served: Live) -> None:
    master = child(served, "gunicorn")
    worker = eventually(lambda: next((pid for pid, (parent, _) in processes(served).items() if parent == master), None), "a web process")
    os.kill(worker, signal.SIGKILL)
    assert served.send("GET", "/livez").status == 200


@pytest.mark.parametrize("who", ["the parent", "its sentinel"])
def test_a_killed_queue_comes_back_whole_and_once(served: Live, who: str) -> None:
    before = child(served, "manage.py queue")
    members = eventually(lambda: found if len(found := [pid for pid in processes(served) if os.getpgid(pid) == before]) >= 5 else None, "the queue's processes")
    sentinel = next(pid for pid, (parent, _) in processes(served).items() if parent == before)
    os.kill(before if who == "the parent" else sentinel, signal.SIGKILL)
    eventually(lambda: are_gone(members), "the end of the old queue's processes")
    assert eventually(lambda: (now := child(served, "manage.py queue")) != before and now, "another queue")
    eventually(lambda: is_ready(served), "readiness")


# ------------------------------------------------------------------ reload


def test_a_reload_refuses_nobody_and_brings_new_processes(served: Live, fake: FakeProvider) -> None:
    bench = Bench(served, fake)
    gate = fake.gate()
    slow = bench.model("slow", reply(["first ", "second"]).holding(gate, after="first "))
    bench.load()
    old = set(processes(served))
    over, statuses, refused = threading.Event(), set(), []

    def call() -> None:
        while not over.is_set():
            try:
                statuses.add(served.send("GET", "/livez").status)
            except OSError as error:
                refused.append(repr(error))

    callers = [threading.Thread(target=call) for _ in range(2)]
    with bench.stream(slow) as stream:
        stream.until("first ")
        for caller in callers:
            caller.start()
        try:
            os.kill(served.pid, signal.SIGHUP)
            eventually(lambda: "Reloading." in served.log_text(), "the reload")
            master = child(served, "gunicorn")
            eventually(lambda: any(parent == master and pid not in old for pid, (parent, _) in processes(served).items()), "a new web process")
            gate.open()
            assert stream.events()[-1] == "[DONE]"
            eventually(lambda: not {pid for pid in set(processes(served)) & old if pid != master}, "the end of the old processes")
        finally:
            over.set()
            for caller in callers:
                caller.join()
    assert not refused
    assert statuses == {200}


# ------------------------------------------------------------------ the end


def test_a_stop_lets_streams_finish_closes_idle_connections_and_is_not_ready_meanwhile(tmp_path: Path, fake: FakeProvider) -> None:
    server = Live(tmp_path, BENCH_WORKERS="1")
    try:
        server.start()
        bench = Bench(server, fake)
        gate = fake.gate()
        slow = bench.model("slow", reply(["first ", "second"]).holding(gate, after="first "))
        eventually(lambda: (server.home / "server.json").exists(), "server.json")
        silent = socket.create_connection((server.host, server.port))
        kept = socket.create_connection((server.host, server.port))
        kept.sendall(b"GET /livez HTTP/1.1\r\nHost: localhost\r\n\r\n")
        kept.recv(4096)
        with bench.stream(slow) as stream:
            stream.until("first ")
            os.kill(server.pid, signal.SIGTERM)
            eventually(lambda: told(server)["stopping"], "the stop")
            unready = server.send("GET", "/readyz")
            assert (unready.status, unready.json["checks"]["server"]["detail"]) == (503, "stopping")
            gate.open()
            assert stream.events()[-1] == "[DONE]"
        assert server._server.wait(60) == 0
        assert "Forcing close" not in server.log_text(), "it waited for idle connections until it had to cut them"
        silent.close()
        kept.close()
        assert not (server.home / "server.json").exists()
        assert not processes(server)
    finally:
        assert not server.stop()


def test_a_stop_is_heard_by_web_processes_that_are_still_starting(deployment: Deployment) -> None:
    # Without a repeat, a process that was starting would not know, and be waited for until streams are cut.
    environment = deployment.ready().environment(BENCH_WORKERS="3", BENCH_GRACEFUL_TIMEOUT_S="300")
    log = deployment.folder / "log"
    with log.open("wb") as file:
        command = [sys.executable, "manage.py", "serve", "--no-browser"]
        serve = subprocess.Popen(command, cwd=CHECKOUT, env=environment, stdin=subprocess.DEVNULL, stdout=file, stderr=file, start_new_session=True)
    eventually(lambda: "gunicorn" in commands_under(serve.pid), "the web server")
    serve.send_signal(signal.SIGTERM)
    assert serve.wait(60) == 0, log.read_text()
    assert not commands_under(serve.pid)


def commands_under(parent: int) -> str:
    listed = subprocess.run(["ps", "-A", "-ww", "-o", "ppid=,command="], capture_output=True, text=True, check=True).stdout
    return "\n".join(line for line in listed.splitlines() if line.split(None, 1)[0] == str(parent))


def test_a_killed_serve_leaves_no_process_and_its_folder_free(tmp_path: Path) -> None:
    server = Live(tmp_path, BENCH_WORKERS="1")
    try:
        server.start()
        members = eventually(lambda: found if len(found := list(processes(server))) >= 7 else None, "all processes")
        os.kill(server.pid, signal.SIGKILL)
        server._server.wait(30)
        eventually(lambda: are_gone(members), "the end of all processes")
        server.launch()
        assert server.is_alive()
    finally:
        assert not server.stop()


def test_the_gateway_alone_has_no_pages_and_no_queue(tmp_path: Path) -> None:
    server = Live(tmp_path, BENCH_WORKERS="1", BENCH_ONLY="gateway")
    try:
        server.start()
        assert server.send("GET", "/v1/models").status == 200
        assert server.send("GET", "/admin/").status == 404
        ready = server.send("GET", "/readyz")
        assert ready.status == 200
        assert "queue" not in ready.json["checks"]
        assert not [command for _, command in processes(server).values() if "manage.py queue" in command]
    finally:
        assert not server.stop()


def test_a_web_server_that_cannot_start_ends_serve(deployment: Deployment) -> None:
    broken = deployment.folder / "broken"
    broken.mkdir()
    (broken / "sitecustomize.py").write_text("import sys\nsys.modules['django.core.asgi'] = None\n")
    done = deployment.ready().manage("serve", "--no-browser", PYTHONPATH=str(broken))
    assert done.code != 0
    assert "did not start" in done.said
    assert not (deployment.home / "server.json").exists()
