"""Backups hold everything but secrets, and come back whole."""

from __future__ import annotations

import gzip
import json
import tarfile
from pathlib import Path

import pytest

from tests.benchwarmers.deployment import TYPED_KEY, Deployment

ROSTER = {
    "endpoints": [{"name": "here", "kind": "openai", "base_url": "http://127.0.0.1:9/v1"}],
}


def load(deployment: Deployment, roster: dict[str, object]) -> None:
    path = deployment.folder / "roster.json"
    path.write_text(json.dumps(roster))
    done = deployment.manage("roster", "load", str(path))
    assert done.code == 0, done.said


def models(deployment: Deployment) -> list[str]:
    dumped = deployment.folder / "dump.json"
    assert deployment.manage("roster", "dump", str(dumped)).code == 0
    return [m["alias"] for m in json.loads(dumped.read_text())["models"]]


def names_in(backup: Path) -> list[str]:
    with tarfile.open(backup) as tar:
        return tar.getnames()


def test_what_was_there_comes_back_and_what_replaced_it_is_kept(deployment: Deployment) -> None:
    deployment.ready()
    load(deployment, {**ROSTER, "models": [{"alias": 'größe "x"', "endpoint": "here", "served_name": "x"}]})
    (deployment.home / "notes.txt").write_text("mine")
    (deployment.home / "outbox").mkdir(exist_ok=True)
    (deployment.home / "outbox" / "rejected.jsonl").write_text('{"kept": 1}\n')
    backup = deployment.folder / "one.tar.gz"
    done = deployment.manage("backup", str(backup))
    assert done.code == 0, done.said

    names = names_in(backup)
    assert "manifest.json" in names
    assert "files/notes.txt" in names
    assert not [n for n in names if "operator.key" in n or "secrets" in n or "server.json" in n]
    assert TYPED_KEY.encode() not in gzip.decompress(backup.read_bytes())

    load(deployment, {"endpoints": [], "models": [{"alias": "later", "endpoint": "here", "served_name": "y"}]})
    (deployment.home / "notes.txt").write_text("changed")
    assert models(deployment) == ['größe "x"', "later"]

    done = deployment.manage("restore", str(backup))
    assert done.code == 0, done.said
    assert models(deployment) == ['größe "x"']
    assert (deployment.home / "notes.txt").read_text() == "mine"
    assert "key: stored" in deployment.manage("doctor").said

    (kept,) = (deployment.home / "backups").glob("before-restoring-*")
    done = deployment.manage("restore", str(kept))
    assert done.code == 0, done.said
    assert models(deployment) == ['größe "x"', "later"]
    # What is made anew must not collide with what was restored.
    load(deployment, {"models": [{"alias": "new", "endpoint": "here", "served_name": "z"}]})


def test_a_file_is_never_overwritten(deployment: Deployment) -> None:
    deployment.ready()
    target = deployment.folder / "taken"
    target.write_text("mine")
    done = deployment.manage("backup", str(target))
    assert done.code != 0
    assert target.read_text() == "mine"


@pytest.mark.parametrize("content", [b"", b"no tar", b"\x1f\x8b\x08 broken"])
def test_what_is_no_backup_changes_nothing(deployment: Deployment, content: bytes) -> None:
    deployment.ready()
    wrong = deployment.folder / "wrong.tar.gz"
    wrong.write_bytes(content)
    done = deployment.manage("restore", str(wrong))
    assert done.code != 0
    assert "no backup" in done.said
    assert "Traceback" not in done.said


def test_a_cut_backup_changes_nothing(deployment: Deployment) -> None:
    deployment.ready()
    backup = deployment.folder / "one.tar.gz"
    deployment.manage("backup", str(backup))
    whole = backup.read_bytes()
    cut = deployment.folder / "cut.tar.gz"
    cut.write_bytes(whole[: len(whole) * 2 // 3])
    done = deployment.manage("restore", str(cut))
    assert done.code != 0
    assert "Traceback" not in done.said
    assert "endpoint sealed" in deployment.manage("doctor").said


def test_a_newer_backup_is_refused_with_the_version_it_needs(deployment: Deployment, tmp_path: Path) -> None:
    deployment.ready()
    backup = deployment.folder / "one.tar.gz"
    deployment.manage("backup", str(backup))
    with tarfile.open(backup) as tar:
        tar.extractall(tmp_path / "out", filter="data")
    manifest = tmp_path / "out" / "manifest.json"
    told = json.loads(manifest.read_text())
    told["version"] = "9.9.9"
    told["migrations"].append(["panels", "0099_from_the_future"])
    manifest.write_text(json.dumps(told))
    newer = deployment.folder / "newer.tar.gz"
    with tarfile.open(newer, "w:gz") as tar:
        for path in sorted((tmp_path / "out").rglob("*")):
            tar.add(path, str(path.relative_to(tmp_path / "out")), recursive=False)
    done = deployment.manage("restore", str(newer))
    assert done.code != 0
    assert "9.9.9" in done.said


def test_a_backup_of_the_other_database_is_refused(deployment: Deployment, tmp_path: Path) -> None:
    deployment.ready()
    backup = deployment.folder / "one.tar.gz"
    deployment.manage("backup", str(backup))
    with tarfile.open(backup) as tar:
        held = tar.extractfile("manifest.json")
        assert held
        told = json.loads(held.read())
    told["engine"] = "sqlite" if told["engine"] == "postgresql" else "postgresql"
    other = deployment.folder / "other.tar.gz"
    (tmp_path / "manifest.json").write_text(json.dumps(told))
    with tarfile.open(other, "w:gz") as tar:
        tar.add(tmp_path / "manifest.json", "manifest.json")
    done = deployment.manage("restore", str(other))
    assert done.code != 0
    assert "DATABASE_URL" in done.said
