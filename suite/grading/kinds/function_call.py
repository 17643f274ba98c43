"""A question with tools, answered by calling them: as often as is asked for, each with the same arguments, in any order."""

from __future__ import annotations

import json
from typing import Any

from suite.grading import strictjson
from suite.grading.contract import Call, Kind, Options, Output, Question, RowError, text_at
from suite.grading.outcomes import Grade, right, unparsed


class FunctionCall(Kind):
    name = "function_call"

    def check(self, row_input: Any, expected: Any) -> None:
        text_at(row_input, "question", "/input")
        functions = row_input.get("functions")
        if not isinstance(functions, list) or not functions:
            raise RowError("/input/functions", "must be a list of tools in OpenAI's shape.")
        for i, tool in enumerate(functions):
            if not isinstance(tool, dict) or not isinstance(described(tool).get("name"), str):
                raise RowError(f"/input/functions/{i}", "must be a tool in OpenAI's shape, with a name.")
        value = expected.get("value") if isinstance(expected, dict) else None
        if not isinstance(value, list):
            raise RowError("/expected/value", "must be a list of {name, args}; an empty one asks for no call.")
        for i, call in enumerate(value):
            if not isinstance(call, dict) or not isinstance(call.get("name"), str) or not isinstance(call.get("args"), dict):
                raise RowError(f"/expected/value/{i}", "must be {name, args}, args an object.")

    def ask(self, row_input: Any) -> Question:
        tools = [{"type": "function", "function": described(tool)} for tool in row_input["functions"]]
        return Question([{"role": "user", "content": row_input["question"]}], tools)

    def grade(self, output: Output, row_input: Any, expected: Any, options: Options) -> Grade:
        try:
            made = [(call.name, strictjson.parse(call.arguments or "{}")) for call in output.calls] if output.calls else written(output.text)
        except strictjson.NoJson as error:
            return unparsed(f"The arguments of a call cannot be read: {error}")
        shown = json.dumps([{"name": name, "args": args} for name, args in made], ensure_ascii=False)[:500]
        left = [(call["name"], call["args"]) for call in expected["value"]]
        for name, args in made:
            met = next((i for i, (wanted, with_args) in enumerate(left) if wanted == name and strictjson.same(args, with_args)), None)
            if met is None:
                return right(False, shown, f"The call of {name[:100]} is not asked for, or not with these arguments, or not so often.")
            del left[met]
        return right(not left, shown, f"{len(left)} calls are missing." if left else "")

    def oracle(self, row_input: Any, expected: Any) -> Output:
        return Output("", tuple(Call(call["name"], json.dumps(call["args"])) for call in expected["value"]))


def described(tool: dict[str, Any]) -> dict[str, Any]:
    inner = tool.get("function")
    return inner if isinstance(inner, dict) else tool


def written(text: str) -> list[tuple[str, Any]]:
    """Reads the calls that a model wrote as text instead of making them: all JSON objects or lists of {name, arguments}. Nothing of that kind is no call."""
    try:
        values = strictjson.read_all(text)
    except strictjson.NoJson:
        return []
    found: list[tuple[str, Any]] = []
    for value in values:
        if isinstance(value, dict) and isinstance(value.get("tool_calls"), list):
            value = value["tool_calls"]
        calls = [called(item) for item in (value if isinstance(value, list) else [value])]
        found += [call for call in calls if call is not None] if None not in calls else []
    return found


def called(item: Any) -> tuple[str, Any] | None:
    inner: dict[str, Any] = described(item) if isinstance(item, dict) else {}
    if not isinstance(inner.get("name"), str):
        return None
    args: Any = next((inner[name] for name in ("arguments", "args", "parameters") if name in inner), {})
    return inner["name"], strictjson.parse(args or "{}") if isinstance(args, str) else args


KIND = FunctionCall()
