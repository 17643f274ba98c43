"""Profiles: which server and token a name stands for, in ~/.config/benchwright/config.toml, which only its owner can read.

base_url=, BW_BASE_URL   ─▶ else the profile's ─▶ else a server on this machine ─▶ else http://127.0.0.1:8122
api_key=, BW_PAT         ─▶ else the profile's, to the profile's own address only ─▶ else, on this machine, the operator's key
"""

from __future__ import annotations

import os
import re
import tempfile
import tomllib
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from benchwarmers_client import server
from benchwarmers_client.server import Server

from benchwright.errors import BenchwrightError

DEFAULT = "default"
NAME = re.compile(r"[A-Za-z0-9_-]{1,60}")


class BadProfile(BenchwrightError):
    """The message says which file or name, and what to do."""


@dataclass(frozen=True, slots=True)
class Profile:
    """Shape: both may be empty."""

    base_url: str = ""
    token: str = field(default="", repr=False)


def config_file(environment: Mapping[str, str] = os.environ) -> Path:
    home = environment.get("XDG_CONFIG_HOME") or str(Path(environment.get("HOME") or Path.home()) / ".config")
    return Path(home) / "benchwright" / "config.toml"


def cache_folder(environment: Mapping[str, str] = os.environ) -> Path:
    home = environment.get("XDG_CACHE_HOME") or str(Path(environment.get("HOME") or Path.home()) / ".cache")
    return Path(home) / "benchwright"


def checked_name(name: str) -> str:
    """Errors: BadProfile."""
    if not NAME.fullmatch(name):
        raise BadProfile("A profile's name is made of letters, digits, dashes and underscores.")
    return name


def all_of(path: Path) -> dict[str, dict[str, Any]]:
    """Reads every profile. Errors: BadProfile for a file that is none."""
    try:
        found = tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return {}
    except (OSError, ValueError) as error:
        raise BadProfile(f"{path} cannot be read ({type(error).__name__}). Mend it, or delete it and run benchwright login.") from None
    return {name: value for name, value in found.items() if isinstance(value, dict)}


def read(name: str | None, environment: Mapping[str, str] = os.environ) -> Profile:
    """Gives a profile; the default one may be missing. Errors: BadProfile."""
    wanted = checked_name(name or environment.get("BW_PROFILE") or DEFAULT)
    found = all_of(config_file(environment)).get(wanted)
    if found is None:
        if wanted != DEFAULT:
            raise BadProfile(f"There is no profile {wanted} in {config_file(environment)}. Make it: benchwright --profile {wanted} login")
        return Profile()
    return Profile(str(found.get("base_url") or ""), str(found.get("token") or ""))


def write(name: str, profile: Profile, environment: Mapping[str, str] = os.environ) -> Path:
    """Keeps a profile beside the others. The file is replaced in one step, and nobody else can read it at any moment. Errors: BadProfile, OSError."""
    path = config_file(environment)
    every = all_of(path)
    every[checked_name(name)] = {"base_url": profile.base_url, "token": profile.token}
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    text = "".join(f"[{n}]\n" + "".join(f"{k} = {quoted(v)}\n" for k, v in values.items() if plain(v)) + "\n" for n, values in every.items())
    descriptor, temporary = tempfile.mkstemp(dir=path.parent, prefix=".config-")  # 0600 from its first moment on
    try:
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            file.write(text)
        os.replace(temporary, path)
    except BaseException:
        with suppress(OSError):
            os.unlink(temporary)
        raise
    return path


def plain(value: Any) -> bool:
    return isinstance(value, str | int | bool)


def quoted(value: Any) -> str:
    """Writes a TOML value."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        return str(value)
    escaped = "".join(f"\\u{ord(c):04x}" if ord(c) < 32 or ord(c) == 127 else "\\" + c if c in '"\\' else c for c in str(value))
    return f'"{escaped}"'


def find(api_key: str | None, base_url: str | None, profile: str | None, environment: Mapping[str, str] = os.environ) -> Server:
    """Finds the server that is meant and the key that goes there. Errors: BadProfile; server.BadAddress."""
    said = base_url or environment.get("BW_BASE_URL") or ""
    kept = read(profile, environment)
    # A key of the gateway that the environment holds for another command is not sent from here.
    own = {name: value for name, value in environment.items() if name != "BENCHWARMERS_KEY"}
    found = server.find(said or kept.base_url or None, own)
    is_profiles = bool(kept.token) and (not said or (bool(kept.base_url) and server.checked_url(kept.base_url) == found.url))
    key = api_key or environment.get("BW_PAT", "").strip() or (kept.token if is_profiles else "") or found.key
    return Server(found.url, key)
