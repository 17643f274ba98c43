"""Which served names mean the same model: `meta-llama/Llama-3.3-70B-Instruct:free`, `llama-3.3-70b-instruct`. Pure, and careful: what is not surely one is two.

Providers write a model's name with or without its maker, with their own folders before it and what they did to it (a price class, rounded weights) after it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache

# How makers are written, and the name they are known by.
MAKERS: Mapping[str, str] = {
    written: maker
    for maker, spellings in {
        "ai21": "ai21labs ai21-labs",
        "alibaba": "qwen alibaba-cloud tongyi alibaba-nlp",
        "allenai": "ai2",
        "amazon": "aws",
        "anthropic": "",
        "baidu": "ernie",
        "bytedance": "bytedance-seed",
        "cohere": "coherelabs cohereforai",
        "deepseek": "deepseek-ai",
        "google": "",
        "ibm": "ibm-granite",
        "inclusionai": "",
        "meta": "meta-llama metaai",
        "microsoft": "",
        "minimax": "minimaxai",
        "mistral": "mistralai",
        "moonshotai": "moonshot moonshot-ai kimi",
        "nousresearch": "",
        "nvidia": "",
        "openai": "",
        "perplexity": "",
        "stepfun": "stepfun-ai",
        "tencent": "",
        "xai": "x-ai",
        "xiaomi": "xiaomimimo",
        "zai": "z-ai zai-org zhipu zhipuai thudm",
    }.items()
    for written in (maker, *spellings.split())
}
# What the makers' own models begin with, where no name of a maker stands before them.
FAMILIES: tuple[tuple[str, str], ...] = (
    ("claude-", "anthropic"),
    ("gpt-", "openai"),
    ("o1", "openai"),
    ("o3", "openai"),
    ("o4-", "openai"),
    ("codex-", "openai"),
    ("gemini-", "google"),
    ("gemma-", "google"),
    ("gemma3", "google"),
    ("llama-", "meta"),
    ("qwen", "alibaba"),
    ("qwq", "alibaba"),
    ("kimi-", "moonshotai"),
    ("glm-", "zai"),
    ("deepseek-", "deepseek"),
    ("grok-", "xai"),
    ("mistral-", "mistral"),
    ("ministral-", "mistral"),
    ("magistral-", "mistral"),
    ("codestral-", "mistral"),
    ("devstral-", "mistral"),
    ("pixtral-", "mistral"),
    ("minimax-", "minimax"),
    ("command-", "cohere"),
    ("nova-", "amazon"),
    ("nemotron-", "nvidia"),
    ("phi-", "microsoft"),
    ("granite-", "ibm"),
    ("hermes-", "nousresearch"),
    ("mimo-", "xiaomi"),
    ("sonar", "perplexity"),
    ("jamba-", "ai21"),
    ("step-", "stepfun"),
)
# What some providers put before every name.
PREFIXES = re.compile(r"^(?:databricks|hf)[-:]")
# Endings that choose a price, a place or a rounding, and no other model.
ROUTES = frozenset({"free", "nitro", "floor", "online", "exacto", "latest", "cloud", "beta", "tee", "maas", "default", "together", "fast"})
ENDINGS = re.compile(r"-(?:free|tee|maas|fp8|fp16|bf16|fp4|nvfp4|mxfp4|awq|gptq|int4|int8)$")
BEDROCK = re.compile(r"^(?:(?:us|eu|apac|global|au|jp|us-gov)\.)?(?P<maker>[a-z0-9]+)\.(?P<name>[a-z].*)$")
REGIONS = frozenset({"us", "eu", "apac", "global", "au", "jp", "us-gov"})
BEDROCK_VERSION = re.compile(r"-v\d+(?::\d+)?$")
POINT = re.compile(r"(?<=\d)p(?=\d)")
DATE = re.compile(r"-(20\d{2})-?([01]\d)-?([0-3]\d)$")
PLAIN = re.compile(r"[^a-z0-9]+")
# Names that say nothing of which model it is.
VAGUE = frozenset(
    {"auto", "default", "router", "small", "medium", "large", "mini", "chat", "model", "free", "fast", "pro", "best", "coder", "reasoning", "test"}
)


@dataclass(frozen=True, slots=True)
class Name:
    """One served name taken apart. Shape: `maker` empty where nothing tells it; `stem` without punctuation; `date` of a dated snapshot, eight digits."""

    maker: str
    stem: str
    date: str


@lru_cache(maxsize=16384)
def read(served_name: str) -> Name:
    """Takes a served name apart."""
    text = served_name.casefold().removeprefix("models/").removeprefix("~")
    *folders, base = text.split("/")
    base, _, at = PREFIXES.sub("", base).partition("@")
    base, _, tag = base.partition(":")
    is_bedrock = (not folders and base.split(".")[0].split("-")[0] in MAKERS) or base.partition(".")[0] in REGIONS
    if is_bedrock and (found := BEDROCK.match(base)):
        folders, base = [found["maker"]], found["name"]
        base, tag = BEDROCK_VERSION.sub("", base), "" if tag.isdigit() else tag
    elif folders and folders[0] == "bedrock":
        base = BEDROCK_VERSION.sub("", base)
    if at and at not in ROUTES:
        base = f"{base}-{at}"
    if tag and tag not in ROUTES:
        base = f"{base}-{tag.removesuffix('-cloud')}"
    base = ENDINGS.sub("", ENDINGS.sub("", base))
    if folders[:2] == ["accounts", "fireworks"]:
        base = POINT.sub("-", base)
    date = ""
    if dated := DATE.search(base):
        date, base = "".join(dated.groups()), base[: dated.start()]
    stem = PLAIN.sub("-", base).strip("-")
    maker = next((MAKERS[folder] for folder in reversed(folders) if folder in MAKERS), "")
    if not maker:
        maker = next((whose for begins, whose in FAMILIES if stem.startswith(begins)), "")
        known = next((written for written in MAKERS if stem.startswith(f"{written}-") and not maker), "")
        maker = MAKERS[known] if known else maker
    if not maker and len(folders) == 1 and not folders[0].startswith("@"):
        maker = PLAIN.sub("-", folders[0]).strip("-")
    # "nvidia-nemotron-…" and "nemotron-…" of the same maker are one.
    for written in (maker, *(w for w, whose in MAKERS.items() if whose == maker)):
        if maker and stem.startswith(f"{written}-") and not any(stem.startswith(begins) for begins, _ in FAMILIES):
            stem = stem[len(written) + 1 :]
            break
    return Name(maker, stem, date)


def ids_of(served_names: Iterable[str]) -> dict[str, str]:
    """Gives each name the id of the model it means, "maker/stem" or "stem"; names with the same id are the same model.

    A name without a maker joins the one maker that the others give. A dated snapshot is the undated name where it is the only one; of several each is its own.
    """
    names = {name: read(name) for name in served_names}
    makers: dict[str, set[str]] = {}
    for one in names.values():
        if one.maker:
            makers.setdefault(one.stem, set()).add(one.maker)
    whose: dict[str, str] = {stem: next(iter(of)) for stem, of in makers.items() if len(of) == 1 and stem not in VAGUE}
    whole = {name: (one.maker or whose.get(one.stem, ""), one.stem, one.date) for name, one in names.items()}
    dates: dict[tuple[str, str], set[str]] = {}
    for maker, stem, date in whole.values():
        dates.setdefault((maker, stem), set()).add(date)
    found = {}
    for name, (maker, stem, date) in whole.items():
        snapshots = dates[(maker, stem)] - {""}
        last = f"{stem}-{date}" if date and len(snapshots) > 1 else stem
        found[name] = f"{maker}/{last}" if maker else last or name.casefold()
    return found
