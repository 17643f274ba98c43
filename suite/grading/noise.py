"""Answers that are no model's words: what a proxy or an adapter in between writes when a call of its own failed, with a status that says all is well.

Whether it is one cannot be known, so such an answer is scored as any other, and said to be odd.
"""

from __future__ import annotations

import re
from dataclasses import replace

from suite.grading.outcomes import Grade, Outcome

READS_LIKE_ERROR = "reads_like_error"
LONGEST = 500  # characters; who writes more about an error means to
NOISE = re.compile(
    r"\s*(?:\[\W*(?:error|exception|fatal)\b[^\]]*\]"  # [ERROR] connection reset
    r"|(?:[\w.]+ ){0,3}[\w.]*(?:error|exception):"  # Error: …, openai.APIConnectionError: …, upstream connect error: …
    r"|traceback \(most recent call last\)"
    r"|(?:http(?:/[\d.]+)? )?(?:429|5\d\d) [a-z]"  # 502 Bad Gateway
    r"|(?:connection|request|gateway|read|upstream)(?: \w+)? (?:reset|refused|timeout|timed out|aborted|closed)\b)",
    re.IGNORECASE,
)


def reads_like_error(text: str) -> bool:
    return len(text) <= LONGEST and NOISE.match(text) is not None


def marked(grade: Grade, text: str) -> Grade:
    """Names what is odd about an answer, where its grade names nothing better."""
    is_open = grade.outcome == Outcome.UNPARSED or (grade.outcome in (Outcome.PASSED, Outcome.FAILED) and not grade.reason)
    return replace(grade, reason=READS_LIKE_ERROR) if is_open and reads_like_error(text) else grade
