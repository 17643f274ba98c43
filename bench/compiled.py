"""Builds the two load tools with whatever C compiler the machine has. `python -m bench.compiled` does it by hand."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

FOLDER = Path(__file__).resolve().parent
BUILT = FOLDER / "build"
TOOLS = ("upstream", "loadgen")


class CannotBuild(Exception):
    """The load tools cannot be built here; the message says why and what would help."""


def tools() -> dict[str, Path]:
    """Builds what is missing or older than its source. Errors: CannotBuild."""
    if not sys.platform.startswith("linux"):
        raise CannotBuild(f"The load tools use epoll and /proc, which {sys.platform} has not. Run them on Linux, or in Docker.")
    compiler = next((found for name in ("cc", "gcc", "clang", "tcc") if (found := shutil.which(name))), None)
    if compiler is None:
        raise CannotBuild("No C compiler (cc, gcc, clang or tcc) is on the PATH. Install one, on Debian with: apt-get install gcc libc6-dev.")
    BUILT.mkdir(exist_ok=True)
    for name in TOOLS:
        source, target = FOLDER / f"{name}.c", BUILT / name
        if target.exists() and target.stat().st_mtime > source.stat().st_mtime:
            continue
        done = subprocess.run([compiler, "-O2", "-Wall", "-o", str(target), str(source)], capture_output=True, text=True, check=False)
        if done.returncode:
            raise CannotBuild(f"{compiler} could not build {source.name}:\n{done.stderr.strip()}")
    return {name: BUILT / name for name in TOOLS}


if __name__ == "__main__":
    try:
        for path in tools().values():
            print(path)
    except CannotBuild as reason:
        print(f"Skipped: {reason}")
