"""An error that stands inside a body or a stream: the same tables as for one that has a status of its own."""

from __future__ import annotations

from wire.errors import TimedOut, UpstreamError
from wire.refusals import BROKEN, folded, meaning
from wire.waits import in_words

# What a text is read as where nothing says a status: the one whose wordings cover the most.
UNSAID = (400, 429, 503, 500)


def upstream_error(status: int | None, text: str, retry_after_s: float | None = None, now_s: float = 0.0) -> UpstreamError:
    """An UpstreamError of the right code and fault. `text` is not yet redacted; a wait that it tells in words counts."""
    found = meaning(status, text) if status is not None else next((m for s in UNSAID if (m := meaning(s, text)) not in (meaning(s, ""), BROKEN)), BROKEN)
    kind = TimedOut if found.code == TimedOut.code else UpstreamError
    wait = retry_after_s if retry_after_s is not None else in_words(text, now_s) if found.waits else None
    return kind(folded(text), code=found.code, http_status=status, fault=found.fault, retry_after_s=wait)
