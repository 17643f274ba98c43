"""Whether a command is the one that launched a run before: then it follows that run instead of paying for another.

argv, folder, commit, what is not committed ─▶ a digest ─▶ the Idempotency-Key of the launch, which the server keeps for 24 hours
--fresh ─▶ a mark beside the digest, kept here for as long, so that the next identical command follows the new run
"""

from __future__ import annotations

import hashlib
import subprocess
import time
import uuid
from collections.abc import Sequence
from pathlib import Path

from benchwright.cli import kept
from benchwright.cli.session import Session

GIT_S = 20.0
# Of a large file that git does not know, its size and time stand for its content.
WHOLE_BYTES = 16 * 1024 * 1024
# They change what is printed, not what is launched.
NO_MATTER = ("--fresh", "--debug", "--no-wait")
NO_MATTER_WITH_VALUE = ("--output",)


def digest_of(arguments: Sequence[str], folder: Path) -> str:
    """Makes one digest of a command and of the working tree that it runs in."""
    found = hashlib.sha256()
    for part in (*meant(arguments), str(folder), *tree(folder)):
        found.update(part.encode("utf-8", "surrogateescape") + b"\0")
    return found.hexdigest()


def meant(arguments: Sequence[str]) -> list[str]:
    left, found = iter(arguments), []
    for part in left:
        if part in NO_MATTER_WITH_VALUE:
            next(left, None)
        elif part not in NO_MATTER and not part.startswith(tuple(f"{name}=" for name in NO_MATTER_WITH_VALUE)):
            found.append(part)
    return found


def tree(folder: Path) -> list[str]:
    """Gives the commit and a digest of what is not committed; nothing outside a repository."""
    head = git(folder, "rev-parse", "--verify", "-q", "HEAD")
    top = git(folder, "rev-parse", "--show-toplevel")
    if top is None:
        return []
    root = Path(top.decode("utf-8", "surrogateescape").rstrip("\n"))
    since = ("HEAD",) if head else ("--cached",)
    dirt = hashlib.sha256(git(root, "diff", *since, "--binary", "--no-ext-diff") or b"")
    for name in sorted((git(root, "ls-files", "-z", "--others", "--exclude-standard") or b"").split(b"\0")):
        if name:
            dirt.update(name + b"\0" + content(root / name.decode("utf-8", "surrogateescape")))
    return [(head or b"").decode().strip(), dirt.hexdigest()]


def content(path: Path) -> bytes:
    try:
        state = path.lstat()
        if path.is_symlink() or not path.is_file() or state.st_size > WHOLE_BYTES:
            return f"{state.st_mode} {state.st_size} {state.st_mtime_ns}".encode()
        return hashlib.sha256(path.read_bytes()).digest()
    except OSError:
        return b"?"


def git(folder: Path, *order: str) -> bytes | None:
    try:
        done = subprocess.run(["git", "-C", str(folder), *order], capture_output=True, timeout=GIT_S, check=False, stdin=subprocess.DEVNULL)  # noqa: S603, S607
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout if done.returncode == 0 else None


def key_of(session: Session, digest: str, *, is_fresh: bool = False) -> str:
    """Gives the Idempotency-Key of a command; a new one where it is begun anew."""
    if is_fresh:
        mark = uuid.uuid4().hex[:12]
        kept.changed(session, "fresh", digest, {"mark": mark, "at": time.time()})
    else:
        mark = kept.begun_anew(session, digest)
    return f"cli-{digest[:40]}{f'-{mark}' if mark else ''}"
