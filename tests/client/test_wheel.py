"""The wheel that a server offers of its client: made without a build backend, the same everywhere, and fit for every installer."""

from __future__ import annotations

import base64
import csv
import hashlib
import io
import shutil
import tomllib
import zipfile
from email import message_from_string
from pathlib import Path

import pytest
from benchwarmers_client import __version__

from panels import wheel
from tests.live import CHECKOUT, Live

CLIENT = CHECKOUT / "client"
PROJECT = tomllib.loads((CLIENT / "pyproject.toml").read_text())["project"]


def test_it_holds_every_module_and_each_has_its_sum() -> None:
    made = wheel.build(CLIENT)
    with zipfile.ZipFile(io.BytesIO(made.data)) as archive:
        assert archive.testzip() is None
        names = archive.namelist()
        listed = {row[0]: row[1:] for row in csv.reader(io.StringIO(archive.read(f"benchwarmers_client-{made.version}.dist-info/RECORD").decode()))}
        assert set(listed) == set(names)
        assert len(names) == len(set(names))
        for name, (algorithm_and_sum, size) in listed.items():
            if not name.endswith("RECORD"):
                data = archive.read(name)
                expected = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
                assert (algorithm_and_sum, int(size)) == (f"sha256={expected}", len(data))
        assert {n for n in names if n.endswith(".py")} == {p.relative_to(CLIENT / "src").as_posix() for p in (CLIENT / "src").rglob("*.py")}
        assert {n for n in names if n.endswith("py.typed")} == {"benchwarmers_client/py.typed", "benchwright/py.typed"}
        for name in names:
            if name.endswith((".py", ".typed")):
                assert archive.read(name) == (CLIENT / "src" / name).read_bytes()


def test_it_says_of_itself_what_the_project_says() -> None:
    made = wheel.build(CLIENT)
    assert made.file == f"benchwarmers_client-{PROJECT['version']}-py3-none-any.whl"
    assert made.version == PROJECT["version"] == __version__
    with zipfile.ZipFile(io.BytesIO(made.data)) as archive:
        about = f"benchwarmers_client-{made.version}.dist-info"
        told = message_from_string(archive.read(f"{about}/METADATA").decode())
        assert (told["Name"], told["Version"], told["Requires-Python"]) == (PROJECT["name"], PROJECT["version"], PROJECT["requires-python"])
        assert told.get_all("Requires-Dist") == PROJECT["dependencies"]
        assert "Tag: py3-none-any" in archive.read(f"{about}/WHEEL").decode()
        said = archive.read(f"{about}/entry_points.txt").decode()
        assert "bench = benchwarmers_client.main:main\n" in said
        assert "benchwright = benchwright.cli.main:main\n" in said


def test_it_is_the_same_whenever_and_wherever_it_is_made(tmp_path: Path) -> None:
    elsewhere = tmp_path / "client"
    shutil.copytree(CLIENT, elsewhere)
    (elsewhere / "src" / "benchwarmers_client" / "main.py").touch()
    (elsewhere / "src" / "benchwarmers_client" / "main.py").chmod(0o600)
    assert wheel.build(elsewhere).sha256 == wheel.build(CLIENT).sha256


@pytest.mark.parametrize("text", [None, "", "[project", "[project]\nname = 'x'"])
def test_a_server_without_its_client_says_so(tmp_path: Path, text: str | None) -> None:
    if text is not None:
        (tmp_path / "pyproject.toml").write_text(text)
    with pytest.raises(wheel.NoSource):
        wheel.build(tmp_path)


def test_the_server_tells_where_it_is_and_gives_it_without_a_key(live: Live) -> None:
    told = live.send("GET", "/bench/client").json
    made = wheel.build(CLIENT)
    assert told["url"] == f"{live.url}/bench/client/{made.file}"
    assert (told["file"], told["sha256"], told["size"], told["version"]) == (made.file, made.sha256, len(made.data), __version__)
    assert told["install"]["pipx"] == f"pipx install {told['url']}"
    got = live.send("GET", f"/bench/client/{made.file}")
    assert (got.status, got.body) == (200, made.data)
    head = live.send("HEAD", f"/bench/client/{made.file}")
    assert (head.status, head.headers["content-length"]) == (200, str(len(made.data)))
    assert live.send("GET", "/bench/client", key="bw_live_nosuchkey").status == 401


@pytest.mark.parametrize("name", ["benchwarmers_client-0.0.0-py3-none-any.whl", "x", "..%2Fpyproject.toml", "%00"])
def test_no_other_file_is_given(live: Live, name: str) -> None:
    answer = live.send("GET", f"/bench/client/{name}")
    assert (answer.status, answer.json["code"]) == (404, "not_found")
