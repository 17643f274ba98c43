"""A reload under load: calls that cost money, on connections new and kept, whole and streamed. None is refused, and each is on record."""

from __future__ import annotations

import http.client
import json
import os
import signal
import threading
from pathlib import Path

from tests.benchwarmers.test_serving import child, processes
from tests.fake import FakeProvider, reply
from tests.http import content_of, events_of
from tests.live import Bench, Live, eventually

RELOADS = 2


def test_a_reload_under_load_refuses_no_call_and_loses_none(tmp_path: Path, fake: FakeProvider) -> None:
    server = Live(tmp_path, BENCH_WORKERS="2")
    try:
        server.start()
        bench = Bench(server, fake)
        fast = bench.model("fast", reply(["al", "pha"]))
        core = bench.collection([fast, bench.model("other", reply("beta"))])
        key = bench.key(rpm=1_000_000)
        over, wrong, done = threading.Event(), list[str](), list[int]()

        def answered(status: int, body: bytes, seats: int) -> None:
            if status == 200:
                done.append(seats)
            else:
                wrong.append(f"{status} {body[:200]!r}")

        def new_connections(stream: bool) -> None:
            while not over.is_set():
                try:
                    if stream:
                        with bench.stream(core, key=key) as got:
                            body = got.rest()
                            if list(events_of(body))[-1:] != ["[DONE]"] or "beta" not in content_of(list(events_of(body))):
                                wrong.append(f"half a stream {body[-200:]!r}")
                            answered(got.status, body, 2)
                    else:
                        answer = bench.ask(fast, key=key)
                        answered(answer.status, answer.body, 1)
                except (OSError, http.client.HTTPException) as error:
                    wrong.append(repr(error))

        def one_connection() -> None:
            """A client that keeps its connection; one that was closed while it lay idle it opens anew, as every client does."""
            data = json.dumps({"model": fast, "messages": [{"role": "user", "content": "hi"}]})
            headers = {"content-type": "application/json", "authorization": f"Bearer {key}"}
            connection = http.client.HTTPConnection(server.host, server.port, timeout=60)
            again = False
            while not over.is_set() or again:
                try:
                    connection.request("POST", "/v1/chat/completions", data, headers)
                    response = connection.getresponse()
                    answered(response.status, response.read(), 1)
                    again = False
                except (http.client.RemoteDisconnected, BrokenPipeError, ConnectionResetError) as error:
                    connection.close()
                    if again:
                        wrong.append(repr(error))
                    again = not again
            connection.close()

        bench.load()
        callers = [threading.Thread(target=new_connections, args=(stream,)) for stream in (False, True)] + [threading.Thread(target=one_connection)]
        for caller in callers:
            caller.start()
        try:
            for _ in range(RELOADS):
                master = child(server, "gunicorn")
                old = {pid for pid, (parent, _) in processes(server).items() if parent == master}
                os.kill(server.pid, signal.SIGHUP)
                eventually(lambda old=old: not old & set(processes(server)), "the end of the old processes")
                at = len(done)
                eventually(lambda at=at: len(done) > at + 5, "calls answered by the new ones")
        finally:
            over.set()
            for caller in callers:
                caller.join()
        assert not wrong, wrong[:10]
        assert {row["status"] for row in server.attempts(sum(done))} == {"ok"}
    finally:
        faults = server.stop()
    assert not faults
