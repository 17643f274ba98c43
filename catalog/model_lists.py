"""OpenAI-style model lists: names, and whatever facts a server's list happens to tell. Pure; a new server's field is a line in a table."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from decimal import Decimal, InvalidOperation, Overflow
from typing import Any

from catalog import facts, names
from catalog.providers import Listed
from catalog.shape import ShapeError

MOST_MODELS = 20_000
MILLION = Decimal(1_000_000)
# Where a model's name stands in its entry, the first that is there wins.
NAME_FIELDS = ("id", "model", "key", "model_name", "model_group", "name")


# ------------------------------------------------------------------ how a value is read; None: it says nothing


def tokens(value: Any) -> int | None:
    """Several values are those of several providers behind one name: the least holds for all."""
    if isinstance(value, list):
        return min((found for one in value if not isinstance(one, list) and (found := tokens(one)) is not None), default=None)
    if isinstance(value, str) and value.isascii() and value.isdigit() and len(value) < 12:
        value = int(value)
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 < value <= facts.MOST_TOKENS else None


def truth(value: Any) -> bool | None:
    if isinstance(value, list):
        said = [one for one in value if isinstance(one, bool)]
        return all(said) if said else None
    return value if isinstance(value, bool) else None


def lists(word: str) -> Callable[[Any], bool | None]:
    """A complete list: what it does not hold is not there."""
    return lambda value: word in value if isinstance(value, list) else None


def lists_any_case(word: str) -> Callable[[Any], bool | None]:
    return lambda value: word in {str(one).lower() for one in value} if isinstance(value, list) else None


def mentions(*wanted: str) -> Callable[[Any], bool | None]:
    """A list, or an object of flags, that may leave things out: only what it holds is told."""

    def read(value: Any) -> bool | None:
        if isinstance(value, Mapping):
            return True if any(value.get(word) is True for word in wanted) else None
        return True if isinstance(value, list) and any(word in value for word in wanted) else None

    return read


def an_object(value: Any) -> bool | None:
    return True if isinstance(value, Mapping) and value else None


def price(value: Any, times: Decimal) -> str | None:
    """A negative price means that it varies (OpenRouter), so it is unknown."""
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        return None
    try:
        amount = Decimal(str(value)) * times
    except (InvalidOperation, Overflow):
        return None
    if not amount.is_finite() or not 0 <= amount <= facts.MOST_USD_PER_MTOK:
        return None
    return facts.plain(amount.quantize(facts.PRICE_PLACES))


def per_token(value: Any) -> str | None:
    return price(value, MILLION)


def per_mtok(value: Any) -> str | None:
    return price(value, Decimal(1))


def text_per_token_or_number_per_mtok(value: Any) -> str | None:
    """`pricing.input` is text per token at Vercel, a number per million at Together and Hugging Face."""
    return per_token(value) if isinstance(value, str) else per_mtok(value)


# ------------------------------------------------------------------ where facts stand: path, then how it is read; the first that says something wins

Reader = Callable[[Any], Any]
WHERE: dict[str, tuple[tuple[str, Reader], ...]] = {
    "context_window": (
        ("top_provider.context_length", tokens),  # OpenRouter: what is really served
        ("context_window", tokens),  # Groq
        ("context_length", tokens),  # OpenRouter, Together
        ("max_model_len", tokens),  # vLLM
        ("meta.n_ctx", tokens),  # llama.cpp: the loaded window
        ("meta.n_ctx_train", tokens),  # llama.cpp: older ones tell only this
        ("loaded_instances.*.config.context_length", tokens),  # LM Studio
        ("max_context_length", tokens),  # Mistral, LM Studio
        ("model_info.max_input_tokens", tokens),  # LiteLLM
        ("max_input_tokens", tokens),
        ("capabilities.limits.max_context_window_tokens", tokens),  # Copilot
        ("limits.max_input_tokens", tokens),  # GitHub Models
        ("providers.*.context_length", tokens),  # Hugging Face
        ("details.context_length", tokens),  # Ollama
        ("context_size", tokens),  # Novita
        ("inputTokenLimit", tokens),
    ),
    "output_limit": (
        ("top_provider.max_completion_tokens", tokens),
        ("max_completion_tokens", tokens),  # Groq
        ("max_output_tokens", tokens),
        ("model_info.max_output_tokens", tokens),  # LiteLLM
        ("capabilities.limits.max_output_tokens", tokens),
        ("limits.max_output_tokens", tokens),
        ("max_output_length", tokens),
        ("outputTokenLimit", tokens),
    ),
    "tools": (
        ("supported_parameters", lists("tools")),
        ("model_info.supports_function_calling", truth),
        ("supports_function_calling", truth),
        ("capabilities.function_calling", truth),  # Mistral
        ("capabilities.trained_for_tool_use", truth),  # LM Studio
        ("capabilities.supports.tool_calls", truth),  # Copilot
        ("providers.*.supports_tools", truth),
        ("supports_tools", truth),
        ("capabilities", mentions("tools", "tool-calling")),
        ("features", mentions("function-calling", "tools")),
    ),
    "vision": (
        ("architecture.input_modalities", lists("image")),
        ("input_modalities", lists("image")),
        ("modalities.input", lists("image")),
        ("supported_input_modalities", lists("image")),
        ("supportedInputModalities", lists_any_case("image")),  # CLI Proxy API, in Gemini's shape
        ("model_info.supports_vision", truth),
        ("supports_vision", truth),
        ("supports_image_input", truth),
        ("capabilities.vision", truth),
        ("capabilities.supports.vision", truth),
        ("capabilities", mentions("vision", "multimodal")),
    ),
    "audio": (
        ("architecture.input_modalities", lists("audio")),
        ("input_modalities", lists("audio")),
        ("modalities.input", lists("audio")),
        ("model_info.supports_audio_input", truth),
    ),
    "files": (
        ("architecture.input_modalities", lists("file")),
        ("input_modalities", lists("file")),
        ("modalities.input", lists("pdf")),
        ("model_info.supports_pdf_input", truth),
    ),
    "structured_output": (
        ("supported_parameters", lists("structured_outputs")),
        ("model_info.supports_response_schema", truth),
        ("supports_response_schema", truth),
        ("capabilities.supports.structured_outputs", truth),
        ("providers.*.supports_structured_output", truth),
        ("supports_structured_output", truth),
        ("features", mentions("structured-outputs")),
    ),
    "reasoning": (
        ("supported_parameters", lists("reasoning")),
        ("model_info.supports_reasoning", truth),
        ("supports_reasoning", truth),
        ("capabilities.reasoning", truth),
        ("capabilities.reasoning", an_object),  # LM Studio
        ("capabilities", mentions("thinking", "reasoning")),
        ("features", mentions("reasoning")),
        ("thinking", truth),
    ),
    "input_usd_per_mtok": (
        ("pricing.prompt", per_token),
        ("pricing.input", text_per_token_or_number_per_mtok),
        ("model_info.input_cost_per_token", per_token),
        ("input_cost_per_token", per_token),  # LiteLLM's groups
    ),
    "output_usd_per_mtok": (
        ("pricing.completion", per_token),
        ("pricing.output", text_per_token_or_number_per_mtok),
        ("model_info.output_cost_per_token", per_token),
        ("output_cost_per_token", per_token),
    ),
    "cache_read_usd_per_mtok": (
        ("pricing.input_cache_read", per_token),
        ("pricing.cached_input", per_mtok),  # Together
        ("model_info.cache_read_input_token_cost", per_token),
    ),
    "cache_write_usd_per_mtok": (
        ("pricing.input_cache_write", per_token),
        ("model_info.cache_creation_input_token_cost", per_token),
    ),
}


def at(value: Any, path: str) -> Any:
    """Follows a dotted path; `*` gathers from every element of a list."""
    head, _, rest = path.partition(".")
    if head == "*":
        return [at(one, rest) for one in value] if isinstance(value, list) else None
    value = value.get(head) if isinstance(value, Mapping) else None
    return at(value, rest) if rest else value


def facts_of(entry: Mapping[str, Any]) -> dict[str, Any]:
    """What one entry tells, by the roster's fact names."""
    found: dict[str, Any] = {}
    for fact, places in WHERE.items():
        said = (read(at(entry, path)) for path, read in places)
        if (value := next((one for one in said if one is not None), None)) is not None:
            found[fact] = value
    return found


# ------------------------------------------------------------------ whether it answers prompts with text

# Kinds, modes and types that lists write; what is none of these says nothing.
CHAT_KINDS = frozenset({"chat", "completion", "responses", "language", "code", "llm", "vlm", "text-generation", "chat-completion", "text"})
# fmt: off
OTHER_KINDS = frozenset({
    "embedding", "embeddings", "image", "image_generation", "image-generation", "image_edit", "audio", "audio_transcription", "audio_speech",
    "transcribe", "transcription", "speech", "tts", "stt", "moderation", "moderations", "rerank", "reranker", "video", "video_generation",
    "realtime", "search", "vector_store", "feature-extraction", "text-to-image", "text-to-speech",
})
# fmt: on
KIND_FIELDS = ("type", "mode", "model_info.mode", "task", "kind", "capabilities.type", "model_type", "pipeline_tag")
OUTPUT_FIELDS = ("architecture.output_modalities", "output_modalities", "modalities.output", "supported_output_modalities", "supportedOutputModalities")
# Words of names that only models of another kind bear, where a list says nothing but names.
# fmt: off
OTHER_WORDS = frozenset({
    "embed", "embedding", "embeddings", "rerank", "reranker", "whisper", "tts", "dalle", "moderation", "transcribe", "imagen", "veo", "sora",
    "flux", "sdxl", "diffusion", "bge", "realtime", "asr", "stt", "upscaler", "lyria",
})
# fmt: on
WORD = re.compile(r"[a-z]+")


def chats(entry: Any, name: str) -> bool:
    """Whether an entry's model answers prompts with text: as the list says, else as far as its name gives away."""
    if isinstance(entry, Mapping) and (said := said_to_chat(entry)) is not None:
        return said
    words = set(WORD.findall(name.lower()))
    return not (words & OTHER_WORDS or {"dall", "e"} <= words or {"gpt", "image"} <= words or {"stable", "diffusion"} <= words)


def said_to_chat(entry: Mapping[str, Any]) -> bool | None:
    for path in KIND_FIELDS:
        kind = at(entry, path)
        if isinstance(kind, str) and kind.lower() in CHAT_KINDS | OTHER_KINDS:
            return kind.lower() in CHAT_KINDS
    for path in OUTPUT_FIELDS:
        if (text := lists_any_case("text")(at(entry, path))) is not None:
            return text
    methods, can = entry.get("supportedGenerationMethods"), entry.get("capabilities")
    if isinstance(methods, list) and methods:
        return "generateContent" in methods
    if isinstance(can, Mapping) and isinstance(can.get("completion_chat"), bool):  # Mistral
        return bool(can["completion_chat"])
    if isinstance(can, list) and ("completion" in can or "embedding" in can):  # Ollama
        return "completion" in can
    return None


def name_of(entry: Any) -> str | None:
    """An entry's name, None where it has none that can be asked for."""
    said = entry if isinstance(entry, str) else next((entry[f] for f in NAME_FIELDS if isinstance(entry.get(f), str) and entry[f]), None)
    try:
        return names.check_served_name(said)
    except ShapeError:
        return None


def entries(body: Any) -> list[Any]:
    """The lists in a body, told apart from any other JSON. Errors: ValueError where there is none."""
    if isinstance(body, list):
        found = body
    elif isinstance(body, Mapping) and any(isinstance(body.get(field), list) for field in ("data", "models")):
        # llama.cpp sends both, the second with more to tell: the same name is one model.
        found = [entry for field in ("data", "models") if isinstance(body.get(field), list) for entry in body[field]]
    elif isinstance(body, Mapping) and body.get("object") == "list" and body.get("data", 0) is None:
        found = []  # Ollama without a model
    else:
        raise ValueError("It is no list of models.")
    if any(not isinstance(entry, Mapping | str) for entry in found):
        raise ValueError("Its list holds something that is no model.")
    if found and not any(name_of(entry) for entry in found):
        raise ValueError("No entry of its list has a name.")
    return found[:MOST_MODELS]


def is_cut(body: Any) -> bool:
    """Tells whether a list is longer than is read: what is not in what was read may be there all the same."""
    lists_there = [body] if isinstance(body, list) else [body.get(field) for field in ("data", "models")] if isinstance(body, Mapping) else []
    return sum(len(one) for one in lists_there if isinstance(one, list)) > MOST_MODELS


def read(body: Any) -> list[Listed]:
    """Reads a model list, in its order. Errors: ValueError where it is none."""
    found: dict[str, Listed] = {}
    for entry in entries(body):
        if (name := name_of(entry)) is None:
            continue
        told = facts_of(entry) if isinstance(entry, Mapping) else {}
        before = found.get(name)
        found[name] = Listed(name, {**told, **(before.facts if before else {})}, chats(entry, name) and (before is None or before.chat))
    return list(found.values())
