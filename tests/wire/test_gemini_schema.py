"""Schemas for Google: whatever comes, what goes out is of its smaller dialect, and says as much of the same as that can."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wire.dialects._gemini_schema import as_google_schema, as_json_schema, as_parameters

TAKEN = {
    "type", "format", "title", "description", "nullable", "enum", "maxItems", "minItems", "properties", "required", "minProperties", "maxProperties",
    "minLength", "maxLength", "pattern", "example", "anyOf", "propertyOrdering", "default", "items", "minimum", "maximum",
}  # fmt: skip
TYPES = {"STRING", "NUMBER", "INTEGER", "BOOLEAN", "ARRAY", "OBJECT"}


def legal(schema: Any) -> None:
    """Holds a schema against what Google's API takes."""
    assert isinstance(schema, dict)
    assert schema.keys() <= TAKEN
    if "anyOf" in schema:
        assert schema["anyOf"]
        assert schema.keys() <= {"anyOf", "title", "description", "nullable"}
        for one in schema["anyOf"]:
            legal(one)
        return
    assert schema["type"] in TYPES
    if "enum" in schema:
        assert schema["type"] == "STRING"
        assert all(isinstance(v, str) and v for v in schema["enum"])
        assert schema["enum"]
    assert ("items" in schema) == (schema["type"] == "ARRAY")
    if "items" in schema:
        legal(schema["items"])
    for one in schema.get("properties", {}).values():
        legal(one)
    for word in ("required", "propertyOrdering"):
        assert set(schema.get(word, ())) <= schema.get("properties", {}).keys()


def google(schema: Any) -> tuple[Any, list[str]]:
    gone: list[str] = []
    out = as_google_schema(schema, gone.append)
    legal(out)
    return out, gone


@pytest.mark.parametrize(
    ("schema", "out", "gone"),
    [
        ({"type": "string"}, {"type": "STRING"}, []),
        ({"type": ["string", "null"], "minLength": 1}, {"type": "STRING", "minLength": 1, "nullable": True}, []),
        ({"type": ["string", "integer"]}, {"anyOf": [{"type": "STRING"}, {"type": "INTEGER"}]}, []),
        ({"anyOf": [{"type": "integer"}, {"type": "null"}], "description": "d"}, {"type": "INTEGER", "description": "d", "nullable": True}, []),
        ({"const": "a"}, {"type": "STRING", "enum": ["a"]}, []),
        ({"enum": ["a", "b", None]}, {"type": "STRING", "enum": ["a", "b"], "nullable": True}, []),
        ({"enum": ["", "a"]}, {"type": "STRING", "enum": ["a"]}, ["enum"]),
        ({"enum": [1, 2]}, {"type": "INTEGER", "description": "(one of: 1, 2)"}, ["enum"]),
        ({"const": True}, {"type": "BOOLEAN", "description": "(one of: True)"}, ["const"]),
        ({"type": "array"}, {"type": "ARRAY", "items": {"type": "STRING"}}, []),
        ({"items": {"type": "number"}}, {"type": "ARRAY", "items": {"type": "NUMBER"}}, []),
        ({"type": "object", "additionalProperties": {"type": "string"}}, {"type": "OBJECT"}, ["additionalProperties"]),
        ({"$schema": "x", "$comment": "y", "$id": "z", "type": "boolean"}, {"type": "BOOLEAN"}, ["$schema", "$comment", "$id"]),
        ({"type": "string", "format": "date-time"}, {"type": "STRING", "format": "date-time"}, []),
        ({"type": "string", "format": "uri", "description": "d"}, {"type": "STRING", "description": "d (format: uri)"}, ["format"]),
        ({"type": "integer", "exclusiveMinimum": 0}, {"type": "INTEGER", "description": "(exclusiveMinimum: 0)"}, ["exclusiveMinimum"]),
        ({"oneOf": [{"type": "string"}, {"type": "integer"}]}, {"anyOf": [{"type": "STRING"}, {"type": "INTEGER"}]}, []),
        (
            {"allOf": [{"properties": {"a": {"type": "string"}}, "required": ["a"]}, {"properties": {"b": {"type": "string"}}, "required": ["b"]}]},
            {"type": "OBJECT", "properties": {"b": {"type": "STRING"}, "a": {"type": "STRING"}}, "required": ["b", "a"]},
            [],
        ),
        (
            {"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a", "gone"], "anyOf": [{"required": ["a"]}]},
            {"type": "OBJECT", "properties": {"a": {"type": "STRING"}}, "required": ["a"]},
            ["anyOf"],
        ),
        ({}, {"type": "STRING"}, []),
    ],
)
def test_a_schema_is_said_in_googles_words(schema: Any, out: Any, gone: list[str]) -> None:
    assert google(schema) == (out, gone)


def test_references_are_put_in_place() -> None:
    schema = {
        "type": "object",
        "properties": {"a": {"$ref": "#/$defs/A", "description": "one"}, "b": {"$ref": "#/definitions/B~1~0x"}, "c": {"$ref": "https://elsewhere"}},
        "$defs": {"A": {"type": "string", "description": "any"}},
        "definitions": {"B/~x": {"type": "integer"}},
    }
    out, gone = google(schema)
    assert out["properties"] == {"a": {"type": "STRING", "description": "one"}, "b": {"type": "INTEGER"}, "c": {"type": "OBJECT"}}
    assert gone == ["$ref"]


@pytest.mark.parametrize(
    "schema",
    [
        {"$ref": "#"},
        {"$ref": "#/$defs/A", "$defs": {"A": {"$ref": "#/$defs/B"}, "B": {"$ref": "#/$defs/A"}}},
        {"allOf": [{"$ref": "#"}]},
        {"properties": {"next": {"$ref": "#"}}},
        {"anyOf": [{"$ref": "#"}, {"type": "array", "items": {"$ref": "#"}}]},
    ],
)
def test_a_schema_that_holds_itself_is_followed_once(schema: Any) -> None:
    assert "$ref" in google(schema)[1]


def test_references_that_double_at_every_level_come_to_an_end() -> None:
    doubling = {f"d{i}": {"properties": {side: {"$ref": f"#/$defs/d{i + 1}"} for side in "lr"}} for i in range(60)}
    out, gone = google({"$ref": "#/$defs/d0", "$defs": doubling})
    assert "$ref" in gone
    assert len(str(out)) < 1_000_000


def test_what_a_function_takes_is_an_object_or_nothing() -> None:
    gone: list[str] = []
    assert as_parameters({}, gone.append) is None
    assert as_parameters({"type": "object", "properties": {}}, gone.append) is None
    assert as_parameters({"properties": {"a": {}}, "title": "t"}, gone.append) == {"type": "OBJECT", "properties": {"a": {"type": "STRING"}}}
    variants = {"anyOf": [{"properties": {"a": {}, "b": {}}, "required": ["a", "b"]}, {"properties": {"b": {"type": "integer"}}, "required": ["b"]}]}
    assert as_parameters(variants, gone.append) == {
        "type": "OBJECT",
        "properties": {"a": {"type": "STRING"}, "b": {"type": "INTEGER"}},
        "required": ["b"],
    }
    assert gone == ["anyOf"]


@pytest.mark.parametrize(
    ("schema", "out"),
    [
        ({"type": "STRING", "nullable": True, "format": "enum", "enum": ["a"]}, {"type": ["string", "null"], "enum": ["a", None]}),
        ({"type": "ARRAY", "items": {"type": "INTEGER"}, "minItems": "1"}, {"type": "array", "items": {"type": "integer"}, "minItems": 1}),
        ({"any_of": [{"type": "STRING"}], "nullable": True}, {"anyOf": [{"type": "string"}, {"type": "null"}]}),
        (
            {"type": "OBJECT", "properties": {"type": {"type": "STRING"}}, "propertyOrdering": ["type"]},
            {"type": "object", "properties": {"type": {"type": "string"}}},
        ),
        ({"type": "TYPE_UNSPECIFIED", "description": "d"}, {"description": "d"}),
    ],
)
def test_googles_words_become_json_schema(schema: Any, out: Any) -> None:
    assert as_json_schema(schema) == out


def test_json_schema_stays_as_it_is() -> None:
    schema = {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "type": "object",
        "properties": {
            "a": {"type": ["string", "null"], "pattern": "^x"},
            "b": {"$ref": "#/$defs/B"},
            "c": {"oneOf": [{"const": 1}, {"type": "array", "prefixItems": [{"type": "string"}]}]},
        },
        "required": ["a"],
        "additionalProperties": False,
        "$defs": {"B": {"enum": [1, None, "x"]}},
    }
    assert as_json_schema(schema) == schema


WORDS = st.sampled_from(
    ["type", "properties", "items", "anyOf", "oneOf", "allOf", "$ref", "enum", "const", "required", "format", "description", "default", "nullable", "minimum"]
)
LEAVES = st.none() | st.booleans() | st.integers(-3, 3) | st.sampled_from(["string", "object", "array", "null", "#", "#/properties/a", "#/anyOf/0", "a", ""])
SCHEMAS = st.recursive(LEAVES, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(WORDS | st.just("a"), inner, max_size=4), max_leaves=25)


@given(st.dictionaries(WORDS, SCHEMAS, max_size=5))
def test_any_json_becomes_a_schema_that_google_takes(schema: dict[str, Any]) -> None:
    google(schema)
    as_json_schema(schema)
    parameters = as_parameters(schema, lambda word: None)
    if parameters is not None:
        legal(parameters)
        assert parameters["type"] == "OBJECT"
