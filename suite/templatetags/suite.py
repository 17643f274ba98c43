"""How outcomes, rates and digests look on the suite's pages."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from django import template
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString

from panels.templatetags.bench import interval, percent

register = template.Library()

# In the order of the bar: what counts in the rate, then what does not. What each is called and whether it counts.
OUTCOMES = {
    "passed": "passed",
    "failed": "failed",
    "refused": "refused",
    "unparsed": "not in the form asked for",
    "limit": "broke its own limit",
    "truncated": "cut off",
    "judge_failed": "not gradable",
    "infrastructure": "not answered",
}
WHOLE = format_html('<rect class="whole" x="0" y="0" width="{}" height="16"/>', 1000)


@register.simple_tag
def outcome_bar(outcomes: Any, total: Any) -> SafeString:
    """Draws what became of a run's tasks as one bar; the figures stand beside it."""
    whole, at, parts = max(int(total or 0), 1), 0.0, []
    for name in OUTCOMES:
        if share := (outcomes or {}).get(name, 0) * 1000 / whole:
            parts.append((name, f"{at:.2f}", f"{share:.2f}"))
            at += share
    rects = format_html_join("", '<rect data-outcome="{}" x="{}" y="0" width="{}" height="16"/>', parts)
    return format_html('<svg class="outcomes" viewBox="0 0 1000 16" preserveAspectRatio="none" aria-hidden="true">{}{}</svg>', WHOLE, rects)


@register.filter
def outcomes_of(summary: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Lists a summary's outcomes in the bar's order, those that there are."""
    counted = summary["outcomes"]
    return [{"name": name, "said": said, "count": counted[name]} for name, said in OUTCOMES.items() if counted.get(name)]


@register.simple_tag
def rate(summary: Any) -> str | SafeString:
    """Draws a pass rate with its interval, from whatever has `pass_rate` and `ci95`."""
    if not isinstance(summary, Mapping) or summary.get("pass_rate") is None:
        return "–"
    low, high = summary.get("ci95") or (summary["pass_rate"], summary["pass_rate"])
    return interval({"mean": summary["pass_rate"], "low": low, "high": high})


@register.simple_tag
def share(told: Any, good: bool = True) -> str | SafeString:
    """Draws a rate of the review suite, `{rate, ci95, n}`."""
    if not isinstance(told, Mapping) or told.get("rate") is None:
        return "–"
    low, high = told.get("ci95") or (told["rate"], told["rate"])
    return interval({"mean": told["rate"], "low": low, "high": high}, good)


@register.filter
def points(value: Any) -> str:
    """Writes a difference of two rates in percentage points, with its sign; "" is what a template makes of a field of nothing."""
    return "–" if value in (None, "") else f"{float(value) * 100:+.1f}".replace("-", "−")


@register.filter
def p_value(value: Any) -> str:
    return "–" if value in (None, "") else "< 0.001" if float(value) < 0.001 else f"{float(value):.3f}"


@register.filter
def ranks(rank: Any) -> str:
    """Writes the range of ranks that the intervals allow."""
    low, high = rank
    return str(low) if low == high else f"{low}–{high}"


@register.filter
def pretty(value: Any) -> str:
    """Writes JSON for reading; a text as it is."""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, indent=2)


@register.filter
def milliseconds(value: Any) -> Any:
    """Gives seconds, for the filter that writes them."""
    return None if value is None else value / 1000


@register.filter
def covered(value: Any) -> str:
    """Writes a coverage so that 99.6% does not read as all."""
    return "–" if value is None else "99%" if 0.99 < float(value) < 1 else percent(value)


@register.filter
def pairs(mapping: Any) -> list[tuple[Any, Any]]:
    """Gives names with values; `.items` in a template would find a key of that name first."""
    return list(mapping.items()) if isinstance(mapping, Mapping) else []


@register.filter
def words(name: Any) -> str:
    """Writes a code as words: judge_failed is "judge failed"."""
    return str(name).replace("_", " ")


@register.filter
def scope(name: Any) -> str:
    """Says which part of a version a run asked."""
    return {"limited": "the first ones", "failed": "only what failed", "ids": "chosen tasks"}.get(str(name), str(name))
