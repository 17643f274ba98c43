"""Schemas between JSON Schema, which most APIs take, and Google's own smaller dialect of OpenAPI's.

Source: https://ai.google.dev/api/caching#Schema. What it refuses answers every call with 400, so nothing it does not name goes out.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any
from urllib.parse import unquote

Schema = dict[str, Any]

TYPES = {"string": "STRING", "number": "NUMBER", "integer": "INTEGER", "boolean": "BOOLEAN", "array": "ARRAY", "object": "OBJECT"}
# What each type may say besides what all may.
WORDS = {
    "STRING": ("minLength", "maxLength", "pattern"),
    "NUMBER": ("minimum", "maximum"),
    "INTEGER": ("minimum", "maximum"),
    "BOOLEAN": (),
    "ARRAY": ("minItems", "maxItems"),
    "OBJECT": ("minProperties", "maxProperties"),
}
FORMATS = {"STRING": ("date-time",), "NUMBER": ("float", "double"), "INTEGER": ("int32", "int64")}
# Understood, whether or not it goes out under its own name.
KNOWN = frozenset(
    {
        "type", "title", "description", "nullable", "default", "example", "enum", "const", "format", "properties", "required", "items", "anyOf", "oneOf",
        "allOf", "$ref", "$defs", "definitions", "propertyOrdering", *(word for words in WORDS.values() for word in words),
    }
)  # fmt: skip
# Left out, but told to the model in the description.
TOLD = ("exclusiveMinimum", "exclusiveMaximum", "multipleOf", "uniqueItems")
# References may double a schema at every level: no honest one has more parts, or is deeper.
MOST_PARTS, MOST_LEVELS = 5000, 60

SNAKE = {
    "any_of": "anyOf", "one_of": "oneOf", "all_of": "allOf", "min_items": "minItems", "max_items": "maxItems", "min_length": "minLength",
    "max_length": "maxLength", "min_properties": "minProperties", "max_properties": "maxProperties", "property_ordering": "propertyOrdering",
    "additional_properties": "additionalProperties", "unique_items": "uniqueItems", "ref": "$ref", "defs": "$defs",
}  # fmt: skip
COUNTS = ("minItems", "maxItems", "minLength", "maxLength", "minProperties", "maxProperties")


# ------------------------------------------------------------------ from Google's, and from JSON Schema as it is


def as_json_schema(schema: Mapping[str, Any]) -> Schema:
    """The same in JSON Schema: types in lower case, null among them instead of `nullable`. What is JSON Schema already stays as it is."""
    out: Schema = {}
    for word, value in schema.items():
        word = SNAKE.get(word, word)
        if word == "type" and isinstance(value, str):
            if value != "TYPE_UNSPECIFIED":
                out["type"] = value.lower()
        elif word == "type" and isinstance(value, list):
            out["type"] = [v.lower() if isinstance(v, str) else v for v in value]
        elif word in ("properties", "$defs", "definitions", "patternProperties") and isinstance(value, dict):
            out[word] = {name: as_json_schema(v) if isinstance(v, dict) else v for name, v in value.items()}
        elif word in ("anyOf", "oneOf", "allOf", "prefixItems") and isinstance(value, list):
            out[word] = [as_json_schema(v) if isinstance(v, dict) else v for v in value]
        elif word in ("items", "additionalProperties", "not") and isinstance(value, dict):
            out[word] = as_json_schema(value)
        elif word in COUNTS and isinstance(value, str) and value.isascii() and value.isdigit() and len(value) < 16:
            out[word] = int(value)  # 64-bit numbers are texts in Google's JSON
        elif word not in ("nullable", "propertyOrdering", "example") and not (word == "format" and value == "enum"):
            out[word] = value
    if schema.get("nullable") is True:
        if isinstance(out.get("type"), str):
            out["type"] = [out["type"], "null"]
        if isinstance(out.get("enum"), list) and None not in out["enum"]:
            out["enum"] = [*out["enum"], None]
        if isinstance(out.get("anyOf"), list):
            out["anyOf"] = [*out["anyOf"], {"type": "null"}]
    return out


# ------------------------------------------------------------------ to Google's


def as_google_schema(schema: Mapping[str, Any], gone: Callable[[str], None]) -> Schema:
    """A schema that Google's API takes. `gone` is told each keyword that had to be left out."""
    return Cleaner(schema, gone).clean(schema, ())


def as_parameters(schema: Mapping[str, Any], gone: Callable[[str], None]) -> Schema | None:
    """What a function takes: always an object, None where it takes nothing."""
    cleaner = Cleaner(schema, gone)
    out = cleaner.clean({"type": "object", **schema} if not any(w in schema for w in ("type", "anyOf", "oneOf", "allOf", "$ref")) else schema, ())
    if isinstance(variants := out.get("anyOf"), list):
        # One object with all that any of them takes; required is what all require.
        gone("anyOf")
        objects = [v for v in variants if isinstance(v.get("properties"), dict)]
        properties = {name: value for v in objects for name, value in v["properties"].items()}
        required = [name for name in properties if all(name in v.get("required", ()) for v in objects)]
        out = {k: v for k, v in out.items() if k == "description"} | {"type": "OBJECT", "properties": properties, "required": required}
    out = {k: v for k, v in out.items() if k not in ("nullable", "title", "default", "example") and v != []}
    return {**out, "type": "OBJECT"} if out.get("properties") else None


class Cleaner:
    """Goes through one schema. Shape: `refs` are the references that the present place lies inside of, so that none is followed into itself."""

    def __init__(self, root: Mapping[str, Any], gone: Callable[[str], None]) -> None:
        self.root, self.gone = root, gone
        self.left = MOST_PARTS

    def clean(self, schema: Any, refs: tuple[str, ...], level: int = 0) -> Schema:
        self.left -= 1
        if self.left < 0 or level > MOST_LEVELS:
            self.gone("$ref")
            return {"type": "OBJECT"}
        if not isinstance(schema, Mapping):
            return {"type": "STRING"}  # true: anything at all
        schema, refs = self.flat(schema, refs)
        for word in schema:
            if word not in KNOWN:
                self.gone(word)
        kinds, nullable = kinds_of(schema)
        about = told(schema, kinds)
        variants = next((schema[w] for w in ("anyOf", "oneOf") if isinstance(schema.get(w), list) and schema[w]), None)
        if variants is None and len(kinds) > 1:
            variants = [{"type": kind} for kind in kinds]
        if variants is not None:
            options = [v for v in variants if not is_null(v)]
            nullable = nullable or len(options) < len(variants)
            own = {k: v for k, v in schema.items() if k not in ("anyOf", "oneOf", "title", "description", "default", "example", "nullable")}
            if isinstance(own.get("type"), list) or kinds_of(own)[0][1:]:
                own.pop("type")
            if options and "properties" in own and all(isinstance(v, Mapping) and not v.keys() & {"type", "properties", "$ref", "allOf"} for v in options):
                self.gone("anyOf")  # mere conditions on the one object
            elif len(options) == 1:
                inner = self.clean(joined(own, options[0]), refs, level + 1)
                return {**inner, **about, **({"nullable": True} if nullable else {})}
            elif options:
                # Google wants nothing beside anyOf that says what a value is.
                out = {"anyOf": [self.clean(joined(own, v), refs, level + 1) for v in options], **about}
                return {**out, "nullable": True} if nullable else out
        out = self.plain(schema, kinds[0] if kinds else "", refs, level)
        for word, value in about.items():
            out[word] = f"{value} {out[word]}" if word in out else value
        if nullable:
            out["nullable"] = True
        return out

    def flat(self, schema: Mapping[str, Any], refs: tuple[str, ...]) -> tuple[Mapping[str, Any], tuple[str, ...]]:
        """The schema with its own reference and `allOf` put in place."""
        while isinstance(ref := schema.get("$ref"), str):
            rest = {k: v for k, v in schema.items() if k != "$ref"}
            target = None if ref in refs else self.find(ref)
            if target is None:
                self.gone("$ref")
                return {"type": "object", **rest}, refs
            schema, refs = {**target, **rest}, (*refs, ref)
        if isinstance(every := schema.get("allOf"), list):
            schema = {k: v for k, v in schema.items() if k != "allOf"}
            for one in every:
                if isinstance(one, Mapping):
                    self.left -= 1
                    if self.left < 0 or len(refs) > MOST_LEVELS:
                        self.gone("allOf")
                        break
                    part, refs = self.flat(one, refs)
                    schema = joined(part, schema)
        return schema, refs

    def find(self, ref: str) -> Mapping[str, Any] | None:
        """What a reference within the schema points to."""
        if not ref.startswith("#"):
            return None
        value: Any = self.root
        for step in [s for s in unquote(ref[1:]).split("/") if s]:
            step = step.replace("~1", "/").replace("~0", "~")
            if isinstance(value, Mapping):
                value = value.get(step)
            elif isinstance(value, list) and step.isascii() and step.isdigit() and int(step[:6]) < len(value):
                value = value[int(step[:6])]
            else:
                return None
        return value if isinstance(value, Mapping) else None

    def plain(self, schema: Mapping[str, Any], kind: str, refs: tuple[str, ...], level: int) -> Schema:
        """A schema of one type."""
        out: Schema = {"type": kind}
        values = schema["enum"] if isinstance(schema.get("enum"), list) else [schema["const"]] if "const" in schema else []
        values = [v for v in values if v is not None]
        texts = list(dict.fromkeys(v for v in values if isinstance(v, str) and v))
        if texts and len(texts) == len(values) and kind in ("", "STRING"):
            return {"type": "STRING", "enum": texts}
        if values:
            self.gone("enum" if "enum" in schema else "const")  # only texts may be listed here, and none may be empty
            if texts and all(isinstance(v, str) for v in values):
                return {"type": "STRING", "enum": texts}
            out["type"] = kind = kind or kind_of_value(values[0])
            out["description"] = f"(one of: {', '.join(str(v)[:60] for v in values[:50])})"
        if not kind:
            out["type"] = kind = "OBJECT" if "properties" in schema else "ARRAY" if "items" in schema else "STRING"
        if (form := schema.get("format")) in FORMATS.get(kind, ()):
            out["format"] = form
        elif isinstance(form, str):
            self.gone("format")
        for word in WORDS[kind]:
            value = schema.get(word)
            if isinstance(value, str if word == "pattern" else int | float) and not isinstance(value, bool):
                out[word] = value
        for word in ("default", "example"):
            if schema.get(word) is not None:
                out[word] = schema[word]
        if kind == "ARRAY":
            out["items"] = self.clean(schema.get("items", True), refs, level + 1)  # it must be said
        if kind == "OBJECT" and isinstance(properties := schema.get("properties"), Mapping) and properties:
            out["properties"] = {name: self.clean(value, refs, level + 1) for name, value in properties.items()}
            for word in ("required", "propertyOrdering"):
                if isinstance(names := schema.get(word), list) and (kept := [n for n in names if isinstance(n, str) and n in properties]):
                    out[word] = kept
        return out


def kinds_of(schema: Mapping[str, Any]) -> tuple[list[str], bool]:
    """The types that a schema names, and whether null is among them."""
    said = schema.get("type")
    named = [k.lower() for k in (said if isinstance(said, list) else [said]) if isinstance(k, str)]
    values = schema.get("enum")
    nullable = schema.get("nullable") is True or "null" in named or (isinstance(values, list) and None in values)
    return [TYPES[k] for k in dict.fromkeys(named) if k in TYPES], nullable


def is_null(schema: Any) -> bool:
    return isinstance(schema, Mapping) and (
        schema.get("type") in ("null", "NULL") or ("const" in schema and schema["const"] is None) or schema.get("enum") == [None]
    )


def kind_of_value(value: Any) -> str:
    for kinds, name in ((bool, "BOOLEAN"), (int, "INTEGER"), (float, "NUMBER"), (list, "ARRAY"), (dict, "OBJECT")):
        if isinstance(value, kinds):
            return name
    return "STRING"


def told(schema: Mapping[str, Any], kinds: Iterable[str]) -> Schema:
    """Title and description, with the limits in words that have no keyword here."""
    limits = [f"{word}: {schema[word]}" for word in TOLD if isinstance(schema.get(word), int | float) and schema[word] is not False]
    form = schema.get("format")
    if isinstance(form, str) and form and not any(form in FORMATS.get(kind, ()) for kind in kinds):
        limits.append(f"format: {form[:60]}")
    said = schema.get("description")
    words = [said] if isinstance(said, str) and said else []
    if limits:
        words.append(f"({', '.join(limits)})")
    out: Schema = {"title": schema["title"]} if isinstance(schema.get("title"), str) else {}
    return {**out, "description": " ".join(words)} if words else out


def joined(one: Mapping[str, Any], other: Any) -> Any:
    """Both at once: properties and requirements together, all else as the second says it."""
    if not isinstance(other, Mapping):
        return one or other
    out = {**one, **other}
    if isinstance(one.get("properties"), Mapping) and isinstance(other.get("properties"), Mapping):
        out["properties"] = {**one["properties"], **other["properties"]}
    if isinstance(one.get("required"), list) and isinstance(other.get("required"), list):
        out["required"] = [*one["required"], *[n for n in other["required"] if n not in one["required"]]]
    return out
