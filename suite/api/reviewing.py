"""Review tasks by the API: packs that come with the server, and a verdict kept as private tasks."""

from __future__ import annotations

from typing import Any

from rest_framework.request import Request
from rest_framework.response import Response

from access import audit, preferences
from suite.api import shapes
from suite.api.problems import Missing, wrong
from suite.api.repeats import idempotent
from suite.api.view import View, text
from suite.review import packs, verdicts
from suite.review.packs import Pack
from suite.running import passes


def shape(pack: Pack) -> dict[str, Any]:
    """Tells of a pack what it holds, what of it is here, and whether passes run it: by its subsets' recipes, or by the setting `suite.starter`."""
    there = packs.loaded(pack)
    by_recipe = bool(there) and all(row.recipe.get("passes") is True for row in there)
    by_setting = pack.name == packs.STARTER and bool(preferences.value(passes.STARTER))
    return {
        "object": "pack",
        "name": pack.name,
        "title": pack.manifest["title"],
        "made": pack.manifest["made"],
        "is_loaded": len(there) == len(pack.files),
        "passes": by_setting or by_recipe,
        "passes_by": "setting" if by_setting else "recipe" if by_recipe else None,
        "files": [
            {name: told.get(name) for name in ("benchmark", "slug", "title", "kind", "rows", "validation", "operators", "verified", "sha256")}
            for told in pack.files.values()
        ],
        "subsets": shapes.many_subsets(there),
    }


class Packs(View):
    scopes = {"GET": ("registry:read",)}

    def get(self, request: Request) -> Response:
        """Lists the packs of review tasks that come with the server, with what answers that know nothing earn of them."""
        return Response({"data": [shape(pack) for pack in packs.every().values()], "next": None})


class LoadPack(View):
    scopes = {"POST": ("registry:publish",)}

    @idempotent
    def post(self, request: Request, pack: str) -> Response:
        """Loads a pack: its benchmarks are there for everybody then. With `passes` onboarding in full and the weekly schedule run it, or no longer do."""
        switch = self.body(("passes",)).get("passes")
        if switch is not None and not isinstance(switch, bool):
            raise wrong("/passes", "must be true or false.")
        if pack not in packs.every():
            raise Missing("pack", pack)
        packs.load(pack, self.actor, switch)
        return Response(shape(packs.find(pack)))


class FromVerdict(View):
    scopes = {"POST": ("judge",)}

    @idempotent
    def post(self, request: Request) -> Response:
        """Keeps the claims that the caller judged in one answer as private tasks, in a rolling subset of their own."""
        call = text(self.body(("call",)), "call", most=60, required=True)
        kept = verdicts.keep(self.caller, call)
        if kept.added:
            audit.record(self.actor, "subset.from_verdict", f"call {call}", reason=f"{kept.added} tasks")
        told = {"added": kept.added, "task_ids": list(kept.task_ids), "changed": list(kept.changed), "has_control": kept.has_control}
        return Response({**shapes.subset(kept.subset), **told}, status=201 if kept.added else 200)
