"""Limits, quirks and facts as fields of a form. What a form does not know of the stored JSON it leaves as it was."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from django import forms
from unfold.widgets import UnfoldAdminIntegerFieldWidget, UnfoldAdminSelectWidget, UnfoldAdminTextareaWidget

from catalog import facts as facts_rules
from catalog import limits as limits_rules
from catalog import names
from catalog import quirks as quirks_rules
from catalog.shape import ShapeError

# Form field: (place in the stored limits, label, help).
LIMITS: dict[str, tuple[tuple[str, ...], str, str]] = {
    "requests_minute": (("requests", "minute"), "Requests a minute", "Upstream calls in any 60 seconds, for example 30. Empty: no limit."),
    "requests_day": (("requests", "day"), "Requests a day", "Calendar day, UTC; for example 1000."),
    "requests_month": (("requests", "month"), "Requests a month", "Calendar month, UTC; for example 20000."),
    "tokens_minute": (("tokens", "minute"), "Tokens a minute", "In and out together, in any 60 seconds; for example 60000."),
    "tokens_day": (("tokens", "day"), "Tokens a day", "Calendar day, UTC; for example 1000000."),
    "tokens_month": (("tokens", "month"), "Tokens a month", "Calendar month, UTC."),
    "parallel": (("parallel",), "Calls at once", "For example 4. Empty: no limit."),
}

AS_USUAL = ("", "As usual")
QUIRKS: dict[str, tuple[str, list[tuple[str, str]], str]] = {
    "token_param": (
        "Output limit is called",
        [AS_USUAL, ("max_tokens", "max_tokens"), ("max_completion_tokens", "max_completion_tokens")],
        "The request field that limits an answer's length.",
    ),
    "system_role": (
        "System turns are sent as",
        [AS_USUAL, ("system", "system"), ("developer", "developer"), ("user", "user")],
        "Some models take no system role.",
    ),
    "stream_options": (
        "Usage in streams",
        [AS_USUAL, ("true", "Ask for it"), ("false", "Do not ask: the server refuses stream_options")],
        "Without it token counts of streamed answers are estimated.",
    ),
}

# Facts that answer yes or no, and those that count tokens.
FLAGS = {"tools": "Tools", "vision": "Vision", "structured_output": "Structured output", "reasoning": "Reasoning"}
SIZES = {"context_window": "Context window", "output_limit": "Output limit"}


class JsonText(forms.JSONField):
    """A JSON object typed as text, for what no field knows."""

    widget = UnfoldAdminTextareaWidget

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(required=False, widget=UnfoldAdminTextareaWidget(attrs={"rows": 3, "spellcheck": "false"}), **kwargs)

    def clean(self, value: Any) -> Any:
        found = super().clean(value)
        if found in (None, ""):
            return {}
        if not isinstance(found, dict):
            raise forms.ValidationError('Write a JSON object, like {"name": "value"}, or leave it empty.')
        return found


def _limit_fields() -> dict[str, forms.Field]:
    return {
        f"limit_{name}": forms.IntegerField(label=label, help_text=help_text, required=False, min_value=1, widget=UnfoldAdminIntegerFieldWidget)
        for name, (_, label, help_text) in LIMITS.items()
    }


def limit_initial(limits: Mapping[str, Any]) -> dict[str, Any]:
    found = {}
    for name, (path, _, _) in LIMITS.items():
        value: Any = limits
        for part in path:
            value = value.get(part) if isinstance(value, Mapping) else None
        found[f"limit_{name}"] = value
    return found


def limits_from(cleaned: Mapping[str, Any], before: Mapping[str, Any]) -> dict[str, Any]:
    """Writes the fields over what was stored; an empty field takes its limit away."""
    limits = {k: dict(v) if isinstance(v, Mapping) else v for k, v in before.items()}
    for name, (path, _, _) in LIMITS.items():
        value = cleaned.get(f"limit_{name}")
        holder = limits
        if len(path) == 2:
            inner = limits.get(path[0])
            holder = limits[path[0]] = inner if isinstance(inner, dict) else {}
        if value is None:
            holder.pop(path[-1], None)
        else:
            holder[path[-1]] = value
    return {k: v for k, v in limits.items() if v not in ({}, None)}


def _quirk_fields() -> dict[str, forms.Field]:
    fields: dict[str, forms.Field] = {
        f"quirk_{name}": forms.ChoiceField(label=label, choices=choices, help_text=help_text, required=False, widget=UnfoldAdminSelectWidget)
        for name, (label, choices, help_text) in QUIRKS.items()
    }
    fields["quirk_other"] = JsonText(label="Other quirks", help_text="JSON, for a quirk that has no field of its own. Usually empty.")
    return fields


def quirk_initial(quirks: Mapping[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name in QUIRKS:
        value = quirks.get(name)
        found[f"quirk_{name}"] = "" if value is None else str(value).lower() if isinstance(value, bool) else value
    found["quirk_other"] = {k: v for k, v in quirks.items() if k not in QUIRKS} or None
    return found


def quirks_from(cleaned: Mapping[str, Any]) -> dict[str, Any]:
    quirks = {k: v for k, v in (cleaned.get("quirk_other") or {}).items() if k not in QUIRKS}
    for name in QUIRKS:
        if value := cleaned.get(f"quirk_{name}"):
            quirks[name] = {"true": True, "false": False}.get(value, value)
    return quirks


def _fact_fields() -> dict[str, forms.Field]:
    fields: dict[str, forms.Field] = {
        f"fact_{name}": forms.IntegerField(label=label, required=False, min_value=1, widget=UnfoldAdminIntegerFieldWidget) for name, label in SIZES.items()
    }
    choices = [("", "As the list says"), ("true", "Yes"), ("false", "No")]
    for name, label in FLAGS.items():
        fields[f"fact_{name}"] = forms.ChoiceField(label=label, choices=choices, required=False, widget=UnfoldAdminSelectWidget)
    return fields


def fact_initial(facts: Mapping[str, Any]) -> dict[str, Any]:
    flags = {f"fact_{name}": {True: "true", False: "false"}.get(facts.get(name), "") for name in FLAGS}  # type: ignore[arg-type]
    return {**{f"fact_{name}": facts.get(name) for name in SIZES}, **flags}


def facts_from(cleaned: Mapping[str, Any], before: Mapping[str, Any]) -> dict[str, Any]:
    """Writes the fields over what was stored; an empty field leaves the fact to the endpoint's list."""
    facts = {k: v for k, v in before.items() if k not in SIZES and k not in FLAGS}
    for name in SIZES:
        if (size := cleaned.get(f"fact_{name}")) is not None:
            facts[name] = size
    for name in FLAGS:
        if flag := cleaned.get(f"fact_{name}"):
            facts[name] = flag == "true"
    return facts


# Forms to inherit from: a ModelForm's fieldsets may only name fields that its class declares.
LimitsForm: Any = type("LimitsForm", (forms.Form,), _limit_fields())
QuirksForm: Any = type("QuirksForm", (forms.Form,), _quirk_fields())
FactsForm: Any = type("FactsForm", (forms.Form,), _fact_fields())

LIMIT_ROWS = (
    ("limit_requests_minute", "limit_tokens_minute"),
    ("limit_requests_day", "limit_tokens_day"),
    ("limit_requests_month", "limit_tokens_month"),
    "limit_parallel",
)
QUIRK_ROWS = (*(f"quirk_{name}" for name in QUIRKS), "quirk_other")
FACT_ROWS = tuple((f"fact_{name}", f"listed_{name}") for name in (*SIZES, *FLAGS))


def checked(form: forms.BaseForm, field: str, check: Callable[..., Any], *values: Any) -> Any:
    """Lets a rule of the catalog look at what was typed; what it refuses stands at the field. None where it refused."""
    try:
        return check(*values)
    except ShapeError as error:
        path = error.field.split(".")
        at = next((f for f in (f"limit_{'_'.join(path[1:])}", f"quirk_{path[-1]}", f"fact_{path[-1]}", field) if f in form.fields), None)
        form.add_error(at, f"It {error.message}" if at and at != "quirk_other" else f"{error.field} {error.message}")
        return None


def check_name(form: forms.BaseForm, field: str, check: Callable[..., Any], others: Iterable[str]) -> None:
    """Holds a typed name to the catalog's rules: form, and unique ignoring case in every script."""
    if name := form.cleaned_data.get(field):
        checked(form, field, check, name, field)
        checked(form, field, names.check_unique, name, others, field)


def take_apart(row: Any) -> dict[str, Any]:
    """What a form shows of a row's JSON columns."""
    return {**limit_initial(row.limits or {}), **quirk_initial(row.quirks or {}), **fact_initial(getattr(row, "facts", None) or {})}


def put_together(form: Any, row: Any) -> None:
    """Writes a form's fields into the row's JSON columns, each held to the catalog's rules."""
    limits = checked(form, "limit_parallel", limits_rules.checked, limits_from(form.cleaned_data, row.limits or {}))
    quirks = checked(form, "quirk_other", quirks_rules.checked, quirks_from(form.cleaned_data))
    if limits is not None and quirks is not None:
        row.limits, row.quirks = limits, quirks
    if hasattr(row, "facts"):
        facts = checked(form, "fact_context_window", facts_rules.checked_without_prices, facts_from(form.cleaned_data, row.facts or {}))
        row.facts = row.facts if facts is None else facts


# ------------------------------------------------------------------ how figures are written


def said(limits: Mapping[str, Any]) -> str:
    """Limits in words: 30 requests/minute, 4 at once."""
    words = [f"{amount:,} {what}/{window}" for what in ("requests", "tokens") for window, amount in (limits.get(what) or {}).items()]
    if limits.get("parallel"):
        words.append(f"{limits['parallel']} at once")
    if most := (limits.get("run") or {}).get("model_cost"):
        words.append(f"{most:g} dollars a run of the suite")
    return ", ".join(words)


def pairs(values: Mapping[str, Any]) -> str:
    """Quirks or facts in words: name and value, a line each."""
    words = {True: "yes", False: "no"}
    return "\n".join(f"{name}: {words[value] if isinstance(value, bool) else value}" for name, value in values.items())


def fact(value: Any) -> str:
    """One fact in words: yes or no, a size with its thousands apart."""
    return {True: "Yes", False: "No"}[value] if isinstance(value, bool) else f"{value:,}" if isinstance(value, int) else str(value)


def tokens(size: Any) -> str:
    """A size in tokens, short: 131,072 is 131k, 1,048,576 is 1.05M. Empty where it is not known."""
    if isinstance(size, bool) or not isinstance(size, int):
        return ""
    if size >= 1_000_000:
        return f"{size / 1_000_000:.3g}M"
    return f"{size / 1000:.0f}k" if size >= 10_000 else f"{size:,}"


def dollars(amount: Any) -> str:
    """A price, which lists and prices hold as plain decimal text. Empty where it is not known."""
    return "" if amount is None else f"${amount}"
