"""Tries in a fresh process whether the code and settings on disk would serve: run before a reload, so that a broken change stops nothing.

Shape: `python -m benchwarmers.rehearsal` prints nothing and exits 0, or prints one line that says why not and exits 1.
"""

from __future__ import annotations

import subprocess
import sys

from django.conf import settings

from benchwarmers.settings import child_environment

TIMEOUT_S = 60


def reason_against() -> str | None:
    """Runs the rehearsal. None: reload."""
    try:
        done = subprocess.run(
            [sys.executable, "-m", "benchwarmers.rehearsal"],
            cwd=settings.BASE_DIR,
            env=child_environment(DJANGO_SETTINGS_MODULE="benchwarmers.settings"),
            capture_output=True,
            text=True,
            timeout=TIMEOUT_S,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return f"the new code did not load within {TIMEOUT_S} s"
    if done.returncode == 0:
        return None
    lines = (done.stdout.strip() or done.stderr.strip()).splitlines()
    return lines[-1] if lines else f"exit code {done.returncode}"


def rehearse() -> str | None:
    import importlib

    import django
    from django.db.utils import DatabaseError

    django.setup()
    importlib.import_module("benchwarmers.asgi")
    from benchwarmers import schema

    try:
        now = schema.read()
    except DatabaseError:
        return None  # away for now; the running workers bear that, and so will the new ones
    if now.pending or now.unknown:
        return f"the database's schema is another one ({(now.pending + now.unknown)[0]}); stop and start the server instead"
    return None


if __name__ == "__main__":
    if reason := rehearse():
        print(reason)
        sys.exit(1)
