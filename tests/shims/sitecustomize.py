"""Loaded by the server under test: writes every name that it has resolved to the file that BENCH_TEST_NAMES names, one a line with the process.

Names are what tells whom a server talks to; numeric addresses come by here too.
"""

import os
import sys

FILE = os.environ.get("BENCH_TEST_NAMES")


def note(host):
    if isinstance(host, bytes):
        host = host.decode("ascii", "backslashreplace")
    if host:
        with open(FILE, "a", encoding="utf-8") as file:
            file.write(f"{host}\n")


def heard(event, args):
    if event in ("socket.getaddrinfo", "socket.gethostbyname", "socket.gethostbyaddr"):
        note(args[0])


if FILE:
    sys.addaudithook(heard)
    # libuv asks the system by itself, past Python's own door.
    try:
        import uvloop
    except ImportError:
        pass
    else:
        ask = uvloop.Loop.getaddrinfo

        async def getaddrinfo(self, host, port, **more):
            note(host)
            return await ask(self, host, port, **more)

        uvloop.Loop.getaddrinfo = getaddrinfo
