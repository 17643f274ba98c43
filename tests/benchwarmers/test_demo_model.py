"""The demo model under a real `serve`: a child like the others while it is switched on, and none otherwise.

What is downloaded is put there beforehand: a stand-in for xllamacpp that answers as a model server does, so that no test needs the network.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from catalog import demo_download
from tests.benchwarmers.test_serving import are_gone, processes
from tests.live import Live, eventually

STAND_IN = """
import http.server, json, threading


class Anything:
    def __getattr__(self, name):
        found = "" if name == "model_alias" else Anything()
        setattr(self, name, found)
        return found


CommonParams = Anything


class Server:
    def __init__(self, params):
        server = http.server.ThreadingHTTPServer(("127.0.0.1", params.port), Handler)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        self.listening_address = f"http://127.0.0.1:{server.server_port}"


class Handler(http.server.BaseHTTPRequestHandler):
    def log_message(self, *said): pass
    def answer(self, body):
        data = json.dumps(body).encode()
        self.send_response(200)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)
    def do_GET(self):
        self.answer({"object": "list", "data": [{"id": "smollm2-135m-instruct", "object": "model"}]})
    def do_POST(self):
        self.rfile.read(int(self.headers["content-length"]))
        said = {"role": "assistant", "content": "Paris."}
        choice = {"index": 0, "message": said, "finish_reason": "stop"}
        usage = {"prompt_tokens": 5, "completion_tokens": 2, "total_tokens": 7}
        self.answer({"id": "1", "object": "chat.completion", "model": "m", "created": 1, "choices": [choice], "usage": usage})
"""


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Live]:
    server = Live(tmp_path_factory.mktemp("demo"), BENCH_WORKERS="1")
    folder = server.home / "demo"
    site = folder / f"{demo_download.RUNNER.replace('==', '-')}-py{sys.version_info.major}{sys.version_info.minor}"
    site.mkdir(parents=True)
    (folder / "model.gguf").write_bytes(b"GGUF")
    (site / "xllamacpp.py").write_text(STAND_IN)
    try:
        server.start()
        yield server
    finally:
        wrong = server.stop()
    assert not wrong, wrong


def stage(server: Live) -> str:
    return str(server.api("GET", "demo")["stage"])


def model_server(server: Live) -> int | None:
    return next((pid for pid, (_, command) in processes(server).items() if "demo_server.py" in command), None)


def running(server: Live) -> dict[str, Any]:
    eventually(lambda: stage(server) == "running", "the demo model")
    return dict(server.api("GET", "demo"))


def test_nothing_of_it_runs_until_somebody_asks(served: Live) -> None:
    assert stage(served) == "off"
    assert not any("demo" in Path(command.split()[-1]).name for _, command in processes(served).values())
    assert served.api("GET", "endpoints")["data"] == []


def test_it_answers_once_it_is_switched_on(served: Live) -> None:
    served.api("POST", "demo", status=202)
    assert running(served)["models"] == ["demo-careful", "demo-plain", "demo-bold", "demo-wild"]
    assert served.ask("demo-plain", "Capital of France?").json["choices"][0]["message"]["content"] == "Paris."


def test_a_model_server_that_dies_is_started_again_at_its_address(served: Live) -> None:
    served.api("POST", "demo", status=202)
    running(served)
    before = served.api("GET", "endpoints/demo")["base_url"]
    killed = eventually(lambda: model_server(served), "the model server")
    os.kill(killed, signal.SIGKILL)
    eventually(lambda: (found := model_server(served)) and found != killed and stage(served) == "running", "another one")
    assert served.api("GET", "endpoints/demo")["base_url"] == before
    assert served.ask("demo-plain").status == 200


def test_it_comes_back_with_the_server_and_ends_with_it(served: Live) -> None:
    served.api("POST", "demo", status=202)
    running(served)
    there = list(processes(served))
    assert served.terminate() == 0
    eventually(lambda: are_gone(there), "the end of every process")
    served.launch()
    running(served)
    assert served.ask("demo-plain").status == 200


def test_switched_off_it_ends_and_its_models_stop_playing(served: Live) -> None:
    served.api("POST", "demo", status=202)
    running(served)
    pid = eventually(lambda: model_server(served), "the model server")
    served.api("DELETE", "demo")
    eventually(lambda: are_gone([pid]), "its end")
    assert {row["status"] for row in served.listed("models")} == {"retired"}
    served.api("POST", "demo", status=202)
    running(served)
    assert {row["status"] for row in served.listed("models")} == {"active"}


def test_a_backup_leaves_the_download_out(served: Live) -> None:
    import tarfile

    target = served.folder / "with-demo.tar.gz"
    served.manage("backup", str(target))
    with tarfile.open(target) as archive:
        assert not [name for name in archive.getnames() if "demo" in name]


def test_what_does_not_start_is_given_up_and_says_so(served: Live) -> None:
    served.api("DELETE", "demo")
    eventually(lambda: model_server(served) is None, "its end")
    site = next((served.home / "demo").glob("xllamacpp-*"))
    (site / "xllamacpp.py").write_text("raise SystemExit(1)")
    served.api("POST", "demo", status=202)
    eventually(lambda: stage(served) == "failed", "a failure")
    shown = served.api("GET", "demo")
    assert not shown["on"]
    assert "does not start" in shown["message"]
    assert {row["status"] for row in served.listed("models")} == {"retired"}
