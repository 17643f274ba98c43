"""Who is calling and with what, what is ready for them, and where their runs could run."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from django.db import connection
from django.utils import timezone
from rest_framework.request import Request
from rest_framework.response import Response

from access import budgets
from access.caller import Caller
from access.people import named, role_of
from catalog import endpoint_keys
from catalog.load import load_models
from health import budgets as money
from health import figures, pulse
from health.costs import usd_text
from panels.api.wording import to_json
from suite import backends, teamsettings
from suite.api.tokens import of_caller
from suite.api.view import View

# What somebody needs who launches runs and reads what came of them.
STARTER = ("runs:read", "runs:write", "artifacts:read", "billing:read", "registry:read")
HARNESSES = {
    "benchwright": ("The server's own: built-in graders and scorers as code.", ""),
    "inspect": ("Inspect AI", "Adapters to other harnesses are not built yet."),
    "lmeval": ("lm-evaluation-harness", "Adapters to other harnesses are not built yet."),
    "lighteval": ("LightEval", "Adapters to other harnesses are not built yet."),
    "harbor": ("Harbor", "Adapters to other harnesses are not built yet."),
}


class Me(View):
    scopes = {"GET": ()}

    def get(self, request: Request) -> Response:
        """Tells who is calling: user, team, role, scopes, token, where runs go by default, and budgets."""
        caller = self.caller
        person = named(caller.owner)
        return Response(
            {
                "object": "me",
                "user": {"name": caller.owner, "is_person": person is not None},
                "team": caller.team or None,
                "role": role_of(person) if person is not None else None,
                "scopes": sorted(caller.scopes),
                "token": of_caller(caller),
                "default_compute": backends.default_for(caller.team),
                "budgets": [budget_of(one) for one in money.standings(own_budgets(caller), timezone.now())],
            }
        )


def own_budgets(caller: Caller) -> list[budgets.Limit]:
    """The budgets that whatever a caller asks falls under."""
    found = list(budgets.load().of(caller.owner, caller.team, ""))
    if caller.budget_usd is not None:
        found.append(budgets.Limit("key", caller.key_name, caller.budget_usd, key_id=caller.key_id))
    return found


def budget_of(one: money.Standing) -> dict[str, Any]:
    return {
        "kind": one.limit.kind,
        "name": one.limit.name,
        "budget_usd": to_json(one.limit.budget_usd),
        "spent_usd": usd_text(one.spent_pusd),
        "reserved_usd": usd_text(one.reserved_pusd),
        "left_usd": usd_text(one.left_pusd),
        "resets_at": to_json(one.resets_at),
    }


# ------------------------------------------------------------------ the doctor


@dataclass(frozen=True, slots=True)
class Check:
    """Shape: `hint` says what to do, empty where nothing is. It names no key, no path and nobody."""

    name: str
    ok: bool
    hint: str = ""


class Doctor(View):
    scopes = {"GET": ()}

    def get(self, request: Request) -> Response:
        """Looks at what a caller needs, from the token to the sandbox, and says what to do where something is missing."""
        found = list(examined(self.caller))
        return Response({"object": "doctor", "ok": all(check.ok for check in found), "checks": [to_json(check) for check in found]})


def examined(caller: Caller) -> Iterator[Check]:
    yield token(caller)
    missing = [scope for scope in STARTER if not caller.may(scope)]
    yield Check("scopes", not missing, f"Missing: {', '.join(missing)}. Make a token with them under Keys." if missing else "")
    for look in LOOKS:
        yield look()
    spent = [one.limit for one in money.standings(own_budgets(caller), timezone.now()) if not one.left_pusd]
    yield Check("budget", not spent, f"Nothing is left of {money.said(spent, False)}." if spent else "")


def token(caller: Caller) -> Check:
    if caller.is_dry:
        return Check("token", True, "This is a test token: no model is asked, and nothing is spent.")
    return Check("token", True)


def database() -> Check:
    with connection.cursor() as cursor:
        cursor.execute("SELECT 1")
        cursor.fetchone()
    return Check("database", True)


def provider_secret() -> Check:
    found = endpoint_keys.every_source()
    broken = [name for name, _, problem in found if problem]
    if not found:
        return Check("provider_secret", False, "There is no endpoint yet. Add one in the pages, or by POST /bench/endpoints.")
    if len(broken) == len(found):
        return Check("provider_secret", False, "No endpoint's key can be read. `manage.py doctor` says why.")
    if all(source == "none" for _, source, _ in found):
        return Check("provider_secret", True, "No endpoint has a key: right for model servers of your own, else set one.")
    return Check("provider_secret", True)


def models() -> Check:
    there = any(not model.retired for model in load_models().values())
    return Check("models", there, "" if there else "No model is on the bench. Discover lists what endpoints serve.")


def sandbox() -> Check:
    trouble = backends.trouble(teamsettings.LOCAL)
    return Check("sandbox", not trouble, trouble)


def queue() -> Check:
    age_s = figures.heartbeat_age_s(timezone.now())
    alive = age_s is not None and age_s < pulse.ALIVE_S
    return Check("queue", alive, "" if alive else "The queue does not work, so runs wait. `manage.py serve` starts it; see its log.")


LOOKS: tuple[Callable[[], Check], ...] = (database, provider_secret, models, sandbox, queue)


# ------------------------------------------------------------------ where runs run


class Backends(View):
    scopes = {"GET": ("runs:read",)}

    def get(self, request: Request) -> Response:
        """Lists where scorers and model code can run, and whether they can at the moment."""
        return Response({"data": [to_json(one) for one in backends.every(self.caller.team)], "next": None})


class Harnesses(View):
    scopes = {"GET": ("runs:read",)}

    def get(self, request: Request) -> Response:
        """Lists harnesses by the names that a launch knows, and which are there."""
        data = [
            {"object": "harness", "name": name, "title": title, "installed": not hint, "is_default": name == "benchwright", "hint": hint or None}
            for name, (title, hint) in HARNESSES.items()
        ]
        return Response({"data": data, "next": None})
