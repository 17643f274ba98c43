"""Collections as frozen values: what a plan needs to know of them, read in one go."""

from __future__ import annotations

from dataclasses import dataclass

from panels.models import Collection as Row
from panels.models import Member


@dataclass(frozen=True, slots=True)
class Collection:
    """Shape: `members` and `mergers` are aliases in order, one may stand twice; `seats` is how many members sit, None: all. Units: `_s` are seconds."""

    name: str
    description: str
    shape: str
    members: tuple[str, ...]
    mergers: tuple[str, ...]
    picking: str
    explorers: int
    timeout_s: int
    first_token_timeout_s: int
    idle_timeout_s: int
    quorum: int | None
    grace_s: int
    wait_max_s: int
    failover_on_refusal: bool
    shadow_share: float
    keep_text: bool | None
    merge_prompt: str | None
    seats: int | None = None


def load_collections() -> dict[str, Collection]:
    """All collections by name, in two queries."""
    places: dict[tuple[int, str], list[str]] = {}
    for collection_id, place, alias in Member.objects.order_by("position", "id").values_list("collection_id", "place", "model__alias"):
        places.setdefault((collection_id, place), []).append(alias)
    return {
        row.name: Collection(
            name=row.name,
            description=row.description,
            shape=row.shape,
            members=tuple(places.get((row.pk, Member.Place.MEMBER), ())),
            mergers=tuple(places.get((row.pk, Member.Place.MERGER), ())),
            picking=row.picking,
            explorers=row.explorers,
            timeout_s=row.timeout_s,
            first_token_timeout_s=row.first_token_timeout_s,
            idle_timeout_s=row.idle_timeout_s,
            quorum=row.quorum,
            grace_s=row.grace_s,
            wait_max_s=row.wait_max_s,
            failover_on_refusal=row.failover_on_refusal,
            shadow_share=row.shadow_share,
            keep_text=row.keep_text,
            merge_prompt=row.merge_prompt,
            seats=row.seats,
        )
        for row in Row.objects.all()
    }
