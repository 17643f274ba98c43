"""A git repository at one commit, and which ones may be read at all: those that the data folder's config/repos.json names, or that lie below its roots.

ReviewError   what somebody who seeds tasks did wrong, or what their repository lacks; told in one line
"""

from __future__ import annotations

import io
import json
import os
import re
import shutil
import subprocess
import tarfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path, PurePosixPath
from typing import Any

FIELDS = ("path", "tests", "packages", "licence", "leave_out")
NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,79}")
LARGEST = 1024 * 1024
GIT_S = 120


class ReviewError(Exception):
    """The message says what is wrong and what to do."""


@dataclass(frozen=True, slots=True)
class Place:
    """One repository as config/repos.json tells of it.

    Shape: `tests` are pytest's arguments that say which tests to run; `packages` is the folder of packages that they need (a virtual environment's
    site-packages); `leave_out` are folders whose functions are not taken.
    """

    name: str
    folder: Path
    tests: tuple[str, ...] = ()
    packages: Path | None = None
    licence: str = ""
    leave_out: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Commit:
    """Shape: `removed` and `added` are not kept: they are asked for by file."""

    id: str
    parent: str
    date: datetime
    subject: str


# ------------------------------------------------------------------ which repositories there are


def config(home: Path) -> dict[str, Any]:
    """Reads config/repos.json. Shape: {"roots": [folder], "repos": {name: folder, or an object with FIELDS}}. Errors: ReviewError."""
    path = home / "config" / "repos.json"
    try:
        found = json.loads(path.read_bytes())
    except FileNotFoundError:
        return {"roots": [], "repos": {}}
    except (OSError, ValueError) as error:
        raise ReviewError(f"{path} cannot be read: {error}") from None
    if not isinstance(found, dict) or set(found) - {"roots", "repos"}:
        raise ReviewError(f'{path} must be an object with "roots", a list of folders, and "repos", names and their folders.')
    roots, repos = found.get("roots", []), found.get("repos", {})
    if not isinstance(roots, list) or not all(isinstance(root, str) for root in roots):
        raise ReviewError(f"{path}: roots must be a list of folders.")
    if not isinstance(repos, dict) or not all(NAME.fullmatch(name) for name in repos):
        raise ReviewError(f"{path}: repos must be an object whose names are made of letters, digits, dots, dashes and underscores.")
    return {"roots": roots, "repos": repos}


def find(home: Path, asked: str) -> Place:
    """Finds a repository by its name in config/repos.json, or by a path below one of its roots. Errors: ReviewError."""
    told = config(home)
    where = home / "config" / "repos.json"
    if asked in told["repos"]:
        return place(where, asked, told["repos"][asked])
    folder = real(Path(asked))
    allowed = [real(Path(root)) for root in told["roots"]]
    if not any(folder == root or folder.is_relative_to(root) for root in allowed):
        names = ", ".join(sorted(told["repos"])) or "none yet"
        raise ReviewError(f"{asked} is no name of {where} (there are: {names}), and no folder below one of its roots. Add it there first.")
    top = real(top_of(folder))
    if not any(top == root or top.is_relative_to(root) for root in allowed):
        raise ReviewError(f"{asked} belongs to a repository at {top}, which is below none of the roots in {where}.")
    return Place(re.sub(r"[^A-Za-z0-9._-]", "-", top.name).lstrip("-._") or "repository", top)


def place(where: Path, name: str, told: Any) -> Place:
    told = {"path": told} if isinstance(told, str) else told
    if not isinstance(told, Mapping) or not isinstance(told.get("path"), str):
        raise ReviewError(f"{where}: {name} must be a folder, or an object with its path.")
    if unknown := [field for field in told if field not in FIELDS]:
        raise ReviewError(f"{where}: {name} has no field {', '.join(unknown)}. There are: {', '.join(FIELDS)}.")
    lists: dict[str, tuple[str, ...]] = {}
    for field in ("tests", "leave_out"):
        value = told.get(field, [])
        if not isinstance(value, list) or not all(isinstance(one, str) and safe(one.partition("::")[0]) for one in value):
            raise ReviewError(f"{where}: {field} of {name} must be a list of paths inside the repository.")
        lists[field] = tuple(value)
    folder, packages = real(Path(told["path"])), told.get("packages")
    if packages is not None and not (isinstance(packages, str) and Path(packages).expanduser().is_dir()):
        raise ReviewError(f"{where}: packages of {name} must be a folder, such as a virtual environment's site-packages.")
    return Place(name, top_of(folder), lists["tests"], real(Path(packages)) if packages else None, str(told.get("licence", "")), lists["leave_out"])


def real(path: Path) -> Path:
    """Follows every link, so that a path is compared as what it is."""
    return Path(os.path.realpath(path.expanduser()))


def safe(name: str) -> bool:
    path = PurePosixPath(name)
    return bool(name) and not path.is_absolute() and ".." not in path.parts and not name.startswith("-") and "\0" not in name


def top_of(folder: Path) -> Path:
    """Finds the top of the repository that a folder is in. Errors: ReviewError."""
    if not folder.is_dir():
        raise ReviewError(f"{folder} is no folder.")
    return Path(git(folder, "rev-parse", "--show-toplevel").decode().strip())


# ------------------------------------------------------------------ git


def git(folder: Path, *arguments: str) -> bytes:
    """Runs git in a repository, without hooks, without any configuration but the repository's own, without the network. Errors: ReviewError."""
    program = shutil.which("git")
    if program is None:
        raise ReviewError("git is not installed.")
    line = [program, "--no-optional-locks", "-c", f"safe.directory={folder}", "-c", "core.hooksPath=/dev/null", "-c", "core.fsmonitor=false"]
    environment = {"PATH": os.defpath, "GIT_CONFIG_NOSYSTEM": "1", "HOME": "/nonexistent", "GIT_TERMINAL_PROMPT": "0", "LC_ALL": "C", "GIT_ALLOW_PROTOCOL": ""}
    try:
        done = subprocess.run([*line, "-C", str(folder), *arguments], capture_output=True, env=environment, timeout=GIT_S, check=False)  # noqa: S603
    except subprocess.TimeoutExpired:
        raise ReviewError(f"git {arguments[0]} took longer than {GIT_S} s in {folder}.") from None
    if done.returncode:
        raise ReviewError(f"git {arguments[0]} failed in {folder}: {done.stderr.decode(errors='replace').strip()[:300]}")
    return done.stdout


def commit_of(folder: Path, asked: str = "HEAD") -> Commit:
    """Pins a commit. Errors: ReviewError."""
    if asked.startswith("-"):
        raise ReviewError(f"{asked} names no commit.")
    said = git(folder, "log", "-1", "--no-show-signature", "--format=%H%x00%P%x00%ct%x00%s", asked, "--").decode(errors="replace").strip("\n")
    return read_commit(said)


def read_commit(said: str) -> Commit:
    name, parents, seconds, subject = said.split("\0", 3)
    return Commit(name, parents.split(" ")[0], datetime.fromtimestamp(int(seconds), UTC), subject)


def paths(folder: Path, commit: str) -> list[str]:
    """Lists the files of a commit."""
    return [name for name in git(folder, "ls-tree", "-r", "-z", "--name-only", "--full-tree", commit).decode(errors="surrogateescape").split("\0") if name]


def content(folder: Path, commit: str, path: str) -> str | None:
    """Reads a file as it stands in a commit, with newlines normalised and nothing else; None for what is no text or is not there."""
    try:
        found = git(folder, "cat-file", "blob", f"{commit}:{path}")
    except ReviewError:
        return None
    return text_of(found)


def text_of(found: bytes) -> str | None:
    if len(found) > LARGEST:
        return None
    try:
        text = found.decode("utf-8")
    except UnicodeDecodeError:
        return None
    return None if "\0" in text else text.removeprefix("\ufeff").replace("\r\n", "\n").replace("\r", "\n")


def unpack(folder: Path, commit: str, into: Path) -> None:
    """Writes the files of a commit into an empty folder. Errors: ReviewError."""
    with tarfile.open(fileobj=io.BytesIO(git(folder, "archive", "--format=tar", commit))) as archive:
        try:
            archive.extractall(into, filter="data")
        except (tarfile.TarError, OSError) as error:
            raise ReviewError(f"The files of {commit[:12]} cannot be unpacked: {error}") from None


def history(folder: Path, commit: str, most: int = 5000) -> Iterator[Commit]:
    """Walks commits with one parent, the newest first."""
    said = git(folder, "log", "--no-show-signature", "--no-merges", f"--max-count={most}", "--format=%H%x00%P%x00%ct%x00%s%x01", commit, "--")
    for part in said.decode(errors="replace").split("\x01"):
        if part.strip() and (found := read_commit(part.lstrip("\n"))).parent:
            yield found


def message(folder: Path, commit: Commit) -> str:
    """Reads a commit's whole message."""
    return git(folder, "log", "-1", "--no-show-signature", "--format=%B", commit.id, "--").decode(errors="replace")


def changed(folder: Path, commit: Commit) -> list[tuple[str, str]]:
    """Lists what a commit changed. Shape: a letter of git's (M, A, D, …) and the path."""
    said = git(folder, "diff-tree", "-r", "-z", "--no-renames", "--name-status", commit.parent, commit.id, "--").decode(errors="surrogateescape").split("\0")
    return list(zip(said[0:-1:2], said[1::2], strict=False))


def lines_that_were(folder: Path, commit: str, path: str) -> frozenset[str]:
    """Gives every line, without its indentation, that a file once had and lost."""
    said = git(folder, "log", "--no-show-signature", "--follow", "-p", "--no-color", "--no-ext-diff", "--format=", commit, "--", path).decode(errors="replace")
    return frozenset(line[1:].strip() for line in said.splitlines() if line.startswith("-") and not line.startswith("---"))
