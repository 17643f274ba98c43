"""The server's command line, kept warm: reads orders as JSON lines and runs them as `manage.py` would, without its start-up each time.

{"argv": ["roster", "load", "x.yaml"]}      → {"code": 0, "out": "…"}
{"rows": "health.Attempt", "where": {…}}    → {"rows": [{…}]}: what the database holds
{"user": {"name": "kim", "role": "judge"}}  → {"session": "…", "csrf": "…"}: a user's cookies, as if just signed in
{"update": "access.User", "where": {…}, "to": {…}} → {"rows": 1}: changes what the database holds
"""

from __future__ import annotations

import io
import json
import os
import sys
from contextlib import redirect_stderr, redirect_stdout
from typing import Any


def main() -> None:
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "benchwarmers.settings")
    import django

    django.setup()
    for line in sys.stdin:
        order = json.loads(line)
        answer = done(order)
        answers.write(json.dumps(answer, default=str) + "\n")
        answers.flush()


def done(order: dict[str, Any]) -> dict[str, Any]:
    if "argv" in order:
        return run(order["argv"])
    if "ring" in order:
        return ring(order["ring"])
    if "user" in order:
        return user(**order["user"])
    if "update" in order:
        return update(order["update"], order["where"], order["to"])
    return rows(order["rows"], order.get("where", {}))


def run(argv: list[str]) -> dict[str, Any]:
    from django.core.management import CommandError, call_command

    out = io.StringIO()
    with redirect_stdout(out), redirect_stderr(out):
        try:
            call_command(*argv, stdout=out, stderr=out)
        except CommandError as error:
            return {"code": 1, "out": f"{out.getvalue()}{error}"}
        except SystemExit as end:
            return {"code": end.code if isinstance(end.code, int) else 1, "out": f"{out.getvalue()}{'' if isinstance(end.code, int) else end.code}"}
    return {"code": 0, "out": out.getvalue()}


def ring(ahead_s: float) -> dict[str, Any]:
    from datetime import timedelta

    from django.utils import timezone

    from health import jobs

    return {"done": jobs.ring(timezone.now() + timedelta(seconds=ahead_s)), "registered": sorted(jobs.registered)}


def rows(label: str, where: dict[str, Any]) -> dict[str, Any]:
    from django.apps import apps
    from django.db import close_old_connections

    close_old_connections()
    return {"rows": list(apps.get_model(label).objects.filter(**where).values())}


def update(label: str, where: dict[str, Any], to: dict[str, Any]) -> dict[str, Any]:
    from django.apps import apps
    from django.db import close_old_connections

    close_old_connections()
    return {"rows": apps.get_model(label).objects.filter(**where).update(**to)}


def user(name: str, role: str) -> dict[str, Any]:
    from importlib import import_module

    from django.conf import settings
    from django.contrib.auth import BACKEND_SESSION_KEY, HASH_SESSION_KEY, SESSION_KEY
    from django.db import close_old_connections
    from django.utils.crypto import get_random_string

    from access.models import User

    close_old_connections()
    made = User.objects.create(username=name, role=role)
    session = import_module(settings.SESSION_ENGINE).SessionStore()
    session[SESSION_KEY] = str(made.pk)
    session[BACKEND_SESSION_KEY] = settings.AUTHENTICATION_BACKENDS[0]
    session[HASH_SESSION_KEY] = made.get_session_auth_hash()
    session.create()
    return {"session": session.session_key, "csrf": get_random_string(32)}


if __name__ == "__main__":
    main()
