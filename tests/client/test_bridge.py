"""`bench mcp`: a client that only speaks stdio, with the official SDK, in both generations of the protocol."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import mcp
import pytest
from mcp.client.stdio import StdioServerParameters, stdio_client

from tests.client.conftest import COMMAND, PATIENCE_S, environment
from tests.fake import reply
from tests.live import Bench, free_port


@pytest.mark.parametrize("mode", ["legacy", "auto"])
async def test_an_sdk_asks_and_judges_over_stdio(bench: Bench, tmp_path: Path, mode: str) -> None:
    core = bench.collection([bench.model("one", reply("over stdio"))]).removeprefix("bench/")
    bench.load()
    known = {"BENCHWARMERS_URL": f"http://{bench.live.host}:{bench.live.port}", "BENCHWARMERS_KEY": bench.live.operator_key}
    server = StdioServerParameters(command=sys.executable, args=[*COMMAND[1:], "mcp"], env=environment(tmp_path, **known))
    async with mcp.Client(stdio_client(server), mode=mode) as client:
        listed = await client.list_tools()
        assert {t.name for t in listed.tools} >= {"ask", "verdict", "list_collections", "pending_verdicts"}
        asked = await client.call_tool("ask", {"collection": core, "prompt": "hi ü"})
        assert asked.structured_content is not None
        (seat,) = asked.structured_content["bench"]["seats"]
        assert seat["text"] == "over stdio"
        kept = await client.call_tool("verdict", {"call": seat["call"], "useful": True})
        assert not kept.is_error


def test_without_a_server_every_request_gets_an_error(tmp_path: Path) -> None:
    lines = '{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{}}\nno json\n\n{"jsonrpc":"2.0","method":"notifications/initialized"}\n'
    known = {"BENCHWARMERS_URL": f"http://127.0.0.1:{free_port()}"}
    done = subprocess.run([*COMMAND, "mcp"], input=lines.encode(), capture_output=True, env=environment(tmp_path, **known), timeout=PATIENCE_S)
    told = [json.loads(line) for line in done.stdout.splitlines()]
    assert {(t["id"], t["error"]["code"]) for t in told} == {(1, -32603), (None, -32700)}
    assert done.returncode == 0
