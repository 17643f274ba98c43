"""FreeLLMAPI's catalog of free tiers: which models cost nothing where, within which limits. Source: https://github.com/tashfeenahmed/freellmapi (MIT)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from catalog.sources import Catalog, Offered, Provided, Skipped, Source
from catalog.sources._reading import LONGEST_NOTE, check_count, known, name, objects, size, text, truth

# Its platforms that models.dev knows under another id.
SAME_AS: Mapping[str, str] = {
    "cloudflare": "cloudflare-workers-ai",
    "github": "github-models",
    "ollama": "ollama-cloud",
    "ovh": "ovhcloud",
    "zhipu": "zhipuai",
}
# The catalog gives no addresses. These are of platforms that models.dev does not have; as each documents them.
BASE_URLS: Mapping[str, str] = {
    "agnes": "https://apihub.agnes-ai.com/v1",
    "aihorde": "https://oai.aihorde.net/v1",
    "ainative": "https://api.ainative.studio/api/v1",
    "aion": "https://api.aionlabs.ai/v1",
    "bai": "https://api.b.ai/v1",
    "bazaarlink": "https://bazaarlink.ai/api/v1",
    "llm7": "https://api.llm7.io/v1",
    "longcat": "https://api.longcat.chat/openai/v1",
    "nara": "https://router.bynara.id/v1",
    "navy": "https://api.navy/v1",
    "pollinations": "https://gen.pollinations.ai/v1",
    "qianfan": "https://qianfan.baidubce.com/v2",
    "reka": "https://api.reka.ai/v1",
    "routeway": "https://api.routeway.ai/v1",
    "sealion": "https://api.sea-lion.ai/v1",
    "volcengine": "https://ark.cn-beijing.volces.com/api/v3",
    "xfyun": "https://spark-api-open.xf-yun.com/v1",
}
LIMITS = {"rpm": ("requests", "minute"), "rpd": ("requests", "day"), "tpm": ("tokens", "minute"), "tpd": ("tokens", "day")}
# Said of a model that cannot be used as things stand.
BLOCKER = "blocker"


class FreeLLMAPI(Source):
    name = "freellmapi"
    title = "FreeLLMAPI"
    url = "https://api.freellmapi.co/v1/latest"
    rank = 30
    limit_bytes = 8_000_000

    def read(self, body: Any) -> Catalog:
        if not isinstance(body, Mapping) or not isinstance(body.get("models"), list):
            raise ValueError("it is no list of models.")
        platforms = body.get("platforms")
        check_count(body["models"], platforms if isinstance(platforms, list) else ())
        offers: list[Offered] = []
        skipped: list[Skipped] = []
        for model in body["models"]:
            entry = f"{text(model.get('platform'), 100)}/{text(model.get('modelId'))}" if isinstance(model, Mapping) else ""
            try:
                offers.append(offered(model))
            except ValueError as error:
                skipped.append(Skipped(entry, str(error)))
        if not offers:
            raise ValueError("it lists no models.")
        titles = {text(one.get("id"), 100): text(one.get("name"), 200) for one in objects(platforms)}
        providers = tuple(provided(platform, titles.get(platform, "")) for platform in sorted({*titles, *BASE_URLS}) if platform)
        return Catalog(tuple(offers), providers, tuple(skipped), version=text(body.get("version"), 100))


def provided(platform: str, title: str) -> Provided:
    base_url = BASE_URLS.get(platform, "")
    return Provided(SAME_AS.get(platform, platform), title=title or platform, base_url=base_url, kind="openai" if base_url else "")


def offered(model: Any) -> Offered:
    """Reads one model. Errors: ValueError that says why it is left out."""
    if not isinstance(model, Mapping):
        raise ValueError("It is no object.")
    platform, served_name = name(model.get("platform"), 100), name(model.get("modelId"))
    if (modality := text(model.get("modality"), 40)) and modality not in ("text", "chat"):
        raise ValueError(f"It makes {modality}, no text.")
    if model.get("enabled") is False:
        raise ValueError("The catalog has switched it off.")
    quirks = list(objects(model.get("quirks")))
    return Offered(
        provider=SAME_AS.get(platform, platform),
        served_name=served_name,
        title=text(model.get("displayName")),
        facts=known(
            {"context_window": size(model.get("contextWindow")), "tools": truth(model.get("supportsTools")), "vision": truth(model.get("supportsVision"))}
        ),
        # No price: free within limits is not free for whoever pays that provider for more.
        free=True,
        limits=limits(model.get("limits")),
        about=known(
            {
                "rank": size(model.get("intelligenceRank")),
                "speed_rank": size(model.get("speedRank")),
                "size": text(model.get("sizeLabel"), 40),
                "budget": text(model.get("monthlyTokenBudget"), 200),
                "notes": [said for quirk in quirks if (said := note(quirk))][:10],
                "blocked": any(quirk.get("severity") == BLOCKER for quirk in quirks) or None,
            }
        ),
    )


def limits(said: Any) -> dict[str, Any]:
    """Reads limits into a roster's shape."""
    found: dict[str, Any] = {}
    for theirs, (counted, window) in LIMITS.items():
        most = said.get(theirs) if isinstance(said, Mapping) else None
        if isinstance(most, int) and not isinstance(most, bool) and 0 < most <= 10**15:
            found.setdefault(counted, {})[window] = most
    return found


def note(quirk: Mapping[str, Any]) -> str:
    title, body = text(quirk.get("title"), 200), text(quirk.get("body"), LONGEST_NOTE)
    return f"{title}: {body}" if title and body else title or body


SOURCE = FreeLLMAPI()
