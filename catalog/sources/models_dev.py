"""models.dev: an open table of providers, their models and prices. Source: https://models.dev, https://github.com/anomalyco/models.dev (MIT)."""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal
from typing import Any

from catalog import facts
from catalog.sources import Catalog, Offered, Provided, Skipped, Source
from catalog.sources._reading import amount, check_count, known, name, objects, price, size, text, texts, truth, unpriced

# Its word for the code that speaks to a provider, and the roster's kind. Others (Bedrock, Vertex, Azure) sign in ways that no kind of ours does.
KINDS: Mapping[str, str] = {
    "@ai-sdk/openai-compatible": "openai",
    "@ai-sdk/openai": "openai",
    "@openrouter/ai-sdk-provider": "openai",
    "@ai-sdk/anthropic": "anthropic",
    "@ai-sdk/google": "gemini",
    "@ai-sdk/groq": "openai",
    "@ai-sdk/mistral": "openai",
    "@ai-sdk/cerebras": "openai",
    "@ai-sdk/cohere": "openai",
    "@ai-sdk/deepinfra": "openai",
    "@ai-sdk/perplexity": "openai",
    "@ai-sdk/togetherai": "openai",
    "@ai-sdk/vercel": "openai",
    "@ai-sdk/gateway": "openai",
    "@ai-sdk/xai": "openai",
    "@aihubmix/ai-sdk-provider": "openai",
    "venice-ai-sdk-provider": "openai",
}
PRICES = {
    "input": "input_usd_per_mtok",
    "output": "output_usd_per_mtok",
    "cache_read": "cache_read_usd_per_mtok",
    "cache_write": "cache_write_usd_per_mtok",
    "reasoning": "reasoning_usd_per_mtok",
}
# A price of nothing here means paid for by a subscription, or by one's own machine: nothing that is to be had for free.
PLAN_ENDINGS = ("-coding-plan", "-coding-plan-cn", "-token-plan", "-token-plan-cn", "-token-plan-ams", "-token-plan-sgp")
PLANS = frozenset({"github-copilot", "gitlab", "kimi-for-coding"})
OWN_MACHINE = frozenset({"atomic-chat", "lmstudio", "privatemode-ai"})
# Whose free models are meant for the provider's own app. https://opencode.ai/docs/zen, https://kilo.ai/docs
OWN_APPS = frozenset({"kilo", "opencode"})


class ModelsDev(Source):
    name = "models_dev"
    title = "models.dev"
    url = "https://models.dev/api.json"
    rank = 10
    limit_bytes = 32_000_000

    def read(self, body: Any) -> Catalog:
        if not isinstance(body, Mapping):
            raise ValueError("it is no object of providers.")
        offers: list[Offered] = []
        providers: list[Provided] = []
        skipped: list[Skipped] = []
        check_count(body, *(one["models"] for one in body.values() if isinstance(one, Mapping) and isinstance(one.get("models"), Mapping)))
        for provider_id, provider in body.items():
            if not isinstance(provider, Mapping) or not isinstance(provider.get("models"), Mapping):
                skipped.append(Skipped(text(provider_id, 100), "It is no provider with models."))
                continue
            try:
                providers.append(provided(name(provider_id, 100), provider))
            except ValueError as error:
                skipped.append(Skipped(text(provider_id, 100), str(error)))
                continue
            for model_id, model in provider["models"].items():
                entry = f"{provider_id}/{text(model_id)}"
                try:
                    offers.append(offered(provider_id, model_id, model))
                except ValueError as error:
                    skipped.append(Skipped(entry, str(error)))
        if not offers:
            raise ValueError("it lists no models.")
        return Catalog(tuple(offers), tuple(providers), tuple(skipped))


def provided(provider_id: str, provider: Mapping[str, Any]) -> Provided:
    keys = texts(provider.get("env"))
    base_url = text(provider.get("api"), 500)
    return Provided(
        provider=provider_id,
        title=text(provider.get("name"), 200),
        base_url=base_url if base_url.startswith(("https://", "http://")) else "",
        kind=KINDS.get(text(provider.get("npm")), ""),
        # The last of several is the key; those before it are hosts and accounts.
        key_env=next((key for key in reversed(keys) if "KEY" in key or "TOKEN" in key), keys[-1] if keys else ""),
        doc=text(provider.get("doc"), 500),
    )


def offered(provider_id: str, model_id: Any, model: Any) -> Offered:
    """Reads one model. Errors: ValueError that says why it is left out."""
    served_name = name(model_id)
    if not isinstance(model, Mapping):
        raise ValueError("It is no object.")
    limit = model["limit"] if isinstance(model.get("limit"), Mapping) else {}
    modalities = model["modalities"] if isinstance(model.get("modalities"), Mapping) else {}
    reads, writes = texts(modalities.get("input")), texts(modalities.get("output"))
    cost = model["cost"] if isinstance(model.get("cost"), Mapping) else {}
    why = unpriced(reads, writes)
    amounts = {ours: amount(cost.get(theirs)) for theirs, ours in PRICES.items()}
    # What makes pictures or songs besides text may charge for those.
    is_free = not why and not {*writes} - {"text"} and amounts["input_usd_per_mtok"] == amounts["output_usd_per_mtok"] == Decimal(0)
    is_plan = provider_id in PLANS or provider_id.endswith(PLAN_ENDINGS)
    free = is_free and not is_plan and provider_id not in OWN_MACHINE
    return Offered(
        provider=provider_id,
        served_name=served_name,
        title=text(model.get("name")),
        facts=known(
            {
                "context_window": size(limit.get("context")),
                "output_limit": size(limit.get("output")),
                "tools": truth(model.get("tool_call")),
                "vision": "image" in reads if reads else truth(model.get("attachment")),
                "audio": "audio" in reads if reads else None,
                "files": "pdf" in reads if reads else None,
                "structured_output": truth(model.get("structured_output")),
                "reasoning": truth(model.get("reasoning")),
            }
        ),
        prices={} if why else known({**{ours: price(said) for ours, said in amounts.items()}, facts.TIERS: tiers(cost)}),
        free=free,
        own_app=free and provider_id in OWN_APPS,
        about=known(
            {
                "released": text(model.get("release_date"), 10),
                "updated": text(model.get("last_updated"), 10),
                "knowledge": text(model.get("knowledge"), 10),
                "open_weights": truth(model.get("open_weights")),
                "family": text(model.get("family"), 100),
                "status": text(model.get("status"), 20),
                "input": reads,
                "output": writes,
                "kind": override(model),
                "plan": is_plan or None,
                "own_machine": provider_id in OWN_MACHINE or None,
                "unpriced": why,
            }
        ),
    )


def tiers(cost: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Reads prices of long prompts. `context_over_200k` is an older copy of the same, read where there is nothing else."""
    found: dict[int, Mapping[str, Any]] = {}
    for tier in objects(cost.get("tiers")):
        mark = tier["tier"] if isinstance(tier.get("tier"), Mapping) else {}
        above = size(mark.get("size"))
        # Only the size of the context is something that a call's tokens tell.
        if mark.get("type") == "context" and above is not None:
            found[above] = tier
    if not found and isinstance(cost.get("context_over_200k"), Mapping):
        found[200_000] = cost["context_over_200k"]
    read = [{facts.ABOVE: above, **known({ours: price(amount(tier.get(theirs))) for theirs, ours in PRICES.items()})} for above, tier in sorted(found.items())]
    return [tier for tier in read if len(tier) > 1][: facts.MOST_TIERS]


def override(model: Mapping[str, Any]) -> str | None:
    """Tells which kind of API this one model has, where it has another than its provider's others."""
    own = model.get("provider")
    return KINDS.get(text(own.get("npm"))) if isinstance(own, Mapping) and own.get("npm") else None


SOURCE = ModelsDev()
