"""Collections: what can be asked, who sits in them, what verdicts say of those, and changing all that."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from typing import Any

from django.utils import timezone
from rest_framework.request import Request
from rest_framework.response import Response

from panels import collections, editing, figures, recent, records, standing
from panels.api import collection_shapes, shapes
from panels.api.view import View, answer, listed, not_found
from panels.api.wording import to_json
from panels.figures import Found
from panels.recent import Recent


def with_record(collection: collections.Collection, found: Mapping[str, Found], lately: Mapping[str, Recent]) -> dict[str, Any]:
    """A collection with what verdicts say of all answers in it together, and what its panels came to lately."""
    said: dict[str, Any] = to_json(collection)
    return {**said, "record": to_json(found.get(collection.name, figures.NOTHING_FOUND)), "recent": to_json(lately[collection.name])}


def with_own_record(collection: collections.Collection) -> dict[str, Any]:
    now = timezone.now()
    return with_record(collection, figures.of_collections(now, collection.name), recent.of_collections([collection.name], now))


class CollectionPaths(View):
    def handle_exception(self, exc: Exception) -> Response:
        if isinstance(exc, editing.UnknownCollection):
            exc = not_found("collection", str(exc))
        return super().handle_exception(exc)


class Collections(CollectionPaths):
    scopes = {"GET": ("read", "ask")}

    @shapes.described(operation_id="list_collections", parameters=shapes.PAGE, responses=shapes.page_of(collection_shapes.Collection))
    def get(self, request: Request) -> Response:
        """Lists collections by name. Who may ask and not read sees those that may be asked."""
        may_see = None if self.caller.may("read") else self.caller.may_ask_collection
        page, now = editing.page(*self.page_wanted(), may_see), timezone.now()
        found, lately = figures.of_collections(now), recent.of_collections([one.name for one in page.data], now)
        return listed(page.mapped(lambda one: with_record(one, found, lately)))

    @shapes.described(operation_id="add_collection", request=collection_shapes.CollectionAsked, responses={201: collection_shapes.Collection})
    def post(self, request: Request) -> Response:
        """Adds a collection."""
        return answer(with_own_record(editing.make(self.body(editing.FIELDS), self.actor)), status=201)


class Collection(CollectionPaths):
    scopes = {"GET": ("read", "ask")}

    @shapes.described(operation_id="get_collection", responses=collection_shapes.CollectionWithRecord)
    def get(self, request: Request, name: str) -> Response:
        """Shows a collection, what verdicts in it say of each model, what that suggests, and how alike its members err."""
        if not self.caller.may("read") and not self.caller.may_ask_collection(name):
            raise editing.UnknownCollection(name)
        collection, now = editing.found(name), timezone.now()
        stands = standing.standing(collection, now)
        said = {field.name: getattr(stands, field.name) for field in fields(stands)}
        aliases = list(dict.fromkeys([*collection.members, *(one.model for one in stands.record)]))
        scores = {alias: word.share for alias, word in records.scores(name, aliases).items()}
        return answer({**with_own_record(collection), "records": said.pop("record"), "scores": scores, **said})

    @shapes.described(operation_id="change_collection", request=collection_shapes.CollectionAsked, responses=collection_shapes.Collection)
    def patch(self, request: Request, name: str) -> Response:
        """Changes what is given; a list of members or mergers is replaced whole."""
        return answer(with_own_record(editing.change(name, self.body(editing.FIELDS), self.actor)))

    @shapes.described(operation_id="delete_collection", request=None, responses={204: None})
    def delete(self, request: Request, name: str) -> Response:
        """Deletes a collection; its panels and verdicts stay on record under its name."""
        editing.delete(name, self.actor)
        return Response(status=204)
