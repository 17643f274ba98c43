"""Exits 0 when the server in this container is ready: the image's health check."""

from __future__ import annotations

import http.client
import os
import sys

door = http.client.HTTPConnection("127.0.0.1", int(os.environ.get("BENCH_PORT", "8122")), timeout=4)
try:
    door.request("GET", "/readyz", headers={"Host": "localhost"})
    answer = door.getresponse()
    body = answer.read(2000).decode(errors="replace")
except OSError as error:
    sys.exit(f"no answer: {error}")
print(body)
sys.exit(0 if answer.status == 200 else 1)
