"""Public catalogs of models: how old what each says is, and how its last reading went."""

from __future__ import annotations

from rest_framework.request import Request
from rest_framework.response import Response

from access.pages import sliced
from catalog import reading
from catalog.reading import SourceState
from panels.api import discover_shapes, shapes
from panels.api.view import View, listed


class Sources(View):
    scopes = {"GET": ("read",)}

    @shapes.described(operation_id="list_sources", parameters=shapes.PAGE, responses=shapes.page_of(discover_shapes.Source))
    def get(self, request: Request) -> Response:
        """Lists public catalogs. The setting catalog.sources says which are read, the schedule catalog when; running it reads them now."""
        return listed(sliced(reading.states(), lambda one: (one.name,), *self.page_wanted()).mapped(as_json))


def as_json(one: SourceState) -> dict[str, object]:
    return {
        "name": one.name,
        "title": one.title,
        "url": one.url,
        "on": one.is_on,
        "read_at": one.read_at,
        "changed_at": one.changed_at,
        "tried_at": one.tried_at,
        "error": one.error,
        "offers": one.offers,
        "skipped": len(one.skipped),
    }
