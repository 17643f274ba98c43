"""What a roster file may say: its sections, their fields with defaults, and how each is read. Pure but for the kinds of provider that there are."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from catalog import base_urls, facts, limits, names, providers, quirks
from catalog.shape import ShapeError, kind_of, nearest, truth, whole
from panels import prompts
from panels.roster_text import Marked, Problem, RosterError

MOST_SEATS = 100
LONGEST_WAIT_S = 3600


# ------------------------------------------------------------------ how a field is read; errors are ShapeErrors


def text_of(most: int) -> Callable[[Any, str], str]:
    def read(value: Any, field: str) -> str:
        if not isinstance(value, str):
            raise ShapeError(field, f"must be text, not {kind_of(value)}. Write it in quotes.")
        if len(value) > most:
            raise ShapeError(field, f"must have at most {most:,} characters, not {len(value):,}.")
        if "\x00" in value:
            raise ShapeError(field, "holds a null character.")
        return value

    return read


def whole_of(least: int, most: int) -> Callable[[Any, str], int]:
    return lambda value, field: whole(value, field, least, most)


def kind(value: Any, field: str) -> str:
    known = [provider.kind for provider in providers.every()]
    if value not in known:
        raise ShapeError(field, f"must be one of {', '.join(known)}, not {kind_of(value)}.")
    return str(value)


def base_url(value: Any, field: str) -> str:
    return base_urls.check_base_url(text_of(base_urls.LONGEST)(value, field), field)


def merge_prompt(value: Any, field: str) -> str:
    text = text_of(100_000)(value, field)
    try:
        prompts.check(text)
    except prompts.PromptError as error:
        raise ShapeError(field, str(error)) from None
    return text


def picking(value: Any, field: str) -> str:
    if value not in ("fixed", "record"):
        raise ShapeError(field, f"must be fixed or record, not {kind_of(value)}.")
    return str(value)


def share(value: Any, field: str) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= 1:
        raise ShapeError(field, f"must be a number from 0 to 1, not {kind_of(value)}.")
    return float(value)


def aliases(value: Any, field: str) -> list[str]:
    if not isinstance(value, list):
        raise ShapeError(field, f"must be a list of aliases, not {kind_of(value)}.")
    if len(value) > MOST_SEATS:
        raise ShapeError(field, f"must hold at most {MOST_SEATS} aliases, not {len(value)}.")
    return [names.check_alias(one, f"{field}[{index}]") for index, one in enumerate(value)]


@dataclass(frozen=True, slots=True)
class Field:
    """One field. A null means the default; a required one has none."""

    read: Callable[[Any, str], Any]
    default: Any = None
    required: bool = False


ENDPOINT: dict[str, Field] = {
    "name": Field(names.check_endpoint_name, required=True),
    "kind": Field(kind, required=True),
    "base_url": Field(base_url, required=True),
    "provider": Field(text_of(100), ""),
    "key_env": Field(names.check_key_env, ""),
    "limits": Field(limits.checked, {}),
    "quirks": Field(quirks.checked, {}),
}
MODEL: dict[str, Field] = {
    "alias": Field(names.check_alias, required=True),
    "endpoint": Field(names.check_endpoint_name, required=True),
    "served_name": Field(names.check_served_name, required=True),
    "limits": Field(limits.checked, {}),
    "facts": Field(facts.checked, {}),
    "quirks": Field(quirks.checked, {}),
    "ad_hoc": Field(truth, False),
}
COLLECTION: dict[str, Field] = {
    "name": Field(names.check_collection_name, required=True),
    "description": Field(text_of(1000), ""),
    "shape": Field(text_of(40), "review"),
    "members": Field(aliases, []),
    "picking": Field(picking, "fixed"),
    "seats": Field(whole_of(1, MOST_SEATS), None),
    "explorers": Field(whole_of(0, MOST_SEATS), 1),
    "mergers": Field(aliases, []),
    "timeout_s": Field(whole_of(1, LONGEST_WAIT_S), 300),
    "first_token_timeout_s": Field(whole_of(1, LONGEST_WAIT_S), 60),
    "idle_timeout_s": Field(whole_of(1, LONGEST_WAIT_S), 120),
    "quorum": Field(whole_of(1, MOST_SEATS), None),
    "grace_s": Field(whole_of(0, LONGEST_WAIT_S), 20),
    "wait_max_s": Field(whole_of(0, LONGEST_WAIT_S), 30),
    "failover_on_refusal": Field(truth, False),
    "shadow_share": Field(share, 0.0),
    "keep_text": Field(truth, None),
    "merge_prompt": Field(merge_prompt, None),
}


@dataclass(frozen=True, slots=True)
class Section:
    """One list of the file. `noun` is what one of its objects is called, `named_by` the field that names it."""

    noun: str
    named_by: str
    fields: Mapping[str, Field]


SECTIONS = {
    "endpoints": Section("endpoint", "name", ENDPOINT),
    "models": Section("model", "alias", MODEL),
    "collections": Section("collection", "name", COLLECTION),
}


@dataclass(frozen=True, slots=True)
class Given:
    """One object as a file gives it. `values` holds only the fields that the file mentions, checked."""

    noun: str
    name: str
    values: Mapping[str, Any]
    marked: Marked

    def problem(self, field: str, message: str) -> Problem:
        return Problem(self.marked.line_of(field), f"{self.noun} {self.name}", message)


def read(root: Marked) -> dict[str, list[Given]]:
    """Reads a file's values into objects by section, those that are not there empty. Errors: RosterError that names every fault."""
    if not isinstance(root.value, dict):
        raise RosterError([Problem(root.line, "", f"The file must be an object with {', '.join(SECTIONS)}, not {kind_of(root.plain())}.")])
    problems: list[Problem] = []
    for name, one in root.value.items():
        if name not in SECTIONS:
            problems.append(Problem(one.line, "", f"{name[:60]} is not known.{nearest(name, SECTIONS)}"))
    found: dict[str, list[Given]] = {}
    for name, section in SECTIONS.items():
        found[name] = objects(name, section, root.value.get(name, Marked(None, root.line)), problems)
    if problems:
        raise RosterError(problems)
    return found


def objects(section_name: str, section: Section, marked: Marked, problems: list[Problem]) -> list[Given]:
    if marked.value is None:
        return []
    if not isinstance(marked.value, list):
        problems.append(Problem(marked.line, "", f"{section_name} must be a list, not {kind_of(marked.plain())}."))
        return []
    found: list[Given] = []
    seen: dict[str, Given] = {}
    for index, one in enumerate(marked.value):
        if (given := object_of(f"{section_name}[{index}]", section, one, problems)) is None:
            continue
        if earlier := seen.get(names.folded(given.name)):
            problems.append(given.problem(section.named_by, f"{section.named_by} is the same as that in line {earlier.marked.line}, ignoring case."))
            continue
        seen[names.folded(given.name)] = given
        found.append(given)
    return found


def object_of(place: str, section: Section, marked: Marked, problems: list[Problem]) -> Given | None:
    """Reads one object, None where anything in it is wrong."""
    if not isinstance(marked.value, dict):
        problems.append(Problem(marked.line, place, f"must be an object with {section.named_by}, not {kind_of(marked.plain())}."))
        return None
    named = marked.value[section.named_by].value if section.named_by in marked.value else None
    where = f"{section.noun} {named[:60]}" if isinstance(named, str) and named else place
    wrong: list[Problem] = []
    for name, one in marked.value.items():
        if name not in section.fields:
            wrong.append(Problem(one.line, where, f"{name[:60]} is not known.{hint(name, section.fields)}"))
    values: dict[str, Any] = {}
    for name, field in section.fields.items():
        said = marked.value[name].plain() if name in marked.value else None
        if said is None:
            if field.required:
                wrong.append(Problem(marked.line_of(name), where, f"{name} is missing."))
            elif name in marked.value:
                values[name] = field.default
            continue
        try:
            values[name] = field.read(said, name)
        except ShapeError as error:
            wrong.append(Problem(marked.line_of(error.field), where, str(error)))
    problems.extend(wrong)
    return None if wrong else Given(section.noun, values[section.named_by], values, marked)


def hint(name: str, known: Mapping[str, Field]) -> str:
    if name.lower() in ("key", "api_key", "apikey", "secret", "token"):
        return " Keys do not belong in a roster file: name a variable in key_env, or set the key in the admin."
    return nearest(name, known)
