"""Which models a list shows, and in which order."""

from __future__ import annotations

import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from access.pages import read_token, token
from catalog import facts, listing
from catalog.listing import ModelView, Named
from catalog.shape import truth
from health import condition
from health.resting import Resting
from panels import editing
from panels.figures import Known
from wire.errors import CallerError

STATUSES = ("active", "resting", "retired")
# By what a list may be sorted, and whether the highest comes first.
SORTS = {
    "alias": False,
    "useful": True,
    "wrong": False,
    "judged": True,
    "seats": True,
    "last_seated": True,
    "score": True,
    "price": False,
    "ttft": False,
    "speed": True,
    "context": True,
}
# What a model can do, as facts say it.
CAPABILITIES = tuple(name for name, field in facts.FACT_FIELDS.items() if field.check is truth)
# Three parts of input to one of output, as Discover reckons.
INPUT_PARTS = 3
PRICES = ("input_usd_per_mtok", "output_usd_per_mtok")


@dataclass(frozen=True, slots=True)
class Wanted:
    """What was asked for. Shape: `sort` one of SORTS, `turned` the other way round; `find` as it was typed; what is empty or None leaves nothing out."""

    sort: str = "alias"
    turned: bool = False
    status: str = ""
    find: str = ""
    endpoint: str = ""
    collection: str | None = None
    can: tuple[str, ...] = ()
    free: bool | None = None

    @property
    def needs_facts(self) -> bool:
        return bool(self.can) or self.free is not None or self.sort in ("price", "context")


@dataclass(frozen=True, slots=True)
class Found:
    """One page. Shape: `total` counts all that were found."""

    data: list[ModelView]
    next: str | None
    total: int


def wanted(said: Mapping[str, str]) -> Wanted:
    """Reads the parameters of a list. Errors: CallerError naming the one that is wrong."""
    sort = said.get("sort", "") or "alias"
    if sort.removeprefix("-") not in SORTS:
        raise CallerError("invalid_request", f"sort must be one of {', '.join(SORTS)}, or that with a - before it, the other way round.", field="sort")
    status, free = said.get("status", ""), said.get("free", "")
    if status and status not in STATUSES:
        raise CallerError("invalid_request", f"status must be one of {', '.join(STATUSES)}.", field="status")
    if free not in ("", "0", "1"):
        raise CallerError("invalid_request", "free must be 1 or 0.", field="free")
    can = tuple(name for part in said.get("can", "").split(",") if (name := part.strip()))
    if unknown := [name for name in can if name not in CAPABILITIES]:
        raise CallerError("invalid_request", f"can knows {', '.join(CAPABILITIES)}, not {unknown[0][:60]}.", field="can")
    return Wanted(
        sort=sort.removeprefix("-"),
        turned=sort.startswith("-"),
        status=status,
        find=said.get("find", ""),
        endpoint=said.get("endpoint", ""),
        collection=said.get("collection") or None,
        can=can,
        free=None if free == "" else free == "1",
    )


def page(asked: Wanted, known: Known, resting: Mapping[str, Resting], limit: int, page_token: str) -> Found:
    """Finds the models of one page. Errors: CallerError for a token that is not of this list, UnknownCollection."""
    words = folded(asked.find)
    names = [model for model in listing.names() if words in folded(f"{model.alias}\n{model.served_name}")]
    if asked.endpoint:
        names = [model for model in names if model.endpoint == asked.endpoint]
    if asked.status:
        names = [model for model in names if status_of(model, resting) == asked.status]
    if asked.collection is not None:
        seated = seated_in(asked.collection, known)
        names = [model for model in names if model.alias in seated]
    views = {view.alias: view for view in listing.models_of([model.id for model in names])} if asked.needs_facts else {}
    if asked.can or asked.free is not None:
        names = [model for model in names if model.alias in views and is_able(views[model.alias], asked)]
    names = in_order(asked, names, known, views)
    start = place_after(names, page_token) if page_token else 0
    shown = names[start : start + limit]
    following = token([shown[-1].alias, str(start + len(shown))]) if start + len(shown) < len(names) else None
    if asked.needs_facts:
        return Found([views[model.alias] for model in shown if model.alias in views], following, len(names))
    return Found(listing.models_of([model.id for model in shown]), following, len(names))


def is_able(view: ModelView, asked: Wanted) -> bool:
    able = all(name in view.facts and view.facts[name].value is True for name in asked.can)
    return able and (asked.free is None or asked.free == (blended(view) == 0))


def place_after(names: Sequence[Named], page_token: str) -> int:
    """Finds where a list goes on: after the model that ended the page, or at its place if it is not there any more."""
    said = read_token(page_token, None)
    if len(said) != 2 or not said[1].isdecimal() or len(said[1]) > 9:
        raise CallerError("invalid_request", "page_token is none of this list. Take it from the next field of the page before.", field="page_token")
    return next((n for n, model in enumerate(names, 1) if model.alias == said[0]), int(said[1]))


def folded(text: str) -> str:
    """What is compared of a name: neither case nor how a character was put together matters, in any script."""
    return unicodedata.normalize("NFKC", text).casefold()


def status_of(model: Named, resting: Mapping[str, Resting]) -> str:
    rests = f"model:{model.alias}" in resting or f"endpoint:{model.endpoint}" in resting
    return "retired" if model.status == "retired" else "resting" if rests else "active"


def seated_in(collection: str, known: Known) -> set[str]:
    """Who plays in a collection or was judged in it. Errors: UnknownCollection where there is neither."""
    try:
        return {*known.verdicts, *editing.found(collection).members}
    except editing.UnknownCollection:
        if not known.verdicts:
            raise
        return set(known.verdicts)


def in_order(asked: Wanted, names: Sequence[Named], known: Known, views: Mapping[str, ModelView]) -> list[Named]:
    """Sorts; what is not known comes last whichever way round, and what is alike goes by alias."""
    plain = sorted(names, key=lambda model: model.alias)
    if asked.sort == "alias":
        return plain[::-1] if asked.turned else plain
    numbers = numbers_of(asked.sort, [model.alias for model in plain], known, views)
    sign = -1.0 if SORTS[asked.sort] != asked.turned else 1.0
    return sorted(plain, key=lambda m: (m.alias not in numbers, sign * numbers.get(m.alias, 0.0)))


def numbers_of(sort: str, aliases: Sequence[str], known: Known, views: Mapping[str, ModelView]) -> dict[str, float]:
    """Gives by alias what a list is sorted by, where it is known."""
    found: dict[str, float | None]
    if sort == "useful":
        found = {a: (1 + s.weight_useful) / (2 + s.weight_said) for a in aliases if (s := known.sums(a)).said}
    elif sort == "wrong":
        found = {a: (1 + s.weight_wrong) / (2 + s.weight_judged) for a in aliases if (s := known.sums(a)).judged}
    elif sort == "judged":
        found = {a: known.sums(a).judged for a in aliases}
    elif sort == "seats":
        found = {a: float(known.uses[a][0]) if a in known.uses else 0.0 for a in aliases}
    elif sort == "last_seated":
        found = {a: known.uses[a][1].timestamp() for a in aliases if a in known.uses}
    elif sort == "score":
        found = dict(known.scores(aliases))
    elif sort in ("ttft", "speed"):
        found = {a: speed_of(of)["ttft_ms" if sort == "ttft" else "tokens_per_s"] for a, of in condition.speeds(aliases).items()}
    else:
        found = {a: blended(view) if sort == "price" else context_of(view) for a, view in views.items()}
    return {alias: number for alias, number in found.items() if number is not None}


def price_of(view: ModelView) -> dict[str, str | None]:
    """What a model's tokens cost today. Shape: exact decimal texts, None where unknown."""
    return {name: str(view.facts[name].value) if name in view.facts else None for name in PRICES}


def blended(view: ModelView) -> float | None:
    given, taken = price_of(view).values()
    return None if given is None or taken is None else INPUT_PARTS * float(given) + float(taken)


def context_of(view: ModelView) -> float | None:
    found = view.facts.get("context_window")
    return float(found.value) if found is not None and isinstance(found.value, int) else None


def speed_of(speed: Mapping[str, Mapping[str, float | None]]) -> dict[str, float | None]:
    """The two numbers that stand for a model's speed: the time to the first token of a short answer, and the tokens a second of a long one."""
    short, long = speed.get("short", {}), speed.get("long", {})
    first = short.get("ttft_ms")
    rate = long.get("tokens_per_s")
    return {
        "ttft_ms": long.get("ttft_ms") if first is None else first,
        "tokens_per_s": short.get("tokens_per_s") if rate is None else rate,
    }
