"""Google's Gemini API, as a provider speaks it."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import Any
from urllib.parse import unquote

from tests.fake.dialects import FakeDialect
from tests.fake.script import Call, Said

PATH = re.compile(r"/models/(?P<name>.+):(?P<method>generateContent|streamGenerateContent|countTokens)$")


def usage_of(said: Said) -> dict[str, Any] | None:
    if said.usage is None or isinstance(said.usage, dict):
        return said.usage
    given, made = said.usage
    return {"promptTokenCount": given, "candidatesTokenCount": made, "totalTokenCount": given + made}


def parts_of(said: Said) -> list[dict[str, Any]]:
    """The parts of an answer, one text piece each. A call whose id is empty comes without one; one whose id has a `!` bears a signature behind it."""
    parts: list[dict[str, Any]] = [{"text": said.reasoning, "thought": True}] if said.reasoning else []
    parts += [{"text": piece} for piece in said.pieces if piece]
    for call_id, name, arguments in said.tools:
        call_id, _, signature = call_id.partition("!")
        call = {"name": name, "args": json.loads(arguments), **({"id": call_id} if call_id else {})}
        parts.append({"functionCall": call, **({"thoughtSignature": signature} if signature else {})})
    return parts


class Gemini(FakeDialect):
    name = "gemini"

    def asks(self, method: str, path: str) -> bool:
        return method == "POST" and PATH.search(path) is not None

    def model_of(self, call: Call) -> str:
        found = PATH.search(call.path)
        return unquote(found["name"]) if found else ""

    def wants_stream(self, call: Call) -> bool:
        return ":streamGenerateContent" in call.path

    def head(self, said: Said, call: Call) -> dict[str, Any]:
        return {"modelVersion": call.model, "responseId": "fake-response", **said.extra}

    def body(self, said: Said, call: Call) -> Any:
        if call.path.endswith(":countTokens"):
            return {"totalTokens": 321}
        candidate = {"content": {"parts": parts_of(said), "role": "model"}, "finishReason": said.finish or "STOP", "index": 0}
        usage = usage_of(said)
        return {"candidates": [candidate], **({"usageMetadata": usage} if usage is not None else {}), **self.head(said, call)}

    def stream(self, said: Said, call: Call) -> Sequence[bytes]:
        out = [data({"candidates": [{"content": {"parts": [part], "role": "model"}, "index": 0}], **self.head(said, call)}) for part in parts_of(said)]
        last: dict[str, Any] = {"content": {"parts": [{"text": ""}], "role": "model"}, "finishReason": said.finish or "STOP", "index": 0}
        usage = usage_of(said)
        return [*out, data({"candidates": [last], **({"usageMetadata": usage} if usage is not None else {}), **self.head(said, call)})]

    def error(self, status: int, message: str, code: str) -> Any:
        return {"error": {"code": status, "message": message, "status": code or "UNKNOWN"}}


def data(value: Any) -> bytes:
    return b"data: " + json.dumps(value, ensure_ascii=False).encode() + b"\n\n"


DIALECT = Gemini()
