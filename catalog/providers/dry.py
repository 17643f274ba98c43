"""No provider at all: one fixed answer, made in this process, for rehearsals. What personal test tokens set off goes here."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from catalog.providers import Listed, Local, Provider
from wire import refusals
from wire.errors import UpstreamError


class Dry(Provider):
    kind = "dry"
    title = "Dry run: a fixed answer, no model"
    dialect = "openai-chat"

    def chat_url(self, base_url: str, served_name: str, stream: bool) -> str:
        return "dry:" + served_name

    def models_url(self, base_url: str) -> str:
        return "dry:"

    def headers(self, key: str) -> dict[str, str]:
        return {}

    def local(self) -> Local | None:
        from catalog import dry_calls

        return dry_calls.CALLS

    def read_models(self, body: Any) -> list[Listed]:
        return [Listed(str(item["id"])) for item in body["data"]]

    def read_error(self, status: int, headers: Mapping[str, str], body: bytes) -> UpstreamError:
        return refusals.read(status, headers, body, 0.0)


PROVIDER = Dry()
