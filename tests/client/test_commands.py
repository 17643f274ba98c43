"""The `bench` command against the running server: answers on stdout, everything else on stderr, exit codes that scripts can go by."""

from __future__ import annotations

import json
import os
import pty
import signal
import subprocess
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import quote

import click
import pytest

from tests.client.conftest import COMMAND, PATIENCE_S, Cli, environment
from tests.fake import FakeProvider, hang, reply, status
from tests.live import Bench, eventually, free_port

CLAIM = "the race in refresh()"


def test_what_runs_is_told(cli: Cli) -> None:
    ran = cli("status")
    assert ran.code == 0
    assert "Benchwarmers" in ran.out
    assert json.loads(cli("status", "--json").out)["database"] in ("sqlite", "postgresql")
    assert json.loads(cli("--json", "status").out)["version"]


def test_answers_go_to_stdout_and_call_ids_to_stderr(bench: Bench, cli: Cli) -> None:
    core = bench.collection([bench.model("one", reply("first answer")), bench.model("two", reply("second answer"))])
    bench.load()
    ran = cli("ask", core.removeprefix("bench/"), "Which?")
    assert ran.code == 0
    assert "first answer" in ran.out
    assert "second answer" in ran.out
    assert ran.err.count("call_") == 2
    calls = [line.split("\t")[0] for line in ran.err.splitlines() if line.startswith("call_")]
    kept = cli("verdict", calls[0], "--useful", "--real", CLAIM, "--false", "the SQL injection", "--note", "checked")
    assert (kept.code, kept.out) == (0, "")
    assert "1 real, 1 false" in kept.err
    (row,) = bench.live.rows("panels.Verdict", call=calls[0])
    assert (row["useful"], row["real"], row["false"]) == (True, [CLAIM], ["the SQL injection"])
    assert calls[1] in cli("pending", "--limit", "500").out
    panel = bench.live.rows("panels.Seat", call=calls[0])[0]["panel_id"]
    shown = cli("panels", panel)
    assert "first answer" in shown.out
    assert panel in cli("panels", "--collection", core.removeprefix("bench/")).out


def test_a_pipe_is_the_prompt_and_files_go_along(bench: Bench, cli: Cli, fake: FakeProvider, tmp_path: Path) -> None:
    one = bench.model("one", reply("seen"), facts={"vision": True})
    core = bench.collection([one]).removeprefix("bench/")
    bench.load()
    (tmp_path / "cache.py").write_text("x = '```'\n")
    (tmp_path / "dot.png").write_bytes(b"\x89PNG\r\n\x1a\n")
    assert cli("ask", core, "Review this", "-f", "cache.py", "-f", "dot.png", pipe="diff --git\n").code == 0
    (call,) = fake.calls_to(one)
    parts = call.json["messages"][-1]["content"]
    text = next(p["text"] for p in parts if p["type"] == "text")
    assert text.index("Review this") < text.index("diff --git") < text.index("cache.py:\n````\nx = '```'\n````")
    assert [p["image_url"]["url"] for p in parts if p["type"] == "image_url"] == ["data:image/png;base64,iVBORw0KGgo="]
    assert cli("ask", core, pipe="only piped").code == 0
    assert fake.calls_to(one)[-1].json["messages"][-1]["content"] == "only piped"


def test_others_can_be_seated_and_answers_merged(bench: Bench, cli: Cli) -> None:
    one, two, extra = bench.model("one", reply("alpha")), bench.model("two", reply("beta")), bench.model("extra", reply("gamma"))
    core = bench.collection([one, two], mergers=[bench.model("merger", reply("Both agree."))]).removeprefix("bench/")
    bench.load()
    merged = cli("ask", core, "Which?", "--merged")
    assert merged.code == 0
    assert "Both agree." in merged.out
    assert merged.err.count("call_") == 3
    besides = cli("ask", core, "Which?", "--with", extra)
    assert besides.code == 0
    assert "gamma" in besides.out
    assert extra in besides.err
    assert [s["model"] for s in json.loads(cli("ask", core, "x", "--with", extra, "--json").out)["seats"]] == [one, two, extra]


def test_a_model_alone_is_asked_by_its_alias(bench: Bench, cli: Cli) -> None:
    one = bench.model("one", reply("alone"))
    bench.load()
    ran = cli("ask", one, "hi", "--model")
    assert (ran.code, ran.out) == (0, "alone\n")


def test_control_characters_of_a_model_do_not_reach_the_terminal(bench: Bench, cli: Cli) -> None:
    core = bench.collection([bench.model("one", reply("a\x1b]0;owned\x07b\x1b[2Jc\r\nd\u202ee\x9bf"))]).removeprefix("bench/")
    bench.load()
    ran = cli("ask", core, "hi")
    assert ran.code == 0
    assert not set(ran.out + ran.err) & set("\x1b\x07\x9b\u202e\r")
    assert "owned" in ran.out


# ------------------------------------------------------------------ the bench


def test_models_are_found_retired_and_restored(bench: Bench, cli: Cli) -> None:
    one = bench.model("mercury")
    bench.load()
    assert [line.split("\t")[0] for line in cli("models", "--find", one.upper()).out.splitlines()] == [one]
    assert cli("model", "retire", one, "--reason", "too slow").code == 2  # nobody to ask
    assert cli("model", "retire", one, "--reason", "too slow", "--yes").code == 0
    assert "too slow" in cli("models", "--find", one, "--status", "retired").out
    assert cli("model", "restore", one).code == 0
    assert json.loads(cli("models", "--find", one, "--json").out)["data"][0]["status"] == "active"


def test_a_collection_is_made_changed_and_deleted(bench: Bench, cli: Cli) -> None:
    a, b, c = (bench.model(n) for n in "abc")
    bench.load()
    name = f"{bench.tag} reviewers/ü"[:60].replace("/", "-")
    assert cli("collection", "save", name, "--members", f"{a},{b}", "--description", "adversarial review").code == 0
    assert cli("collection", "save", name, "--add", c, "--remove", a).code == 0
    shown = next(row for row in json.loads(cli("collections", "--json").out)["data"] if row["name"] == name)
    assert (shown["members"], shown["description"]) == ([b, c], "adversarial review")
    wrong = cli("collection", "save", name, "--remove", "nobody")
    assert (wrong.code, wrong.out) == (2, "")
    assert cli("collection", "delete", name, "--yes").code == 0
    assert name not in cli("collections").out


def test_an_endpoints_key_comes_from_stdin_and_is_nowhere_else(bench: Bench, cli: Cli) -> None:
    name, secret = f"{bench.tag}-added", "sk-from-stdin-0123456789"
    ran = cli("endpoint", "add", name, "--base", bench.fake.url, "--key-stdin", pipe=f"{secret}\n")
    assert ran.code == 0
    assert secret not in ran.out + ran.err
    assert "stored" in next(line for line in cli("endpoint", "list").out.splitlines() if line.startswith(name))
    assert cli("endpoint", "add", f"{name}2", "--base", bench.fake.url, pipe="").code == 2  # nobody to ask for the key
    assert cli("endpoint", "delete", name, "--yes").code == 0


def test_a_key_is_printed_once_and_can_be_revoked(bench: Bench, cli: Cli) -> None:
    core = bench.collection([bench.model("one", reply("for the key"))]).removeprefix("bench/")
    bench.load()
    name = f"{bench.tag}-app"
    made = cli("key", "create", name, "--collections", core, "--rpm", "30")
    assert made.code == 0
    secret = made.out.strip()
    assert secret.startswith("bw_live_")
    assert secret not in made.err
    as_app = {"BENCHWARMERS_KEY": secret}
    assert cli("ask", core, "hi", env=as_app).code == 0
    refused = cli("models", env=as_app)
    assert (refused.code, refused.out) == (1, "")
    assert cli("key", "revoke", name, "--yes").code == 0
    gone = cli("ask", core, "hi", env=as_app)
    assert (gone.code, gone.out) == (1, "")
    assert secret not in gone.err


def test_settings_and_schedules_are_shown_and_changed(cli: Cli) -> None:
    assert "records.half_life_days" in cli("settings", "list").out
    assert cli("settings", "set", "records.half_life_days", "30").code == 0
    assert json.loads(cli("settings", "set", "records.half_life_days", "null", "--json").out)["value"] != 30
    refused = cli("settings", "set", "records.half_life_days", "often")
    assert (refused.code, refused.out) == (1, "")
    assert cli("settings", "scheduler", "run", "--on", "perf").code == 0
    assert next(line for line in cli("settings", "scheduler", "list").out.splitlines() if line.startswith("perf")).split("\t")[1] == "on"
    assert "perf" in cli("status").out
    assert cli("settings", "scheduler", "run", "--off", "perf").code == 0
    assert cli("settings", "scheduler", "run", "--on", "nosuch").code == 1
    assert cli("settings", "scheduler", "run").code == 2


def test_what_is_left_and_what_was_spent_is_told(bench: Bench, cli: Cli) -> None:
    one = bench.model("one", limits={"requests": {"minute": 7}})
    bench.load()
    assert cli("ask", one, "hi", "--model").code == 0
    bench.live.attempts(1, model=one)
    (line,) = [line for line in cli("quotas").out.splitlines() if line.startswith(f"model {one}\t")]
    assert line.split("\t")[1:5] == ["requests a minute", "7", "1", "6"]
    assert one in cli("usage").out
    for by in ("key", "endpoint", "collection", "purpose", "judge", "team"):
        assert cli("usage", "--by", by).code == 0
    assert cli("alerts", "--all").code == 0


def test_what_endpoints_serve_is_found_and_onboarded(bench: Bench, cli: Cli) -> None:
    bench.model("known")
    endpoint = f"{bench.tag}-here"
    bench.load()
    served = f"{bench.tag}/brand-new"
    bench.fake.script(served, reply("OK"))
    assert cli("candidates", "--endpoint", endpoint, "--refresh").code == 0
    ran = cli("onboard", served, "--endpoint", endpoint, "--quick", "--wait")
    assert ran.code == 0, ran
    assert served in cli("models", "--find", served).out
    assert cli("onboard", served, "--endpoint", "nosuch").code == 1
    assert cli("onboard").code == 2
    assert cli("discover", "nothing is called like that").code == 0


# ------------------------------------------------------------------ ends


def test_no_server_wrong_usage_and_refusals_are_told_apart(bench: Bench, cli: Cli) -> None:
    nowhere = {"BENCHWARMERS_URL": f"http://127.0.0.1:{free_port()}", "BENCHWARMERS_KEY": ""}
    for code, ran in {
        3: cli("ask", "core", "x", env=nowhere),
        1: cli("ask", "nosuch", "x"),
        2: cli("ask", "--bogus"),
    }.items():
        assert ran.code == code, ran
        assert ran.out == ""
        assert ran.err
        assert "Traceback" not in ran.err
    assert cli("ask", "core").code == 2
    assert cli("status", "--url", "ftp://nowhere").code == 2
    assert cli("status", "--url", nowhere["BENCHWARMERS_URL"]).code == 3


def test_a_panel_that_fails_is_a_failure_with_its_reason(bench: Bench, cli: Cli) -> None:
    core = bench.collection([bench.model("one", status(500))]).removeprefix("bench/")
    bench.load()
    ran = cli("ask", core, "hi")
    assert ran.code == 1
    assert "500" in ran.err
    assert bench.tag in ran.out


def test_a_pipe_that_is_closed_early_ends_quietly(bench: Bench, tmp_path: Path, live: object) -> None:
    core = bench.collection([bench.model("one", reply("word " * 100_000))]).removeprefix("bench/")
    bench.load()
    known = {"BENCHWARMERS_URL": f"http://{bench.live.host}:{bench.live.port}", "BENCHWARMERS_KEY": bench.live.operator_key}
    with subprocess.Popen(
        [*COMMAND, "ask", core, "x"], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment(tmp_path, **known)
    ) as running:
        assert running.stdout is not None
        assert running.stderr is not None
        assert running.stdout.read(1)
        running.stdout.close()
        said = running.stderr.read().decode()
        assert running.wait(PATIENCE_S) in (0, 141), said
    assert "Traceback" not in said


def heeds_interrupts() -> None:
    """A run in the background has its children born deaf to interrupts."""
    signal.signal(signal.SIGINT, signal.default_int_handler)


def test_an_interrupt_cancels_the_call(bench: Bench, tmp_path: Path) -> None:
    one = bench.model("one", hang())
    core = bench.collection([one]).removeprefix("bench/")
    bench.load()
    known = {"BENCHWARMERS_URL": f"http://{bench.live.host}:{bench.live.port}", "BENCHWARMERS_KEY": bench.live.operator_key}
    with subprocess.Popen(
        [*COMMAND, "ask", core, "x"],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=environment(tmp_path, **known),
        preexec_fn=heeds_interrupts,
    ) as running:
        eventually(lambda: bench.fake.calls_to(one), "the call upstream")
        running.send_signal(signal.SIGINT)
        out, err = running.communicate(timeout=PATIENCE_S)
    assert running.returncode == 130
    assert b"Traceback" not in err
    assert out == b""
    (row,) = bench.live.attempts(1, model=one)
    assert row["status"] == "cancelled"


def test_calls_to_this_machine_go_past_a_proxy_and_others_through_it(cli: Cli, live: object, bench: Bench) -> None:
    asked: list[str] = []

    class Proxy(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            asked.append(self.path)
            self.send_response(200)
            self.send_header("content-type", "text/html")
            self.end_headers()
            self.wfile.write(b"<html>proxy.example wants you to sign in</html>")

        def log_message(self, *args: object) -> None: ...

    with ThreadingHTTPServer(("127.0.0.1", 0), Proxy) as proxy:
        threading.Thread(target=proxy.serve_forever, daemon=True).start()
        address = f"http://127.0.0.1:{proxy.server_port}"
        around = {name: address for name in ("HTTP_PROXY", "HTTPS_PROXY", "http_proxy", "https_proxy")} | {"NO_PROXY": ""}
        assert cli("status", env=around).code == 0
        assert cli("status", "--url", f"http://localhost:{bench.live.port}", env=around).code == 0
        assert asked == []
        through = cli("status", "--url", "http://bench.lan:8122", env=around)
        proxy.shutdown()
    assert asked == ["http://bench.lan:8122/bench/status"]
    assert through.code == 3
    assert "HTTP_PROXY" in through.err
    assert "sign in" not in through.err


def test_on_a_terminal_tables_have_headings(bench: Bench, tmp_path: Path) -> None:
    bench.model("one")
    bench.load()
    known = {"BENCHWARMERS_URL": f"http://{bench.live.host}:{bench.live.port}", "BENCHWARMERS_KEY": bench.live.operator_key, "COLUMNS": "120", "TERM": "xterm"}
    here, there = pty.openpty()
    done = subprocess.run(
        [*COMMAND, "models", "--find", bench.tag], stdin=subprocess.DEVNULL, stdout=there, env=environment(tmp_path, **known), timeout=PATIENCE_S
    )
    os.close(there)
    shown = os.read(here, 65536).decode()
    os.close(here)
    assert done.returncode == 0
    assert "status" in shown
    assert bench.tag in shown


def test_onboarding_is_watched_to_its_end_and_says_what_came_of_each_stage(bench: Bench, cli: Cli) -> None:
    here, name = bench.endpoint(), f"{bench.tag}/watched"
    bench.load()
    ran = cli("onboard", name, "--endpoint", here, "--quick-ad-hoc", "--wait")
    assert ran.code == 0, ran.err
    assert f"{name}: register: " in ran.err
    assert f"{name}\t{name}\tdone" in ran.out
    bench.live.api("DELETE", f"models/{quote(name, safe='')}")


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_is_for_each_shell(cli: Cli, shell: str) -> None:
    assert "_BENCH_COMPLETE" in cli("completion", shell).out
    completed = cli(env={"_BENCH_COMPLETE": "bash_complete", "COMP_WORDS": "bench mod", "COMP_CWORD": "1"})
    assert "models" in completed.out


def test_answers_come_to_a_terminal_seat_by_seat(bench: Bench, tmp_path: Path, fake: FakeProvider) -> None:
    gate = fake.gate()
    core = bench.collection([bench.model("quick", reply("quick answer")), bench.model("slow", reply("slow answer").after(gate))]).removeprefix("bench/")
    bench.load()
    known = {"BENCHWARMERS_URL": bench.live.url, "BENCHWARMERS_KEY": bench.live.operator_key, "COLUMNS": "120", "TERM": "xterm"}
    here, there = pty.openpty()
    with subprocess.Popen([*COMMAND, "ask", core, "x"], stdin=there, stdout=there, stderr=there, env=environment(tmp_path, **known)) as running:
        os.close(there)
        shown = b""
        while b"quick answer" not in shown:
            shown += os.read(here, 65536)
        assert b"slow answer" not in shown
        gate.open()
        while True:
            try:
                more = os.read(here, 65536)
            except OSError:  # the terminal's other end is closed
                break
            if not more:
                break
            shown += more
        assert running.wait(PATIENCE_S) == 0
    os.close(here)
    assert b"slow answer" in shown
    assert b"Asking" in shown


def test_every_command_has_help_with_an_example() -> None:
    from benchwarmers_client.main import cli as root

    def walk(group: object, path: list[str]) -> list[list[str]]:
        found = [path]
        for name, command in getattr(group, "commands", {}).items():
            found += walk(command, [*path, name])
        return found

    paths = walk(root, [])
    assert len(paths) > 30
    for path in paths:
        command: object = root
        for name in path:
            command = command.commands[name]  # type: ignore[attr-defined]
        assert getattr(command, "help", None), path
        if path:
            assert f"bench {' '.join(path)}" in command.get_help(click.Context(command)), path  # type: ignore[attr-defined]


@pytest.mark.parametrize("arguments", [["--help"], ["ask", "--help"], ["collection", "save", "-h"], ["settings", "scheduler", "run", "--help"]])
def test_help_needs_no_server_and_shows_examples(cli: Cli, arguments: list[str]) -> None:
    ran = cli(*arguments, env={"BENCHWARMERS_URL": "http://127.0.0.1:1"})
    assert ran.code == 0
    assert "  bench " in ran.out
