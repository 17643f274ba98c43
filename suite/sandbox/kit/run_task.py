"""Drives a scorer inside the sandbox: `solve` asks the model and gives the output, `score` grades an output, `extract` reads a row.

What it finds goes out on a descriptor of its own, after a word that only the server and this process know: what the scorer prints is no result.
"""

from __future__ import annotations

import asyncio
import importlib.util
import inspect
import json
import os
import socket
import sys
import threading
import traceback
from typing import Any

from bench_hide import hide  # type: ignore[import-not-found]  # it lies beside this file in the sandbox

PROXY_SOCKET = "/run/proxy.sock"
PORT = 8080
MOST_METADATA = 16_000


def relay() -> None:
    """Lets programs in here reach the model: what comes in on a port of this sandbox goes to the one socket that leads out."""
    listening = socket.create_server(("127.0.0.1", PORT), backlog=64)

    def pump(source: socket.socket, target: socket.socket) -> None:
        try:
            while data := source.recv(65536):
                target.sendall(data)
        except OSError:
            pass
        finally:
            try:
                target.shutdown(socket.SHUT_WR)
            except OSError:
                pass

    def serve() -> None:
        while True:
            inside, _ = listening.accept()
            outside = socket.socket(socket.AF_UNIX)
            try:
                outside.connect(PROXY_SOCKET)
            except OSError:
                inside.close()
                continue
            threading.Thread(target=pump, args=(inside, outside), daemon=True).start()
            threading.Thread(target=pump, args=(outside, inside), daemon=True).start()

    threading.Thread(target=serve, daemon=True).start()


def loaded() -> Any:
    """Loads the scorer and makes its one task."""
    from bench_task import BenchTask  # type: ignore[import-not-found]  # it lies beside this file in the sandbox

    spec = importlib.util.spec_from_file_location("task_impl", "task_impl.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["task_impl"] = module
    spec.loader.exec_module(module)
    kinds = [v for v in vars(module).values() if inspect.isclass(v) and issubclass(v, BenchTask) and v is not BenchTask and v.__module__ == "task_impl"]
    if len(kinds) != 1:
        raise TypeError(f"The code defines {len(kinds)} subclasses of BenchTask; one is needed.")
    return kinds[0]()


def awaited(value: Any) -> Any:
    async def waited() -> Any:
        return await value

    return asyncio.run(waited()) if inspect.isawaitable(value) else value


def extracted(task: Any) -> Any:
    """Gives the row: by the scorer's own way through the file where it has one, else by its index."""
    from bench_task import BenchTask

    if type(task).extract_all is BenchTask.extract_all:
        return awaited(task.extract("tasks.jsonl", 0))
    rows = awaited(task.extract_all("tasks.jsonl"))
    return awaited(anext(aiter(rows))) if hasattr(rows, "__aiter__") else next(iter(rows))


def done(stage: str) -> dict[str, Any]:
    task = loaded()
    row = extracted(task)
    if stage == "extract":
        return {"row": {name: row[name] for name in ("task_id", "input", "expected")}}
    if stage == "solve":
        output = awaited(task.solve(0, row["input"]))
        return {"output": output if isinstance(output, str) else json.dumps(output)}
    with open("output.json", encoding="utf-8") as file:
        output = json.load(file)
    found = awaited(task.score(0, output, row["expected"]))
    if isinstance(found, dict):
        words = {k: str(found[k])[:2000] for k in ("answer", "explanation") if found.get(k) is not None}
        return {"score": plain(found.get("value")), **words, **metadata_of(found.get("metadata"))}
    return {"score": plain(found)}


def metadata_of(value: Any) -> dict[str, Any]:
    """Keeps what a scorer notes beside its score, if it is an object that JSON holds and not too large."""
    if not isinstance(value, dict):
        return {}
    written = json.dumps({str(name): item for name, item in value.items()}, default=repr)
    return {"metadata": json.loads(written, parse_constant=str) if len(written) <= MOST_METADATA else {"left_out": f"{len(written)} characters"}}


def plain(score: Any) -> Any:
    """Writes a score so that the server sees what it is: what is no number goes as its text."""
    if isinstance(score, bool) or score is None:
        return repr(score)
    try:
        return float(score) if float(score) == float(score) and abs(float(score)) != float("inf") else repr(score)
    except (TypeError, ValueError):
        return repr(score)[:200]


def main() -> None:
    descriptor = int(os.environ.pop("BENCH_RESULTS"))
    word = sys.stdin.readline().strip()
    os.set_inheritable(descriptor, False)
    hide()
    stage = sys.argv[1]
    if stage == "solve":
        relay()
    try:
        found = {"ok": True, **done(stage)}
    except BaseException as error:  # a scorer may raise whatever it likes, SystemExit too
        found = {"ok": False, "error": f"{type(error).__name__}: {error}"[:2000], "where": traceback.format_exc(limit=-3)[-2000:]}
    os.write(descriptor, json.dumps({"word": word, **found}).encode() + b"\n")
    os.close(descriptor)
    sys.stdout.flush()
    os._exit(0)  # what the scorer left behind, threads too, is nobody's business any more


main()
