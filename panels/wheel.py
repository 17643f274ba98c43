"""The client's wheel, made of its source folder by the standard library alone: the same bytes wherever and whenever it is made.

A server has no build backend and perhaps no network, and a pure Python wheel is no more than a zip file with three texts about itself. Nothing is
compressed: another zlib would make other bytes, and the sum would differ from host to host.

Source: https://packaging.python.org/en/latest/specifications/binary-distribution-format/ and …/core-metadata/
"""

from __future__ import annotations

import base64
import hashlib
import io
import re
import tomllib
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

OLDEST = (1980, 1, 1, 0, 0, 0)  # zip files know no earlier time
KEPT = (".py", ".typed")  # modules, and the mark that their types are meant for others
FILE_MODE = 0o100644 << 16


class NoSource(Exception):
    """The client's source is not beside this server, or is not in form."""


@dataclass(frozen=True, slots=True)
class Wheel:
    """Shape: `file` is the name that installers read; `sha256` in hex."""

    name: str
    version: str
    requires_python: str
    file: str
    sha256: str
    data: bytes


def build(folder: Path) -> Wheel:
    """Makes the wheel of a project with a `src` folder. Errors: NoSource."""
    try:
        project: dict[str, Any] = tomllib.loads((folder / "pyproject.toml").read_text(encoding="utf-8"))["project"]
        source = folder / "src"
        texts = {str(path.relative_to(source).as_posix()): path.read_bytes() for path in sorted(source.rglob("*")) if path.suffix in KEPT}
        readme = (folder / project["readme"]).read_text(encoding="utf-8")
        name, version = str(project["name"]), str(project["version"])
    except (OSError, ValueError, KeyError) as error:
        raise NoSource(f"The client's source in {folder.name}/ cannot be read ({type(error).__name__}).") from None
    if not texts:
        raise NoSource(f"There is no client in {folder.name}/src.")
    stem = f"{re.sub(r'[-_.]+', '_', name).lower()}-{version}"
    about = f"{stem}.dist-info"
    texts[f"{about}/METADATA"] = metadata(project, readme).encode()
    texts[f"{about}/WHEEL"] = b"Wheel-Version: 1.0\nGenerator: benchwarmers\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
    texts[f"{about}/entry_points.txt"] = entry_points(project["scripts"]).encode()
    texts[f"{about}/RECORD"] = record(texts, f"{about}/RECORD").encode()
    data = zipped(texts)
    return Wheel(name, version, str(project["requires-python"]), f"{stem}-py3-none-any.whl", hashlib.sha256(data).hexdigest(), data)


def metadata(project: Mapping[str, Any], readme: str) -> str:
    head = [
        "Metadata-Version: 2.4",
        f"Name: {project['name']}",
        f"Version: {project['version']}",
        f"Summary: {project['description']}",
        f"License-Expression: {project['license']}",
        f"Requires-Python: {project['requires-python']}",
        *(f"Requires-Dist: {one}" for one in project["dependencies"]),
        "Description-Content-Type: text/markdown",
    ]
    return "\n".join(head) + "\n\n" + readme


def entry_points(scripts: Mapping[str, str]) -> str:
    return "[console_scripts]\n" + "".join(f"{name} = {what}\n" for name, what in scripts.items())


def record(texts: Mapping[str, bytes], own: str) -> str:
    """The list of all files with their sums; its own line has none."""
    sums = {path: base64.urlsafe_b64encode(hashlib.sha256(text).digest()).rstrip(b"=").decode() for path, text in texts.items()}
    return "".join(f"{path},sha256={sums[path]},{len(texts[path])}\n" for path in texts) + f"{own},,\n"


def zipped(texts: Mapping[str, bytes]) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_STORED) as archive:
        for path, text in texts.items():
            entry = zipfile.ZipInfo(path, OLDEST)
            entry.external_attr, entry.create_system = FILE_MODE, 3
            archive.writestr(entry, text)
    return out.getvalue()
