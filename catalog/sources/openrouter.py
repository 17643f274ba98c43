"""OpenRouter's public list of models. Source: https://openrouter.ai/docs/api-reference/list-available-models."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

from catalog.sources import Catalog, Offered, Provided, Skipped, Source
from catalog.sources._reading import amount, check_count, known, name, price, size, text, texts, unpriced

PROVIDER = "openrouter"
PROVIDED = Provided(
    PROVIDER,
    title="OpenRouter",
    base_url="https://openrouter.ai/api/v1",
    kind="openai",
    key_env="OPENROUTER_API_KEY",
    doc="https://openrouter.ai/docs",
)
# Texts, in US dollars for one token.
PRICES = {
    "prompt": "input_usd_per_mtok",
    "completion": "output_usd_per_mtok",
    "input_cache_read": "cache_read_usd_per_mtok",
    "input_cache_write": "cache_write_usd_per_mtok",
    "internal_reasoning": "reasoning_usd_per_mtok",
}
PER_MTOK = Decimal(1_000_000)
# Names that lead to another model from one month to the next: no facts hold for them.
MOVING = "~"
# "-1": a router, which costs what the model behind it does.
VARIES = "Its price varies from call to call."
# Charged besides tokens: who has such a price is not free, whatever its tokens cost.
BESIDES = ("request", "image", "audio")


class OpenRouter(Source):
    name = "openrouter"
    title = "OpenRouter"
    url = "https://openrouter.ai/api/v1/models"
    rank = 20
    limit_bytes = 16_000_000

    def read(self, body: Any) -> Catalog:
        if not isinstance(body, Mapping) or not isinstance(body.get("data"), list):
            raise ValueError("it is no list of models under data.")
        check_count(body["data"])
        offers: list[Offered] = []
        skipped: list[Skipped] = []
        for model in body["data"]:
            entry = text(model.get("id")) if isinstance(model, Mapping) else ""
            try:
                offers.append(offered(model))
            except ValueError as error:
                skipped.append(Skipped(f"{PROVIDER}/{entry}", str(error)))
                continue
            if why := offers[-1].about.get("unpriced"):
                skipped.append(Skipped(f"{PROVIDER}/{entry}", f"Its price is left out, not its facts. {why}"))
        if not offers:
            raise ValueError("it lists no models.")
        return Catalog(tuple(offers), (PROVIDED,), tuple(skipped))

    def next_page(self, body: Any) -> str | None:
        links = body.get("links") if isinstance(body, Mapping) else None
        following = links.get("next") if isinstance(links, Mapping) else None
        return following if isinstance(following, str) and following else None


def offered(model: Any) -> Offered:
    """Reads one model. Errors: ValueError that says why it is left out."""
    if not isinstance(model, Mapping):
        raise ValueError("It is no object.")
    served_name = name(model.get("id"))
    if served_name.startswith(MOVING):
        raise ValueError("It is a moving alias: what is behind it changes.")
    built = model["architecture"] if isinstance(model.get("architecture"), Mapping) else {}
    top = model["top_provider"] if isinstance(model.get("top_provider"), Mapping) else {}
    pricing = model["pricing"] if isinstance(model.get("pricing"), Mapping) else {}
    reads, writes = texts(built.get("input_modalities")), texts(built.get("output_modalities"))
    can = texts_of(model.get("supported_parameters"))
    why = unpriced(reads, writes)
    if any(str(said).startswith("-") for said in pricing.values()):
        why, pricing = VARIES, {}
    amounts = {ours: amount(pricing.get(theirs)) for theirs, ours in PRICES.items()}
    # "0" stood for "nothing besides the output's price" in this one field, before it was left out then.
    amounts["reasoning_usd_per_mtok"] = amounts["reasoning_usd_per_mtok"] or None
    is_free = not why and not {*writes} - {"text"} and amounts["input_usd_per_mtok"] == amounts["output_usd_per_mtok"] == Decimal(0)
    return Offered(
        provider=PROVIDER,
        served_name=served_name,
        title=text(model.get("name")),
        facts=known(
            {
                # What the provider that answers first takes, where that is told: the model's own figure may be larger.
                "context_window": size(top.get("context_length")) or size(model.get("context_length")),
                "output_limit": size(top.get("max_completion_tokens")),
                "tools": "tools" in can if can else None,
                "vision": "image" in reads if reads else None,
                "audio": "audio" in reads if reads else None,
                "files": "file" in reads if reads else None,
                "structured_output": "structured_outputs" in can if can else None,
                "reasoning": "reasoning" in can if can else None,
            }
        ),
        prices={} if why else known({ours: price(None if said is None else said * PER_MTOK) for ours, said in amounts.items()}),
        free=is_free and not any(amount(pricing.get(charge)) for charge in BESIDES),
        about=known(
            {
                "released": day(model.get("created")),
                "knowledge": text(model.get("knowledge_cutoff"), 10),
                "expires": text(model.get("expiration_date"), 10),
                "open_weights": True if text(model.get("hugging_face_id")) else None,
                "weights": text(model.get("hugging_face_id"), 200),
                "input": reads,
                "output": writes,
                "notes": [said] if (said := text(model.get("description"), 500)) else None,
                "unpriced": why,
            }
        ),
    )


def texts_of(value: Any) -> set[str]:
    return {one for one in value if isinstance(one, str)} if isinstance(value, list) else set()


def day(value: Any) -> str | None:
    """Gives the day of a time in seconds since 1970."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value < 10**11:
        return None
    return datetime.fromtimestamp(value, UTC).date().isoformat()


SOURCE = OpenRouter()
