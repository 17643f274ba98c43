"""Doors of what the contract names and this server does not do yet: each asks for its scope, then answers 501 with the feature's name."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django.urls import URLPattern, path
from rest_framework.request import Request
from rest_framework.response import Response

from suite.api.problems import NotYet
from suite.api.view import View
from suite.running.launching import find_run

SECRETS = ("The secrets proxy", "Keys of providers belong to endpoints: POST /bench/endpoints.")
HOSTS = ("The host policy", "Sandboxes have no network but the model proxy.")
HOOKS = ("Webhooks", "Follow a run's events, or wait for its end with ?wait=.")
TOLD = ("A run told in words", "GET /v1/runs/<id>/events and …/report say what happened.")
BLOCKED = ("The list of blocked hosts", "Sandboxes have no network but the model proxy, so every host is blocked.")

READ_S, WRITE_S = ("secrets:read",), ("secrets:write",)
READ_P, WRITE_P = ("host_policy:read",), ("host_policy:write",)
READ_H, WRITE_H = ("hooks:read",), ("hooks:write",)
# Path: the feature with what to do meanwhile, and the scopes by method.
DOORS: tuple[tuple[str, tuple[str, str], Mapping[str, tuple[str, ...]]], ...] = (
    ("runs/<plain:run>/narrate", TOLD, {"POST": ("runs:write",)}),
    ("runs/<plain:run>/blocked-hosts", BLOCKED, {"GET": ("runs:read",)}),
    ("secrets", SECRETS, {"GET": READ_S, "POST": WRITE_S}),
    ("secrets/<plain:secret>", SECRETS, {"GET": READ_S, "PATCH": WRITE_S, "DELETE": WRITE_S}),
    ("host-policy", HOSTS, {"GET": READ_P, "POST": WRITE_P}),
    ("host-policy/default", HOSTS, {"PUT": WRITE_P}),
    ("host-policy/starter-pack", HOSTS, {"POST": WRITE_P}),
    ("host-policy/blocked-hosts", HOSTS, {"GET": READ_P}),
    ("host-policy/<plain:rule>", HOSTS, {"DELETE": WRITE_P}),
    ("webhooks", HOOKS, {"GET": READ_H, "POST": WRITE_H}),
    ("webhooks/<plain:hook>", HOOKS, {"GET": READ_H, "PATCH": WRITE_H, "DELETE": WRITE_H}),
    ("webhooks/<plain:hook>/rotate-secret", HOOKS, {"POST": WRITE_H}),
    ("webhooks/<plain:hook>/test", HOOKS, {"POST": WRITE_H}),
    ("webhooks/<plain:hook>/deliveries", HOOKS, {"GET": READ_H}),
    ("webhooks/<plain:hook>/deliveries/<plain:delivery>/retry", HOOKS, {"POST": WRITE_H}),
)


class Shut(View):
    """One such door. `feature` and `instead` go into the answer."""

    feature = instead = ""

    def answer(self, request: Request, **named: Any) -> Response:
        if "run" in named:
            find_run(self.caller, str(named["run"]))
        raise NotYet(self.feature, self.instead)


def door(told: tuple[str, str], scopes: Mapping[str, tuple[str, ...]]) -> type[Shut]:
    """Makes the view of one path: only the methods that the contract names are there."""
    methods = {method.lower(): Shut.answer for method in scopes}
    return type("Door", (Shut,), {"feature": told[0], "instead": told[1], "scopes": dict(scopes), "__doc__": f"{told[0]}: not built yet.", **methods})


def paths() -> list[URLPattern]:
    """Gives their paths, once the kinds of names are known."""
    return [path(route, door(told, scopes).as_view()) for route, told, scopes in DOORS]
