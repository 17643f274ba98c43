"""Serves one GGUF file on a free port of this machine until its parent ends: `python demo_model.py MODEL.gguf`. Prints the address.

Runs with xllamacpp on its path, apart from the server's own packages.
"""

from __future__ import annotations

import os
import sys
import threading


def main() -> None:
    import xllamacpp

    params = xllamacpp.CommonParams()
    params.model.path = sys.argv[1]
    params.n_ctx = 8192
    params.n_parallel = 4
    params.cpuparams.n_threads = max(1, min(4, (os.cpu_count() or 2) - 1))
    params.hostnames = ["127.0.0.1"]
    params.port = 0
    params.verbosity = 0
    server = xllamacpp.Server(params)
    print(server.listening_address, flush=True)
    parent, pause = os.getppid(), threading.Event()
    while os.getppid() == parent:
        pause.wait(1.0)


if __name__ == "__main__":
    main()
