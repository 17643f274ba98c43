"""Providers by what their addresses tell: which one an endpoint is, and where the well-known ones are that catalogs give no address for."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from urllib.parse import urlsplit

from catalog.addresses import is_local_name, is_public, literal


@dataclass(frozen=True, slots=True)
class KnownProvider:
    """One provider of models. Shape: `provider` is models.dev's id where it has one; `base_url` may hold ${NAME} parts, which are each user's own."""

    source: str
    provider: str
    title: str
    base_url: str
    kind: str
    key_env: str
    doc: str


# models.dev names a package of code for some of these, not an address; the others must be there before any catalog was read. Base URLs as each documents them.
WELL_KNOWN: Mapping[str, tuple[str, str]] = {
    "aihubmix": ("https://aihubmix.com/v1", "openai"),
    "anthropic": ("https://api.anthropic.com/v1", "anthropic"),
    "cerebras": ("https://api.cerebras.ai/v1", "openai"),
    "cohere": ("https://api.cohere.ai/compatibility/v1", "openai"),
    "deepinfra": ("https://api.deepinfra.com/v1/openai", "openai"),
    "deepseek": ("https://api.deepseek.com", "openai"),
    "fireworks-ai": ("https://api.fireworks.ai/inference/v1", "openai"),
    "google": ("https://generativelanguage.googleapis.com/v1beta", "gemini"),
    "groq": ("https://api.groq.com/openai/v1", "openai"),
    "huggingface": ("https://router.huggingface.co/v1", "openai"),
    "mistral": ("https://api.mistral.ai/v1", "openai"),
    "openai": ("https://api.openai.com/v1", "openai"),
    "openrouter": ("https://openrouter.ai/api/v1", "openai"),
    "perplexity": ("https://api.perplexity.ai", "openai"),
    "togetherai": ("https://api.together.xyz/v1", "openai"),
    "v0": ("https://api.v0.dev/v1", "openai"),
    "venice": ("https://api.venice.ai/api/v1", "openai"),
    "vercel": ("https://ai-gateway.vercel.sh/v1", "openai"),
    "xai": ("https://api.x.ai/v1", "openai"),
}

# How they write themselves, where no catalog said it yet.
TITLES: Mapping[str, str] = {
    "aihubmix": "AIHubMix",
    "anthropic": "Anthropic",
    "cerebras": "Cerebras",
    "cohere": "Cohere",
    "deepinfra": "DeepInfra",
    "deepseek": "DeepSeek",
    "fireworks-ai": "Fireworks AI",
    "google": "Google Gemini",
    "groq": "Groq",
    "huggingface": "Hugging Face",
    "mistral": "Mistral",
    "openai": "OpenAI",
    "openrouter": "OpenRouter",
    "perplexity": "Perplexity",
    "togetherai": "Together AI",
    "v0": "v0",
    "venice": "Venice",
    "vercel": "Vercel AI Gateway",
    "xai": "xAI",
}

# Further hosts, by pattern.
MORE_HOSTS: Mapping[str, tuple[str, ...]] = {
    "amazon-bedrock": ("bedrock*.amazonaws.com",),
    "azure": ("*.openai.azure.com",),
    "azure-cognitive-services": ("*.services.ai.azure.com", "*.cognitiveservices.azure.com"),
    "cohere": ("api.cohere.com",),
    "databricks": ("*.databricks.com", "*.azuredatabricks.net"),
    "github-models": ("models.inference.ai.azure.com",),
    "google-vertex": ("aiplatform.googleapis.com", "*-aiplatform.googleapis.com"),
    "huggingface": ("api-inference.huggingface.co",),
    "nebius": ("api.studio.nebius.com", "api.studio.nebius.ai"),
    "snowflake-cortex": ("*.snowflakecomputing.com",),
    "togetherai": ("api.together.ai",),
}


def place(url: str) -> tuple[str, tuple[str, ...]]:
    """Gives an address's host and the parts of its path; an empty host where it has none that tells a provider."""
    try:
        parts = urlsplit(url)
        host = (parts.hostname or "").rstrip(".").lower()
    except ValueError:
        return "", ()
    # What a private address serves is anybody's guess; a part in braces is each user's own.
    if not host or "$" in host or "{" in host or is_private(host):
        return "", ()
    return host, tuple(part for part in parts.path.split("/") if part)


def is_private(host: str) -> bool:
    """Tells, without asking a resolver, that a host is one of an own network."""
    address = literal(host)
    return is_local_name(host) if address is None else not is_public(address)


def provider_of(stated: str, base_url: str, providers: Collection[KnownProvider]) -> str:
    """Tells which provider of the catalogs an endpoint is: as stated, else by its host, and by the longest path where several share one. Empty: unknown."""
    if stated:
        return stated
    host, path = place(base_url)
    if not host:
        return ""
    found: list[tuple[int, int, str]] = []
    for known in providers:
        theirs, begins = place(known.base_url)
        if theirs == host:
            shared = next((i for i, (one, other) in enumerate(zip(begins, path, strict=False)) if one != other), min(len(begins), len(path)))
            found.append((-shared, len(known.provider), known.provider))
    # Of several at the same address (a provider and its plans) the shorter name is the provider itself.
    if found:
        return min(found)[2]
    for name, patterns in MORE_HOSTS.items():
        if any(fnmatchcase(host, pattern) for pattern in patterns):
            return name
    # Regional hosts, such as eu.api.openai.com.
    return next((known.provider for known in providers if (theirs := place(known.base_url)[0]) and host.endswith(f".{theirs}")), "")
