"""How figures, times and states look on pages. What models and people wrote is escaped as everywhere; nothing here marks it safe."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from decimal import Decimal, InvalidOperation
from typing import Any
from urllib.parse import quote, urlencode

from django import template
from django.templatetags.static import static
from django.utils import timezone
from django.utils.html import format_html
from django.utils.safestring import SafeString

register = template.Library()

NOTHING = "–"
TONES = {
    "good": {"ok", "active", "complete", "done", "answered", "passed", "useful", "enabled", "on", "connected", "finished", "admitted"},
    "warn": {
        "resting",
        "degraded",
        "partial",
        "truncated",
        "rate_limited",
        "no_credit",
        "late",
        "waiting",
        "queued",
        "cancelled",
        "skipped",
        "suspected",
        "halted",
        "unparsed",
        "limit",
        "judge_failed",
        "infrastructure",
        "overridden",
    },
    "bad": {"failed", "error", "timeout", "refused", "lost", "retired", "revoked", "expired", "useless"},
    "busy": {"running", "streaming", "working", "halting"},
}


@register.filter
def tone(status: Any) -> str:
    """Gives the colour that a status has everywhere: good, warn, bad, busy or plain."""
    said = str(status or "").lower()
    return next((name for name, words in TONES.items() if said in words), "plain")


@register.simple_tag
def badge(status: Any, text: Any = None) -> SafeString:
    return format_html('<span class="badge" data-tone="{}">{}</span>', tone(status), str(status if text is None else text).replace("_", " "))


@register.simple_tag
def icon(name: str) -> SafeString:
    """Draws a sign from the set that is served from here; what it means stands beside it in words."""
    return format_html('<svg class="icon" aria-hidden="true"><use href="{}#{}"></use></svg>', static("vendor/icons.svg"), name)


def number_of(value: Any) -> Decimal | None:
    try:
        found = Decimal(str(value))
    except (InvalidOperation, ValueError):
        return None
    return found if found.is_finite() else None


@register.filter
def usd(value: Any) -> str:
    """Writes US dollars: cents from a dollar on, else three figures that count. Unknown is a dash, never 0."""
    amount = number_of(value) if value is not None else None
    if amount is None:
        return NOTHING
    if amount == 0:
        return "$0"
    if abs(amount) >= 1:
        return f"${amount:,.2f}"
    places = min(10, max(2, 2 - amount.copy_abs().adjusted()))
    text = f"{amount:.{places}f}".rstrip("0")
    return f"${text}" if len(text.partition(".")[2]) >= 2 else f"${amount:.2f}"


@register.filter
def count(value: Any) -> str:
    """Writes a count short: 950, 12.3k, 4.1M."""
    amount = number_of(value) if value is not None else None
    if amount is None:
        return NOTHING
    for size, unit in ((10**9, "B"), (10**6, "M"), (10**4, "k")):
        if abs(amount) >= size:
            return f"{float(amount) / (1000 if unit == 'k' else size):.1f}".removesuffix(".0") + unit
    return f"{int(amount):,}" if amount == amount.to_integral() else f"{amount.normalize():f}"


@register.filter
def percent(value: Any) -> str:
    amount = number_of(value) if value is not None else None
    return NOTHING if amount is None else f"{float(amount) * 100:.0f}%"


@register.filter
def seconds(value: Any) -> str:
    """Writes a time span given in seconds."""
    amount = number_of(value) if value is not None else None
    if amount is None:
        return NOTHING
    span = float(amount)
    if span < 1:
        return f"{span * 1000:.0f} ms"
    if span < 60:
        return f"{span:.1f} s"
    if span < 3600:
        return f"{span / 60:.0f} min"
    if span < 86400:
        return f"{span / 3600:.0f} h"
    return f"{span / 86400:.0f} days"


def moment(value: Any) -> datetime | None:
    if isinstance(value, datetime):
        return value
    try:
        found = datetime.fromisoformat(str(value))
    except ValueError:
        return None
    return found if found.tzinfo else found.replace(tzinfo=UTC)


@register.filter
def ago(value: Any) -> str | SafeString:
    """Writes how long ago, or how soon, something is; the exact time stands in the title."""
    at = moment(value) if value else None
    if at is None:
        return NOTHING
    span = (timezone.now() - at).total_seconds()
    size = abs(span)
    for length, unit in ((86400, "d"), (3600, "h"), (60, "min")):
        if size >= length:
            said = f"{int(size // length)} {unit}"
            break
    else:
        said = f"{int(size)} s"
    words = (f"in {said}" if span < 0 else f"{said} ago") if size >= 5 else "now"
    return format_html('<time datetime="{}" title="{}">{}</time>', at.isoformat(), f"{at:%Y-%m-%d %H:%M:%S %Z}", words)


@register.filter
def named(name: Any) -> SafeString:
    """Writes a name in any script: isolated, broken where it must be."""
    return format_html('<bdi class="name">{}</bdi>', name)


@register.filter
def quoted(name: Any) -> str:
    """Encodes a name as one part of a path."""
    return quote(str(name), safe="")


@register.filter
def get(mapping: Any, key: Any) -> Any:
    """Looks a key up that is not known when the template is written."""
    return mapping.get(key) if isinstance(mapping, Mapping) else None


@register.simple_tag
def interval(rate: Any, good: bool = True) -> str | SafeString:
    """Draws a rate with its interval: `{mean, low, high}` of 0 to 1. The figures stand beside the bar, so that nothing hangs on seeing it."""
    if not isinstance(rate, Mapping) or rate.get("mean") is None:
        return NOTHING
    mean, low, high = (min(1.0, max(0.0, float(rate[part]))) for part in ("mean", "low", "high"))
    return format_html(
        '<span class="interval" data-tone="{}"><svg viewBox="0 0 100 12" aria-hidden="true"><rect class="whole" x="0" y="5" width="100" height="2" rx="1"/>'
        '<rect class="span" x="{}" y="3" width="{}" height="6" rx="3"/><circle cx="{}" cy="6" r="4"/></svg>'
        '<span>{}<span class="faint"> {}–{}</span></span></span>',
        "good" if good else "bad",
        f"{low * 100:.1f}",
        f"{max(high - low, 0.01) * 100:.1f}",
        f"{min(96.0, max(4.0, mean * 100)):.1f}",
        f"{mean * 100:.0f}%",
        f"{low * 100:.0f}",
        f"{high * 100:.0f}%",
    )


@register.simple_tag(takes_context=True)
def with_query(context: Mapping[str, Any], **changes: Any) -> str:
    """Gives this page's query with some values changed; None takes one out."""
    asked = {name: values for name, values in context["request"].GET.lists() if name not in changes}
    for name, value in changes.items():
        if value not in (None, ""):
            asked[name] = [str(value)]
    return f"?{urlencode(asked, doseq=True)}"


@register.inclusion_tag("pages/part/sort.html", takes_context=True)
def sort_by(context: Mapping[str, Any], field: str, title: str) -> dict[str, Any]:
    """A column's head that sorts: by `field`, then by `-field`. The page's view says in `sort` what holds now."""
    now = str(context.get("sort", ""))
    return {
        "title": title,
        "address": with_query(context, sort=f"-{field}" if now == field else field, page_token=None),
        "direction": {field: "ascending", f"-{field}": "descending"}.get(now, "none"),
    }


@register.inclusion_tag("pages/part/chart.html")
def chart(title: str, kind: str, columns: Sequence[str], rows: Sequence[Sequence[Any]], unit: str = "", stacked: bool = False) -> dict[str, Any]:
    """Draws a chart with its table. `kind` is line or bar; the first column is the axis, each other a series. A None leaves a gap."""
    return {"title": title, "kind": kind, "columns": columns, "rows": rows, "unit": unit, "stacked": stacked}
