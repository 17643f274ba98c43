"""What this API takes and gives, for its OpenAPI description. Checks are the rooms' own; a test holds the two together."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any, TypeVar

from drf_spectacular.utils import OpenApiParameter, extend_schema, inline_serializer
from rest_framework import serializers as s

Method = TypeVar("Method", bound=Callable[..., Any])

PAGE = [
    OpenApiParameter("limit", int, description="Entries a page, 1 to 500; 50 without it."),
    OpenApiParameter("page_token", str, description="The next field of the page before."),
]
EXPORT_FORMAT = OpenApiParameter("format", str, enum=("json", "md"), description="json without it.")
VERDICT_FILTERS = [OpenApiParameter(name, str, description=f"Of one {name} alone.") for name in ("model", "collection", "judge")]
TEXTS = OpenApiParameter("texts", str, enum=("1",), description="1: with prompts and answers; at most 50 a page.")


def described(**what: Any) -> Callable[[Method], Method]:
    """Says of a view's method what the description shows."""
    decorated: Callable[[Method], Method] = extend_schema(**what)
    return decorated


@cache
def page_of(shape: type[s.Serializer[Any]]) -> s.Serializer[Any]:
    page: s.Serializer[Any] = inline_serializer(f"{shape.__name__}Page", {"data": shape(many=True), "next": s.CharField(allow_null=True)})
    return page


def usd(help_text: str = "US dollars, exact: no exponent, no trailing zeros.", **kwargs: Any) -> s.CharField:
    return s.CharField(help_text=help_text, allow_null=True, **kwargs)


def claims(help_text: str) -> s.ListField:
    return s.ListField(child=s.CharField(max_length=10_000), required=False, help_text=help_text)


# ------------------------------------------------------------------ verdicts and panels


class VerdictAsked(s.Serializer[Any]):
    call = s.CharField(help_text="The call id of the seat.")
    useful = s.BooleanField(required=False, allow_null=True)
    note = s.CharField(required=False, max_length=10_000)
    real = claims("Claims of the answer that hold. At most 200, real and false together.")
    false = claims("Claims of the answer that do not.")


class VerdictKept(s.Serializer[Any]):
    id = s.IntegerField()
    call = s.CharField()
    judge = s.CharField()
    useful = s.BooleanField(allow_null=True)
    note = s.CharField()
    real = s.ListField(child=s.CharField())
    false = s.ListField(child=s.CharField())
    at = s.DateTimeField()
    replaces = s.IntegerField(allow_null=True, help_text="The same judge's verdict before.")


class VerdictListed(VerdictKept):
    model = s.CharField()
    collection = s.CharField(help_text="Empty for a direct call.")


class PendingSeat(s.Serializer[Any]):
    call = s.CharField()
    model = s.CharField()
    seat = s.CharField(required=False, help_text="This and what follows with ?texts=1.")
    status = s.CharField(required=False)
    text = s.CharField(required=False, allow_null=True)
    finish_reason = s.CharField(required=False, allow_null=True)


class Pending(s.Serializer[Any]):
    panel = s.CharField()
    asked_at = s.DateTimeField()
    collection = s.CharField()
    seats = PendingSeat(many=True)
    prompt = s.JSONField(required=False, allow_null=True, help_text="With ?texts=1: the conversation as it was asked.")


class Usage(s.Serializer[Any]):
    input_tokens = s.IntegerField(help_text="Cache reads and writes included.")
    output_tokens = s.IntegerField(help_text="Reasoning included.")
    cache_read_tokens = s.IntegerField()
    cache_write_tokens = s.IntegerField()
    reasoning_tokens = s.IntegerField()
    estimated = s.BooleanField()


class Try(s.Serializer[Any]):
    model = s.CharField()
    status = s.IntegerField(allow_null=True, help_text="What the endpoint answered; null where no answer came.")
    code = s.CharField(allow_null=True)
    seconds = s.FloatField()
    cost_usd = usd()


class SeatError(s.Serializer[Any]):
    code = s.CharField()
    message = s.CharField()


class SeatListed(s.Serializer[Any]):
    call = s.CharField()
    model = s.CharField()
    seat = s.CharField(help_text="member, explorer, merger, route, direct or shadow.")
    status = s.CharField()
    seconds = s.FloatField(allow_null=True)
    ttft_seconds = s.FloatField(allow_null=True)
    finish_reason = s.CharField(allow_null=True)
    usage = Usage(allow_null=True)
    cost_usd = usd()
    tries = Try(many=True)
    error = SeatError(allow_null=True)
    judges = s.ListField(child=s.CharField(), help_text="Who has judged it.")


class SeatWhole(SeatListed):
    judges = None  # type: ignore[assignment]
    text = s.CharField(allow_null=True, help_text="The answer; null where none is kept.")
    verdicts = VerdictKept(many=True)


class PanelFields(s.Serializer[Any]):
    panel = s.CharField()
    collection = s.CharField(allow_null=True)
    mode = s.CharField()
    status = s.CharField(help_text="running, complete, degraded or failed.")
    asked_at = s.DateTimeField()
    judge = s.CharField(help_text="Who asked.")
    key = s.CharField(allow_null=True)
    key_id = s.IntegerField(allow_null=True)
    request = s.CharField(allow_null=True)
    dialect = s.CharField(allow_null=True)
    seconds = s.FloatField(allow_null=True)
    cost_usd = usd()


class PanelListed(PanelFields):
    opening = s.CharField(allow_null=True, help_text="The first words that a user says; null where the prompt is kept no longer or not the caller's to read.")
    seats = SeatListed(many=True)


class Picked(s.Serializer[Any]):
    draws = s.DictField(child=s.ListField(child=s.FloatField()), help_text="By alias: the Beta's two parameters, and what the seed drew from it.")
    forced = s.ListField(child=s.CharField(), help_text="Who sat because its turn had come.")


class ClaimSeat(s.Serializer[Any]):
    call = s.CharField()
    quote = s.CharField(help_text="Stands word for word in that seat's answer, white space aside.")


class Claim(s.Serializer[Any]):
    text = s.CharField()
    kind = s.CharField(help_text="shared, unique or contradicted.")
    seats = ClaimSeat(many=True)


class Dropped(s.Serializer[Any]):
    claims = s.IntegerField()
    quotes = s.IntegerField()


class Comparison(s.Serializer[Any]):
    call = s.CharField()
    model = s.CharField()
    judge = s.CharField(help_text="Who asked for it.")
    at = s.DateTimeField()
    status = s.CharField()
    claims = Claim(many=True)
    dropped = Dropped()
    cost_usd = usd()
    usage = Usage(allow_null=True)


class PanelWhole(PanelFields):
    seats = SeatWhole(many=True)
    prompt = s.JSONField(allow_null=True, help_text="The conversation as it was asked; null where none is kept.")
    seed = s.IntegerField(allow_null=True)
    picked = Picked(allow_null=True, help_text="Where the record decided who sits or takes the turn.")
    merge_order = s.ListField(child=s.CharField(), allow_null=True)
    comparison = Comparison(allow_null=True, help_text="What the answers claim, once somebody had them compared.")


# ------------------------------------------------------------------ keys


class KeyAsked(s.Serializer[Any]):
    name = s.CharField(max_length=200, help_text="What uses it. Needed to make one.")
    owner = s.CharField(required=False, max_length=200, allow_null=True)
    team = s.CharField(required=False, max_length=200, allow_null=True, help_text="Whose budget its calls count against besides its own.")
    scopes = s.ListField(child=s.ChoiceField(choices=["ask", "judge", "read", "operate", "admin"]), required=False, help_text="ask and judge without it.")
    collections = s.ListField(child=s.CharField(), required=False, allow_null=True, help_text="Collections it may ask; null and no models: all.")
    models = s.ListField(child=s.CharField(), required=False, allow_null=True, help_text="Aliases it may ask, or prefixes that end in *.")
    rpm = s.IntegerField(required=False, allow_null=True, min_value=1, help_text="Requests a minute.")
    tpm = s.IntegerField(required=False, allow_null=True, min_value=1, help_text="Tokens a minute.")
    max_parallel = s.IntegerField(required=False, allow_null=True, min_value=1, help_text="Calls at once.")
    budget_usd = usd(required=False)
    expires_at = s.DateTimeField(required=False, allow_null=True)
    keep_text = s.BooleanField(required=False, allow_null=True)


class Key(KeyAsked):
    hint = s.CharField(help_text="How it begins.")
    created_at = s.DateTimeField()
    revoked_at = s.DateTimeField(allow_null=True)
    last_used_at = s.DateTimeField(allow_null=True)


class KeyMade(Key):
    key = s.CharField(help_text="The key itself, this once.")


# ------------------------------------------------------------------ records


class Rate(s.Serializer[Any]):
    """A share and how sure it is: the posterior over Beta(1, 1), with its 95% interval."""

    yes = s.FloatField(help_text="Weights: verdicts age, and several judges of one call share its weight.")
    of = s.FloatField()
    mean = s.FloatField()
    low = s.FloatField()
    high = s.FloatField()
    counted_yes = s.FloatField(help_text="As `yes` before it aged; a fraction where several judged one call.")
    counted = s.FloatField(help_text="As `of` before it aged.")


class Record(s.Serializer[Any]):
    collection = s.CharField()
    model = s.CharField()
    judged = s.IntegerField(help_text="Calls.")
    weight = s.FloatField(help_text="What they weigh: a verdict of one half-life ago half.")
    judges = s.IntegerField()
    useful = Rate()
    confidently_wrong = Rate(help_text="Share of judged answers with at least one false claim.")
    real = s.FloatField()
    false = s.FloatField()


# ------------------------------------------------------------------ the roster

ALIAS_AND_VERB = OpenApiParameter("alias", str, location="path", description="The alias, percent-encoded, then /retire or /restore.")


class Reason(s.Serializer[Any]):
    reason = s.CharField(max_length=500)


class Fact(s.Serializer[Any]):
    value = s.JSONField(help_text="Prices are exact decimal text; tiers are a list of them.")
    source = s.CharField(help_text='"hand", "endpoint list", or a catalog: "models_dev", "openrouter", "freellmapi".')  # type: ignore[assignment]  # DRF's own attribute of a field
    since = s.DateTimeField(allow_null=True, help_text="Since when this source says so, as far as it is known here.")


class ModelAsked(s.Serializer[Any]):
    alias = s.CharField(max_length=200, help_text="Needed to add one; it cannot be changed.")
    endpoint = s.CharField(help_text="An endpoint's name. Needed to add one.")
    served_name = s.CharField(max_length=300, required=False, help_text="The name the endpoint knows it by; the alias without it.")
    limits = s.DictField(required=False, help_text='{"requests": {"minute": 30, "day": 1000, "month": 20000}, "tokens": {…}, "parallel": 4}')
    facts = s.DictField(required=False, help_text="Facts and prices set by hand; null takes one back.")
    quirks = s.DictField(required=False)
    ad_hoc = s.BooleanField(required=False)


class Model(s.Serializer[Any]):
    alias = s.CharField()
    endpoint = s.CharField()
    served_name = s.CharField()
    status = s.ChoiceField(choices=["active", "resting", "retired"])
    until = s.DateTimeField(allow_null=True, help_text="When a rest ends.")
    reason = s.CharField(allow_null=True)
    status_at = s.DateTimeField(allow_null=True)
    evidence = s.DictField()
    ad_hoc = s.BooleanField()
    facts = s.DictField(child=Fact())
    limits = s.DictField()
    limits_left = s.DictField(help_text="What may still be used now of its own limits (`model`) and its endpoint's (`endpoint`).")
    quirks = s.DictField()
    created_at = s.DateTimeField()


class EndpointAsked(s.Serializer[Any]):
    name = s.CharField(max_length=200, help_text="Needed to add one; it cannot be changed.")
    kind = s.CharField(required=False, help_text="openai without it.")
    base_url = s.CharField(max_length=500, help_text="Needed to add one.")
    provider = s.CharField(max_length=100, required=False, help_text="Its id in the public catalogs, for example groq. Without it, it is found by its address.")
    key_env = s.CharField(required=False, help_text="A variable BENCHWARMERS_KEY_… that holds the key.")
    limits = s.DictField(required=False)
    quirks = s.DictField(required=False)
    key = s.CharField(required=False, write_only=True, help_text="Stored encrypted, never shown. An empty one is forgotten.")


class Endpoint(s.Serializer[Any]):
    name = s.CharField()
    kind = s.CharField()
    base_url = s.CharField()
    provider = s.CharField(help_text="Its id in the public catalogs, where it was set by hand.")
    key_env = s.CharField()
    key = s.CharField(help_text='Where its key comes from: "stored", "variable …" or "none".')
    limits = s.DictField()
    quirks = s.DictField()
    models = s.IntegerField(help_text="How many models it serves here.")
    created_at = s.DateTimeField()


class CollectionAsked(s.Serializer[Any]):
    name = s.CharField(max_length=200, help_text="Needed to add one; it cannot be changed.")
    description = s.CharField(required=False, max_length=1000)
    shape = s.CharField(required=False, max_length=40)
    members = s.ListField(child=s.CharField(), required=False, help_text="Aliases in order; one may stand twice.")
    mergers = s.ListField(child=s.CharField(), required=False)
    picking = s.ChoiceField(choices=["fixed", "record"], required=False, help_text="Who takes a route turn, and who sits where not all do.")
    seats = s.IntegerField(required=False, allow_null=True, help_text="How many members sit in a panel; null: all.")
    explorers = s.IntegerField(required=False)
    timeout_s = s.IntegerField(required=False)
    first_token_timeout_s = s.IntegerField(required=False)
    idle_timeout_s = s.IntegerField(required=False)
    quorum = s.IntegerField(required=False, allow_null=True)
    grace_s = s.IntegerField(required=False)
    wait_max_s = s.IntegerField(required=False)
    failover_on_refusal = s.BooleanField(required=False)
    shadow_share = s.FloatField(required=False)
    keep_text = s.BooleanField(required=False, allow_null=True)
    merge_prompt = s.CharField(required=False, allow_null=True)


class Usefulness(s.Serializer[Any]):
    """The posterior's mean and 95% interval; verdicts age."""

    mean = s.FloatField()
    low = s.FloatField()
    high = s.FloatField()


class Wrongness(s.Serializer[Any]):
    """The same of answers that hold a false claim."""

    rate = s.FloatField()
    low = s.FloatField()
    high = s.FloatField()


class Claims(s.Serializer[Any]):
    real = s.FloatField()
    false = s.FloatField()


class Found(s.Serializer[Any]):
    """What verdicts say, summed up."""

    judged = s.IntegerField(help_text="Calls.")
    useful = s.FloatField(help_text="Of them, a fraction where judges differ.")
    usefulness = Usefulness(allow_null=True)
    claims = Claims()
    confidently_wrong = Wrongness(allow_null=True)


class Recent(s.Serializer[Any]):
    """Of panels and merged panels."""

    days = s.IntegerField()
    panels = s.IntegerField(help_text="How many were asked in so many days.")
    of = s.IntegerField(help_text="Of how many of its newest panels the means are, at most 20; in a list, of those among the newest 400 of all.")
    cost_usd = usd("A panel's mean, of those whose calls all had a price.")
    seconds = s.FloatField(allow_null=True, help_text="A panel's mean.")


class Collection(CollectionAsked):
    recent = Recent()
    record = Found(help_text="Of all answers in it together.")


class Suggestion(s.Serializer[Any]):
    kind = s.ChoiceField(choices=["promote", "bench"])
    model = s.CharField()
    than = s.CharField(help_text="Whom it was compared with.")
    probability = s.FloatField(help_text="That it is more useful (promote) or less (bench).")
    useful = Rate()
    useful_than = Rate()
    reason = s.CharField()


class ErrorPair(s.Serializer[Any]):
    one = s.CharField()
    other = s.CharField()
    panels = s.IntegerField(help_text="In which both were judged.")
    one_wrong = s.IntegerField(help_text="With at least one false claim.")
    other_wrong = s.IntegerField()
    both_wrong = s.IntegerField()
    expected = s.FloatField(help_text="The share with both wrong if they erred independently.")
    phi = s.FloatField(allow_null=True, help_text="The correlation of their errors; null where one was never or always wrong.")
    odds_ratio = s.FloatField(allow_null=True)
    odds_low = s.FloatField(allow_null=True)
    odds_high = s.FloatField(allow_null=True)
    shared = Rate(help_text="The share of panels in which both made the same false claim.")


class Independence(s.Serializer[Any]):
    seats = s.IntegerField()
    effective = s.FloatField(allow_null=True, help_text="How many independent seats they amount to; null where too little is judged.")
    low = s.FloatField(allow_null=True)
    high = s.FloatField(allow_null=True)
    correlation = s.FloatField(allow_null=True, help_text="Of errors, the mean over pairs.")
    panels = s.IntegerField(help_text="In which two members or more were judged.")
    needs = s.CharField(help_text="What is missing for a number; empty where nothing is.")
    pairs = ErrorPair(many=True)


class CollectionWithRecord(Collection):
    records = Record(many=True, help_text="By model.")
    half_life_days = s.FloatField(help_text="Days after which a verdict weighs half; 0: none ages.")
    suggestions = Suggestion(many=True)
    independence = Independence()


class QueueStatus(s.Serializer[Any]):
    waiting = s.IntegerField(allow_null=True)
    oldest_s = s.FloatField(allow_null=True)
    workers = s.IntegerField()


class OutboxStatus(s.Serializer[Any]):
    files = s.IntegerField()
    bytes = s.IntegerField()
    rejected_bytes = s.IntegerField()


class Status(s.Serializer[Any]):
    version = s.CharField()
    url = s.CharField()
    mode = s.CharField(help_text="full or gateway.")
    database = s.CharField(help_text="sqlite or postgresql.")
    queue = QueueStatus()
    outbox = OutboxStatus()
    schedules = s.ListField(child=s.DictField())


class ClientInstall(s.Serializer[Any]):
    pipx = s.CharField()
    uv = s.CharField()
    pip = s.CharField(help_text="With the sum, which pip checks.")


class ClientOffered(s.Serializer[Any]):
    name = s.CharField()
    version = s.CharField()
    requires_python = s.CharField()
    file = s.CharField(help_text="The wheel's file name.")
    url = s.CharField(help_text="Where it is.")
    size = s.IntegerField(help_text="Bytes.")
    sha256 = s.CharField(help_text="Hex.")
    install = ClientInstall(help_text="A command for each installer.")
