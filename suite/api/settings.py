"""Settings of a team: the server's list, what each may be, and what the team has set."""

from __future__ import annotations

from typing import Any

from rest_framework.request import Request
from rest_framework.response import Response

from panels.api.wording import to_json
from suite import teamsettings
from suite.api.problems import Missing, Unprocessable, Wrong
from suite.api.view import View
from suite.teamsettings import Shown


def shape(one: Shown) -> dict[str, Any]:
    return {
        "object": "setting",
        "key": one.kind.name,
        "value": one.value,
        "default": one.kind.default,
        "is_set": one.changed_at is not None,
        "schema": dict(one.kind.schema),
        "tells": one.kind.tells,
        "changed_at": to_json(one.changed_at),
        "changed_by": one.changed_by or None,
    }


class SettingPaths(View):
    filters = ("team",)

    def team(self) -> str:
        """Whose settings are meant: the caller's team's; an admin may name another. Errors: Missing."""
        asked = self.filters_wanted().get("team", [self.caller.team])[-1]
        if asked != self.caller.team and not self.caller.may("admin"):
            raise Missing("team", asked)
        return asked

    def handle_exception(self, exc: Exception) -> Response:
        match exc:
            case teamsettings.SettingUnknown():
                exc = Unprocessable("unknown_setting", f"There is no setting {str(exc)[:80]}. There are: {', '.join(teamsettings.KINDS)}.")
            case teamsettings.SettingRefused():
                exc = Unprocessable("invalid_request" if exc.code == "invalid" else exc.code, f"value {exc}", [Wrong("/value", exc.code, str(exc))])
        return super().handle_exception(exc)


class Settings(SettingPaths):
    scopes = {"GET": ("settings:read",)}

    def get(self, request: Request) -> Response:
        """Lists every setting as it stands for the team."""
        return Response({"data": [shape(one) for one in teamsettings.shown(self.team())], "next": None})


class SettingsSchema(SettingPaths):
    scopes = {"GET": ("settings:read",)}

    def get(self, request: Request) -> Response:
        """Says what there is to set, as a JSON Schema."""
        said = {name: {**kind.schema, "default": kind.default, "description": kind.tells} for name, kind in sorted(teamsettings.KINDS.items())}
        return Response({"$schema": "https://json-schema.org/draft/2020-12/schema", "type": "object", "properties": said, "additionalProperties": False})


class Setting(SettingPaths):
    scopes = {"GET": ("settings:read",), "PUT": ("settings:write",), "DELETE": ("settings:write",)}

    def get(self, request: Request, key: str) -> Response:
        """Shows one setting as it stands for the team."""
        return Response(shape(teamsettings.find(self.team(), key)))

    def put(self, request: Request, key: str) -> Response:
        """Sets it for the team, from the next launch on."""
        team = self.team()
        teamsettings.find(team, key)
        body = self.body(("value",))
        if "value" not in body:
            raise Unprocessable("invalid_request", "value must be given; DELETE puts the default back.", [Wrong("/value", "missing", "is needed.")])
        return Response(shape(teamsettings.change(team, key, body["value"], self.actor)))

    def delete(self, request: Request, key: str) -> Response:
        """Puts the default back."""
        teamsettings.reset(self.team(), key, self.actor)
        return Response(status=204)
