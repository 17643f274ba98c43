"""Small pictures for a page that stands alone: inline SVG without any text in it, so that words stay words at every width. Pure.

Everything is drawn on a field of 100 by 10 that stretches; strokes do not stretch with it, so a dot stays a dot.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import ceil, log10

from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString

OPEN = '<svg class="{}" viewBox="0 0 100 10" preserveAspectRatio="none" role="img" aria-label="{}">{}</svg>'
MOST_BARS = 24


def whisker(rate: float, low: float, high: float, said: str) -> SafeString:
    """Draws a rate as a dot on its interval."""
    drawn = format_html('<path class="axis" d="M0 5H100"/><path class="span" d="M{} 5H{}"/><path class="dot" d="M{} 5h0"/>', at(low), at(high), at(rate))
    return format_html(OPEN, "whisker", said, drawn)


def stacked(parts: Sequence[tuple[str, int]], said: str) -> SafeString:
    """Draws shares of a whole side by side. Shape: a class name and a count each."""
    total = sum(count for _, count in parts)
    x, rects = 0.0, []
    for name, count in parts:
        width = 100 * count / total if total else 0.0
        if count:
            rects.append((name, f"{x:.3f}", f"{width:.3f}"))
        x += width
    drawn = format_html_join("", '<rect class="o-{}" x="{}" y="0" width="{}" height="10"/>', rects)
    return format_html(OPEN, "stacked", said, drawn)


def bars(heights: Sequence[int], said: str) -> SafeString:
    """Draws a histogram."""
    most = max(heights, default=0)
    width = 100 / len(heights) if heights else 100
    rects = [
        (f"{i * width + width * 0.06:.3f}", f"{10 - 10 * count / most:.3f}", f"{width * 0.88:.3f}", f"{10 * count / most:.3f}")
        for i, count in enumerate(heights)
        if count
    ]
    drawn = format_html_join("", '<rect x="{}" y="{}" width="{}" height="{}"/>', rects)
    return format_html(OPEN, "bars", said, drawn)


def at(share: float) -> str:
    return f"{100 * min(1.0, max(0.0, share)):.2f}"


def spread(values: Sequence[float], bins: int = MOST_BARS) -> tuple[list[int], float, float]:
    """Sorts positive values into bins whose bounds grow by one factor. Shape: counts, the lowest and the highest bound."""
    seen = [max(v, 1e-9) for v in values]
    if not seen:
        return [], 0.0, 0.0
    low, high = min(seen), max(seen)
    if high <= low * 1.0001:
        return [len(seen)], low, high
    count = min(bins, max(4, ceil(len(seen) ** 0.5) * 2))
    span = log10(high) - log10(low)
    found = [0] * count
    for v in seen:
        found[min(count - 1, int((log10(v) - log10(low)) / span * count))] += 1
    return found, low, high
