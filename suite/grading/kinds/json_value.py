"""A task whose answer is JSON: a value, a field of it, or whatever a schema allows."""

from __future__ import annotations

import json
from typing import Any

import jsonschema

from suite.grading import strictjson
from suite.grading.contract import Kind, Options, Output, Question, RowError, text_at
from suite.grading.outcomes import Grade, Outcome, right, unparsed


class JsonValue(Kind):
    name = "json"

    def check(self, row_input: Any, expected: Any) -> None:
        text_at(row_input, "question", "/input")
        if not isinstance(expected, dict) or not expected.keys() & {"value", "schema"}:
            raise RowError("/expected", "must hold value, a JSON value, or schema, a JSON schema; with value, path may name a field like result.items.0.")
        if "path" in expected and (not isinstance(expected["path"], str) or "value" not in expected):
            raise RowError("/expected/path", "must be a text like result.items.0, beside value.")
        if "schema" in expected:
            try:
                jsonschema.Draft202012Validator.check_schema(expected["schema"])
            except jsonschema.SchemaError as error:
                raise RowError("/expected/schema", f"is no JSON schema: {error.message[:200]}") from None
            if reference := remote(expected["schema"]):
                raise RowError("/expected/schema", f"points elsewhere ({reference[:100]}), and nothing is fetched.")

    def ask(self, row_input: Any) -> Question:
        return Question([{"role": "user", "content": f"{row_input['question']}\n\nAnswer with JSON alone."}])

    def grade(self, output: Output, row_input: Any, expected: Any, options: Options) -> Grade:
        try:
            value = strictjson.read(output.text)
        except strictjson.NoJson as error:
            return unparsed(str(error))
        answer = output.text.strip()[:500]
        if "schema" in expected:
            wrong = jsonschema.exceptions.best_match(jsonschema.Draft202012Validator(expected["schema"]).iter_errors(value))
            if wrong is not None:
                return right(False, answer, f"{wrong.json_path}: {wrong.message[:300]}")
        if "value" in expected:
            for part in [p for p in expected.get("path", "").split(".") if p]:
                if isinstance(value, dict) and part in value:
                    value = value[part]
                elif isinstance(value, list) and part.isdecimal() and int(part) < len(value):
                    value = value[int(part)]
                else:
                    return Grade(Outcome.UNPARSED, 0.0, answer, "no_such_field", f"The answer has no field {expected['path']}.")
            return right(strictjson.same(value, expected["value"]), answer)
        return right(True, answer)

    def oracle(self, row_input: Any, expected: Any) -> Output:
        """Gives the value in its place; of a schema alone there is no answer that must be right."""
        if "value" not in expected:
            return Output("")
        value = expected["value"]
        for part in reversed([p for p in expected.get("path", "").split(".") if p]):
            value = [None] * int(part) + [value] if part.isdecimal() else {part: value}
        return Output(json.dumps(value))


def remote(schema: Any) -> str:
    """Gives a reference that leads out of the schema, "" where there is none."""
    waiting = [schema]
    while waiting:
        value = waiting.pop()
        if isinstance(value, dict):
            for name in ("$ref", "$dynamicRef"):
                if isinstance(value.get(name), str) and not value[name].startswith("#"):
                    return str(value[name])
            waiting += value.values()
        elif isinstance(value, list):
            waiting += value
    return ""


KIND = JsonValue()
