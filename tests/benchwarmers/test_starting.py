"""What `serve` refuses to start on, in one line and before it writes; what it does before it listens."""

from __future__ import annotations

import os
import socket
import sqlite3
import stat
from pathlib import Path

import pytest

from benchwarmers import schema, startup
from benchwarmers.refusals import Refusal
from tests.benchwarmers.deployment import TYPED_KEY, Deployment
from tests.live import free_port


@pytest.mark.parametrize(
    ("host", "token", "starts"),
    [
        ("127.0.0.1", "", True),
        ("localhost", "", True),
        ("::1", "", True),
        ("127.0.0.1", "sixteen-or-more-characters", True),
        ("0.0.0.0", "", False),
        ("::", "", False),
        ("[::]", "", False),
        ("192.0.2.7", "", False),
        ("bench.example.org", "", False),
        ("0.0.0.0", "tiny-one", False),
        ("127.0.0.1", "tiny-one", False),
        ("0.0.0.0", "sixteen-or-more-characters", True),
        ("::", "sixteen-or-more-characters", True),
    ],
)
def test_beyond_this_machine_only_with_a_secret(settings, host: str, token: str, starts: bool) -> None:
    settings.ADMIN_TOKEN = token
    if starts:
        startup.check_token(host)
        return
    with pytest.raises(Refusal) as refused:
        startup.check_token(host)
    assert "BENCHWARMERS_ADMIN_TOKEN" in str(refused.value)
    assert not token or token not in str(refused.value)


@pytest.mark.parametrize("token", ["", "short-secret"])
def test_serve_ends_with_one_line_that_names_the_setting(deployment: Deployment, token: str) -> None:
    done = deployment.manage("serve", "--host", "0.0.0.0", BENCHWARMERS_ADMIN_TOKEN=token)
    assert done.code != 0
    assert "BENCHWARMERS_ADMIN_TOKEN" in done.said
    assert "Traceback" not in done.said
    assert len(done.said.strip().splitlines()) == 1
    assert not token or token not in done.said
    assert not list(deployment.home.iterdir()), "it wrote before it refused"


def test_a_wrong_setting_is_one_line(deployment: Deployment) -> None:
    done = deployment.manage("serve", BENCH_WORKERS="many")
    assert done.code != 0
    assert done.said.strip() == "error: BENCH_WORKERS must be a whole number, not 'many'."


def test_a_taken_port_is_said(deployment: Deployment) -> None:
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        done = deployment.manage("serve", "--port", str(other.getsockname()[1]))
    assert done.code != 0
    assert "BENCH_PORT" in done.said
    assert "Traceback" not in done.said


def test_other_secrets_than_the_databases_are_refused(deployment: Deployment) -> None:
    deployment.ready()
    done = deployment.manage("serve", "--port", str(free_port()), BENCHWARMERS_SECRET_KEYS="another-secret-0123456789")
    assert done.code != 0
    assert "BENCHWARMERS_SECRET_KEYS" in done.said
    assert "another-secret" not in done.said
    assert "Traceback" not in done.said


def test_a_newer_database_is_refused_and_the_needed_version_named(deployment: Deployment) -> None:
    if deployment.database.name:
        pytest.skip("writes into the SQLite file")
    deployment.ready()
    with sqlite3.connect(deployment.home / "benchwarmers.sqlite3") as database:
        database.execute("INSERT INTO django_migrations (app, name, applied) VALUES ('panels', '0099_from_the_future', '2030-01-01')")
    database.close()
    (deployment.home / "version").write_text("9.9.9\n")
    done = deployment.manage("serve")
    assert done.code != 0
    assert "9.9.9" in done.said
    assert "0099_from_the_future" in done.said


def test_a_read_only_folder_is_refused(tmp_path: Path) -> None:
    if os.geteuid() == 0:
        pytest.skip("root may write everywhere")
    tmp_path.chmod(0o500)
    with pytest.raises(Refusal, match="BENCHWARMERS_HOME"):
        startup.check_folder(tmp_path)


def test_somebody_elses_folder_is_refused(tmp_path: Path) -> None:
    if os.geteuid() != 0:
        pytest.skip("only root can give a folder away")
    os.chown(tmp_path, 12345, 12345)
    with pytest.raises(Refusal, match="belongs to user 12345"):
        startup.check_folder(tmp_path)


def test_init_makes_a_private_folder_and_changes_nothing_again(deployment: Deployment) -> None:
    deployment.database.create()
    first = deployment.manage("init")
    assert first.code == 0, first.said
    key = (deployment.home / "operator.key").read_text()
    assert stat.S_IMODE((deployment.home / "operator.key").stat().st_mode) == 0o600
    assert stat.S_IMODE(deployment.home.stat().st_mode) == 0o700
    (deployment.home / "roster.yaml").write_text("endpoints: []\n")
    again = deployment.manage("init")
    assert again.code == 0
    assert "migration" not in again.said
    assert (deployment.home / "operator.key").read_text() == key
    assert (deployment.home / "roster.yaml").read_text() == "endpoints: []\n"


def test_init_takes_a_key_without_showing_it(deployment: Deployment) -> None:
    deployment.database.create()
    done = deployment.manage("init", "--endpoint", "groq", "https://api.example.org/v1", "--key", typed=f"{TYPED_KEY}\n")
    assert done.code == 0, done.said
    assert TYPED_KEY not in done.said
    assert "key stored encrypted" in done.said


@pytest.mark.parametrize(
    ("arguments", "typed", "named"),
    [
        (["--key"], "", "--endpoint"),
        (["--endpoint", "groq", "https://api.example.org/v1", "--key"], "", "No key was given"),
        (["--endpoint", "groq", "nonsense"], "", "base_url"),
        (["--endpoint", "", "https://api.example.org/v1"], "", "name"),
    ],
)
def test_init_says_what_is_wrong(deployment: Deployment, arguments: list[str], typed: str, named: str) -> None:
    done = deployment.ready().manage("init", *arguments, typed=typed)
    assert done.code != 0
    assert named in done.said
    assert "Traceback" not in done.said


def test_signin_prints_a_link(deployment: Deployment) -> None:
    deployment.ready()
    done = deployment.manage("signin")
    assert done.code == 0
    assert "http://127.0.0.1:0/signin/" in done.said
    assert "nobody-of-this-name" in deployment.manage("signin", "nobody-of-this-name").said


def test_known_migrations_are_those_on_disk() -> None:
    assert ("panels", "0001_initial") in schema.known_migrations()
