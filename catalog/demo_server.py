"""Serves one GGUF file on this machine until its parent ends: `python demo_server.py MODEL.gguf NAME PORT`. Prints the address.

Runs as a program of its own with xllamacpp on its path, apart from the server's own packages; it imports nothing of ours.
"""

from __future__ import annotations

import importlib
import os
import sys
import threading
from typing import Any


def main() -> None:
    xllamacpp: Any = importlib.import_module("xllamacpp")
    path, name, port = sys.argv[1:]
    params = xllamacpp.CommonParams()
    params.model.path = path
    params.model_alias = name if isinstance(params.model_alias, str) else {name}
    params.n_ctx = 8192
    params.n_parallel = 4
    params.cpuparams.n_threads = max(1, min(4, (os.cpu_count() or 2) - 1))
    params.hostnames = ["127.0.0.1"]
    params.port = int(port)
    params.verbosity = 0
    server = xllamacpp.Server(params)
    print(server.listening_address, flush=True)
    parent, pause = os.getppid(), threading.Event()
    while os.getppid() == parent:
        pause.wait(1.0)


if __name__ == "__main__":
    main()
