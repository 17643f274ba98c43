"""What the paths for discovering models take and give, for their OpenAPI description."""

from __future__ import annotations

from typing import Any

from drf_spectacular.utils import OpenApiParameter
from rest_framework import serializers as s

from catalog.discover import CAPABILITIES, SORTS
from panels.api.roster_shapes import Fact
from panels.api.shapes import PAGE


def flag(name: str, tells: str) -> OpenApiParameter:
    return OpenApiParameter(name, str, enum=["0", "1"], description=tells)


WANTED = [
    *PAGE,
    OpenApiParameter("text", str, description="Words that all stand in its names or aliases, or begin its providers or endpoints."),
    OpenApiParameter("provider", str, description="A provider's id, or an endpoint's name here."),
    OpenApiParameter("can", str, description=f"What it must be able to do, with commas: {', '.join(CAPABILITIES)}."),
    OpenApiParameter("min_context", int, description="Tokens of context at least."),
    OpenApiParameter("max_price", str, description="US dollars per million tokens at most, of input and of output. What is free within limits passes."),
    flag("free", "1: only what some route gives for free."),
    flag("open_weights", "1: only models whose weights are open."),
    flag("reachable", "1: only what an endpoint here serves."),
    flag("new", "1: only what came within the last week."),
    flag("missing", "1: only what is not on the roster."),
    flag("deprecated", "1: what all its providers call deprecated is shown too."),
    OpenApiParameter("sort", str, enum=list(SORTS), description="released (the newest first) without it."),
    OpenApiParameter("model", str, description="One model by its id here."),
]
CANDIDATES = [
    *PAGE,
    OpenApiParameter("endpoint", str, description="Only what this endpoint lists."),
    OpenApiParameter("text", str, description="Words that all stand in the served name."),
    OpenApiParameter("can", str, description="As for discover."),
    flag("free", "1: only what costs nothing there."),
    flag("all", "1: with what is on the roster, and what answers no prompts."),
    flag("refresh", "1: endpoints are asked first. Needs `operate`."),
]


class Needs(s.Serializer[Any]):
    kind = s.CharField(help_text="The endpoint's kind; empty where none of ours speaks to it.")
    base_url = s.CharField()
    key_env = s.CharField(help_text="What its users call the variable that holds its key.")
    doc = s.CharField()


class Route(s.Serializer[Any]):
    kind = s.CharField(help_text="direct, or hub: something that stands between.")
    provider = s.CharField(help_text="By models.dev's id; empty for an endpoint that catalogs do not know.")
    title = s.CharField()
    served_name = s.CharField()
    endpoint = s.CharField(allow_null=True, help_text="The endpoint here; null where none is set up.")
    listed = s.BooleanField(allow_null=True, help_text="Whether that endpoint's own list has it; null where that is not known.")
    reachable = s.BooleanField()
    needs = Needs(allow_null=True, help_text="What an endpoint for it would need, where there is none.")
    context_window = s.IntegerField(allow_null=True)
    prices = s.DictField(help_text="US dollars per million tokens, exact decimal text.")
    free = s.BooleanField(help_text="Costs nothing, within limits.")
    own_app = s.BooleanField(help_text="Free only to the provider's own app.")
    plan = s.BooleanField(help_text="A price of 0 is paid for by a subscription, or by one's own machine.")
    deprecated = s.BooleanField()
    limits = s.DictField(help_text="Of its free tier, in a roster's shape.")
    budget = s.CharField(help_text="Of its free tier, as the catalog words it.")
    sources = s.ListField(child=s.CharField())


class Cheapest(s.Serializer[Any]):
    provider = s.CharField()
    endpoint = s.CharField(allow_null=True)
    served_name = s.CharField()
    input_usd_per_mtok = s.CharField()
    output_usd_per_mtok = s.CharField()


class Discovered(s.Serializer[Any]):
    model = s.CharField(help_text="Its id here: maker and name.")
    title = s.CharField()
    maker = s.CharField()
    family = s.CharField()
    facts = s.DictField(child=Fact())
    cheapest = Cheapest(allow_null=True, help_text="Three parts of input to one of output; what is free is said apart.")
    free = s.BooleanField()
    reachable = s.BooleanField()
    new = s.BooleanField()
    deprecated = s.BooleanField()
    released = s.CharField(allow_null=True)
    knowledge = s.CharField(allow_null=True)
    open_weights = s.BooleanField(allow_null=True)
    first_seen_at = s.DateTimeField(allow_null=True)
    notes = s.ListField(child=s.CharField())
    on_roster = s.ListField(child=s.CharField(), help_text="Aliases.")
    routes = Route(many=True)


class CatalogState(s.Serializer[Any]):
    name = s.CharField()
    title = s.CharField()
    on = s.BooleanField()
    read_at = s.DateTimeField(allow_null=True, help_text="The age of what is kept.")
    error = s.CharField(help_text="Why the last reading failed; empty where it did not.")
    offers = s.IntegerField()


class Source(CatalogState):
    url = s.CharField(help_text="Where it is read; empty where BENCH_CATALOG_URLS says nowhere.")
    changed_at = s.DateTimeField(allow_null=True, help_text="When a reading last brought something new.")
    tried_at = s.DateTimeField(allow_null=True)
    skipped = s.IntegerField(help_text="Entries of the last reading that were left out.")


class DiscoveredPage(s.Serializer[Any]):
    data = Discovered(many=True)  # type: ignore[assignment]  # as DRF itself calls what it has read
    next = s.CharField(allow_null=True)
    total = s.IntegerField()
    sources = CatalogState(many=True)


class CandidateOffer(s.Serializer[Any]):
    source = s.CharField()  # type: ignore[assignment]  # DRF's own attribute of a field
    provider = s.CharField()
    served_name = s.CharField()
    free = s.BooleanField()
    prices = s.DictField()


class Candidate(s.Serializer[Any]):
    endpoint = s.CharField()
    served_name = s.CharField()
    chat = s.BooleanField(help_text="Whether it answers prompts with text.")
    free = s.BooleanField(help_text="It costs nothing there.")
    facts = s.DictField(child=Fact())
    offers = CandidateOffer(many=True, help_text="What catalogs say of it at this provider.")
    on_roster = s.CharField(allow_null=True, help_text="Its alias.")


class Listing(s.Serializer[Any]):
    endpoint = s.CharField()
    hub = s.CharField(allow_null=True)
    models = s.IntegerField()
    gone = s.ListField(child=s.CharField(), allow_null=True, help_text="Roster models, by served name, that it lacks; null where it says nothing about that.")
    listed_at = s.DateTimeField(allow_null=True)
    tried_at = s.DateTimeField(allow_null=True)
    error = s.CharField(help_text="Why the newest try failed; empty where it did not.")


class CandidatePage(s.Serializer[Any]):
    data = Candidate(many=True)  # type: ignore[assignment]
    next = s.CharField(allow_null=True)
    total = s.IntegerField()
    listings = Listing(many=True)


class CandidatesAdded(s.Serializer[Any]):
    endpoint = s.CharField()
    served_names = s.ListField(child=s.CharField(), help_text="1 to 500 names as the endpoint knows them.")


class Added(s.Serializer[Any]):
    added = s.ListField(child=s.CharField(), help_text="The new aliases.")
