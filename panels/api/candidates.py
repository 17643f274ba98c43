"""Candidates: what endpoints serve that is not on the roster."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

from rest_framework.request import Request
from rest_framework.response import Response

from access.auth import NotAllowed
from access.pages import sliced
from catalog import candidates
from catalog.candidates import Candidate, Kept
from catalog.editing import UnknownEndpoint
from panels.api import discover_shapes as found_shapes
from panels.api import shapes
from panels.api.discover import can_of, flag
from panels.api.view import View, not_found, text_of
from panels.api.wording import to_json
from wire.errors import CallerError

MOST = 500


class Candidates(View):
    scopes = {"GET": ("read",)}

    @shapes.described(operation_id="list_candidates", parameters=found_shapes.CANDIDATES, responses=found_shapes.CandidatePage)
    def get(self, request: Request) -> Response:
        """Lists what endpoints serve beyond the roster, as they last said; `listings` tells when that was, and what went wrong since."""
        limit, page_token = self.page_wanted()
        endpoint = request.query_params.get("endpoint", "")
        everything, asked, free = flag(request, "all"), flag(request, "refresh"), flag(request, "free")
        words, can = request.query_params.get("text", "").casefold().split(), can_of(request)
        try:
            if asked:
                if not self.caller.may("operate"):
                    raise NotAllowed("refresh asks endpoints, which needs the scope operate.")
                candidates.refresh_many([endpoint] if endpoint else None)
            found, lists = candidates.beyond(endpoint, everything)
        except UnknownEndpoint:
            raise not_found("endpoint", endpoint) from None
        found = [one for one in found if fits(one, words, free, can)]
        page = sliced(found, lambda one: (one.endpoint, one.served_name), limit, page_token)
        listings = [listing_shown(*one) for one in lists]
        return Response({"data": [shown(one) for one in page.data], "next": page.next, "total": len(found), "listings": listings})

    @shapes.described(operation_id="add_candidates", request=found_shapes.CandidatesAdded, responses={201: found_shapes.Added})
    def post(self, request: Request) -> Response:
        """Adds models that an endpoint serves to the roster, with what its list and the catalogs tell; nothing is asked of them, and what is there stays."""
        body = self.body(("endpoint", "served_names"))
        endpoint, wanted = text_of(body, "endpoint"), body.get("served_names")
        if not isinstance(wanted, list) or not 0 < len(wanted) <= MOST:
            raise CallerError("invalid_request", f"served_names must be a list of 1 to {MOST} names, as the endpoint knows its models.", field="served_names")
        try:
            return Response({"added": candidates.add(endpoint, wanted, self.actor)}, status=201)
        except UnknownEndpoint:
            raise not_found("endpoint", endpoint) from None


def fits(one: Candidate, words: list[str], free: bool, can: tuple[str, ...]) -> bool:
    """Whether it is what somebody looks for: all words in its name, free of cost, able to do what is named."""
    name = one.served_name.casefold()
    if not all(word in name for word in words) or any((fact := one.facts.get(what)) is None or fact.value is not True for what in can):
        return False
    return not free or is_free(one)


def is_free(one: Candidate) -> bool:
    amounts = [fact.value for name in ("input_usd_per_mtok", "output_usd_per_mtok") if (fact := one.facts.get(name)) is not None]
    return any(offer.free for offer in one.offers) or (len(amounts) == 2 and all(Decimal(amount) == 0 for amount in amounts))


def shown(one: Candidate) -> dict[str, Any]:
    return {
        "endpoint": one.endpoint,
        "served_name": one.served_name,
        "chat": one.chat,
        "free": is_free(one),
        "facts": to_json(one.facts),
        "offers": [{"source": o.source, "provider": o.provider, "served_name": o.served_name, "free": o.free, "prices": to_json(o.prices)} for o in one.offers],
        "on_roster": one.alias or None,
    }


def listing_shown(endpoint: str, kept: Kept | None, gone: frozenset[str] | None) -> dict[str, Any]:
    return {
        "endpoint": endpoint,
        "hub": kept.hub or None if kept else None,
        "models": len(kept.models) if kept else 0,
        "gone": None if gone is None else sorted(gone),
        "listed_at": to_json(kept.listed_at) if kept else None,
        "tried_at": to_json(kept.tried_at) if kept else None,
        "error": kept.error if kept else "",
    }
