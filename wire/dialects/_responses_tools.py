"""Tools of the Responses format as every model can be shown them: as functions by one name each, and the calls of these as the items a client waits for.

Functions keep their name, those in a namespace get a joined one. A custom tool is a function with one text `input`; what the client itself runs
(shells, patches, tool search) is a function with the fields of its call. What a provider runs on its own side nobody else can be shown.
"""

from __future__ import annotations

import dataclasses
import hashlib
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import orjson

from wire.conversation import Tool, ToolChoice
from wire.fields import array, missing, obj, optional_bool, optional_text, text

LONGEST_NAME = 64  # chat formats take [a-zA-Z0-9_-], up to 64
UNFIT = re.compile(r"[^a-zA-Z0-9_-]")
RAW_INPUT = {
    "type": "object",
    "properties": {"input": {"type": "string", "description": "The tool's whole input, as it is."}},
    "required": ["input"],
    "additionalProperties": False,
}
PARTIAL_INPUT = re.compile(r'\s*\{\s*"input"\s*:\s*"((?:[^"\\]|\\.)*)', re.S)


@dataclass(frozen=True, slots=True)
class ClientSide:
    """A tool that the client runs and that has items of its own. Shape: its call holds the arguments as an object in `field`, with `fixed` besides."""

    description: str
    parameters: Mapping[str, Any]
    field: str
    id_prefix: str
    inside: Mapping[str, Any] = dataclasses.field(default_factory=dict)  # in the field
    beside: Mapping[str, Any] = dataclasses.field(default_factory=dict)  # beside it


def an_object(required: tuple[str, ...], **properties: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "required": list(required)}


TEXT, WHOLE = {"type": "string"}, {"type": "integer"}
TEXTS = {"type": "array", "items": TEXT}
# Source: https://platform.openai.com/docs/api-reference/responses (the calls' items). By the tool's type; the call's is that and "_call".
CLIENT_SIDE: Mapping[str, ClientSide] = {
    "local_shell": ClientSide(
        "Runs one command on the user's machine. The command is a list: the program, then its arguments.",
        an_object(("command",), command=TEXTS, working_directory=TEXT, timeout_ms=WHOLE),
        "action",
        "lsh",
        {"type": "exec", "env": {}},
    ),
    "shell": ClientSide(
        "Runs shell commands in the user's environment and returns what each wrote.",
        an_object(("commands",), commands=TEXTS, timeout_ms=WHOLE, max_output_length=WHOLE),
        "action",
        "sh",
    ),
    "apply_patch": ClientSide(
        "Creates, changes or deletes one file. `diff` is a unified diff's hunks; a deletion needs none.",
        an_object(("type", "path"), type={"type": "string", "enum": ["create_file", "update_file", "delete_file"]}, path=TEXT, diff=TEXT),
        "operation",
        "apc",
    ),
    "tool_search": ClientSide(
        "Finds further tools by what they should do; those found can be called from then on.",
        an_object(("query",), query=TEXT),
        "arguments",
        "tsc",
        beside={"execution": "client"},
    ),
}
CALLS = {f"{kind}_call": kind for kind in CLIENT_SIDE}


@dataclass(frozen=True, slots=True)
class Shown:
    """What stands behind a name that a model was shown."""

    type: str
    name: str
    namespace: str = ""


def joined(namespace: str, name: str) -> str:
    """One name of a tool in a namespace: the same every time, and short enough for every format."""
    if not namespace:
        return name
    whole = f"{namespace}{name}" if namespace.endswith("__") else f"{namespace}__{name}"
    fit = UNFIT.sub("_", whole)
    if fit == whole and len(fit) <= LONGEST_NAME:
        return fit
    return f"{fit[: LONGEST_NAME - 9]}_{hashlib.sha256(whole.encode('utf-8', 'surrogatepass')).hexdigest()[:8]}"


def read_tools(value: Any, path: str = "tools") -> tuple[Tool, ...]:
    """The tools; those that a provider runs itself by their own kind. Errors: CallerError that names the field."""
    if value is None:
        return ()
    tools: list[Tool] = []
    for i, item in enumerate(array(value, path)):
        at = f"{path}[{i}]"
        tool = obj(item, at)
        kind = optional_text(tool, "type", f"{at}.") or "function"
        if kind == "namespace":
            name = text(tool.get("name"), f"{at}.name")
            for j, inner in enumerate(array(tool.get("tools"), f"{at}.tools")):
                place = f"{at}.tools[{j}]"
                tools.append(read_named(obj(inner, place), place, name))
        elif kind in ("function", "custom"):
            tools.append(read_named(tool, at))
        elif kind in CLIENT_SIDE and is_clients(kind, tool):
            tools.append(client_side(kind, tool, at))
        else:
            tools.append(Tool(kind[:60], kind=kind[:60], extra=tool))
    return tuple(tools)


def is_clients(kind: str, tool: Mapping[str, Any]) -> bool:
    """Whether the client runs it: the same types may also mean that the provider does."""
    if kind == "tool_search":
        return tool.get("execution") == "client"
    environment = tool.get("environment")
    return not isinstance(environment, dict) or environment.get("type") in (None, "local")


def read_named(tool: dict[str, Any], path: str, namespace: str = "") -> Tool:
    """A function or custom tool. One in the chat format's nesting is understood too."""
    kind = optional_text(tool, "type", f"{path}.") or "function"
    given = inner if "name" not in tool and isinstance(inner := tool.get(kind), dict) else tool
    if "name" not in given:
        raise missing(f"{path}.name")
    name, description = text(given["name"], f"{path}.name"), optional_text(given, "description", f"{path}.")
    extra = {**given, "type": kind, "namespace": namespace} if namespace else {**given, "type": kind}
    if kind == "custom":
        if said := grammar(given.get("format")):
            description = f"{description}\n\n{said}" if description else said
        return Tool(joined(namespace, name), description, RAW_INPUT, extra=extra)
    parameters = given.get("parameters")
    return Tool(
        joined(namespace, name),
        description,
        None if parameters is None else obj(parameters, f"{path}.parameters"),
        optional_bool(given, "strict", f"{path}."),
        extra=extra,
    )


def grammar(form: Any) -> str:
    """A custom tool's grammar, for a model that cannot be held to it but can read it."""
    if not isinstance(form, dict) or not isinstance(form.get("definition"), str):
        return ""
    return f"The input must follow this grammar ({form.get('syntax') or 'lark'}):\n{form['definition']}"


def client_side(kind: str, tool: dict[str, Any], path: str) -> Tool:
    known = CLIENT_SIDE[kind]
    parameters = tool.get("parameters")
    described = optional_text(tool, "description", f"{path}.") or known.description
    return Tool(kind, described, known.parameters if parameters is None else obj(parameters, f"{path}.parameters"), extra=tool)


def shown(tools: Iterable[Tool]) -> dict[str, Shown]:
    """What stands behind the names of a request of this format."""
    found = {}
    for tool in tools:
        extra = tool.extra or {}
        kind = str(extra.get("type") or "function")
        found[tool.name] = Shown(kind, str(extra.get("name") or tool.name), str(extra.get("namespace") or ""))
    return found


def read_choice(value: Any, tools: Iterable[Tool]) -> ToolChoice | None:
    if value is None:
        return None
    if isinstance(value, str):
        return ToolChoice(value if value in ("none", "required") else "auto")
    known = shown(tools)
    given = obj(value, "tool_choice")
    kind = text(given.get("type"), "tool_choice.type")
    if kind == "allowed_tools":
        inner = given.get("allowed_tools")
        allowed = inner if isinstance(inner, dict) else given
        names: list[str] = []
        for i, item in enumerate(array(allowed.get("tools"), "tool_choice.tools")):
            names += chosen(obj(item, f"tool_choice.tools[{i}]"), f"tool_choice.tools[{i}]", known)
        return ToolChoice("required" if allowed.get("mode") == "required" else "auto", allowed=tuple(names))
    return ToolChoice("tool", name=next(iter(chosen(given, "tool_choice", known)), kind[:60]))


def chosen(given: Mapping[str, Any], path: str, known: Mapping[str, Shown]) -> list[str]:
    """The shown names that one entry means."""
    kind = text(given.get("type"), f"{path}.type")
    if kind in ("function", "custom"):
        inner = given.get(kind)
        given = inner if "name" not in given and isinstance(inner, dict) else given
        return [joined(optional_text(given, "namespace", f"{path}."), text(given.get("name"), f"{path}.name"))]
    if kind == "namespace":
        name = text(given.get("name"), f"{path}.name")
        return [n for n, s in known.items() if s.namespace == name]
    return [kind[:60]]


# ------------------------------------------------------------------ calls, from items and as items


def wrapped(raw: str) -> str:
    """A custom tool's input as the arguments of the function that it is shown as."""
    return orjson.dumps({"input": raw}).decode()


def unwrapped(arguments: str) -> str:
    """The raw input in such arguments. A model that wrote something else meant that; what was cut off is given as far as it goes."""
    try:
        found = orjson.loads(arguments)
    except orjson.JSONDecodeError:
        cut = PARTIAL_INPUT.match(arguments)
        return unescaped(cut[1]) if cut else arguments
    if isinstance(found, dict):
        said = found.get("input")
        if isinstance(said, str):
            return said
        if len(found) == 1 and isinstance(only := next(iter(found.values())), str):
            return only
    return found if isinstance(found, str) else arguments


def unescaped(inside: str) -> str:
    for end in (len(inside), inside.rfind("\\")):
        try:
            return str(orjson.loads(f'"{inside[: max(end, 0)]}"'))
        except orjson.JSONDecodeError:
            continue
    return inside


def call_item(item_id: str, call_id: str, name: str, arguments: str, kind: str, known: Mapping[str, Shown], status: str) -> dict[str, Any]:
    """A call as the item that this format's client waits for."""
    found = known.get(name) or Shown(kind, name)
    beside = {"namespace": found.namespace} if found.namespace else {}
    if kind == "custom" or found.type == "custom":
        raw = arguments if kind == "custom" else unwrapped(arguments)
        return {"id": item_id, "type": "custom_tool_call", "status": status, "call_id": call_id, "name": found.name, "input": raw, **beside}
    if side := CLIENT_SIDE.get(found.type):
        given = object_of(arguments)
        return {"id": item_id, "type": f"{found.type}_call", "status": status, "call_id": call_id, side.field: {**side.inside, **given}, **side.beside}
    return {"id": item_id, "type": "function_call", "status": status, "call_id": call_id, "name": found.name, "arguments": arguments or "{}", **beside}


def id_prefix(name: str, kind: str, known: Mapping[str, Shown]) -> str:
    """How the ids of such an item begin."""
    found = known.get(name) or Shown(kind, name)
    if kind == "custom" or found.type == "custom":
        return "ctc"
    side = CLIENT_SIDE.get(found.type)
    return side.id_prefix if side else "fc"


def object_of(arguments: str) -> dict[str, Any]:
    try:
        found = orjson.loads(arguments)
    except orjson.JSONDecodeError:
        return {}
    return found if isinstance(found, dict) else {}


def is_whole(arguments: str) -> bool:
    """Whether arguments are complete JSON; what is empty may still go on."""
    try:
        orjson.loads(arguments)
    except orjson.JSONDecodeError:
        return False
    return True


# ------------------------------------------------------------------ towards providers


def write_tool(tool: Tool, own: bool) -> tuple[str, dict[str, Any]]:
    """A namespace (or "") and the tool in it. `own`: the request came in this format, so `extra` is the tool as it was given."""
    extra = dict(tool.extra or {})
    if own and extra.get("type"):
        return str(extra.pop("namespace", "")), extra
    if tool.kind == "custom":
        inner = extra.get("custom")
        given = inner if isinstance(inner, dict) else {}
        made: dict[str, Any] = {"type": "custom", "name": tool.name}
        if tool.description:
            made["description"] = tool.description
        if isinstance(form := given.get("format"), dict):
            held = form.get("grammar")
            made["format"] = {"type": "grammar", **held} if isinstance(held, dict) else form
        return "", made
    parameters = {"type": "object", "properties": {}, **(tool.parameters or {})}
    # Left out, this format tries to hold a model to the schema, which other formats do only where they are told to.
    made = {"type": "function", "name": tool.name, "parameters": parameters, "strict": bool(tool.strict)}
    if tool.description:
        made["description"] = tool.description
    return "", made


def write_tools(tools: Iterable[Tool], own: bool) -> list[dict[str, Any]]:
    out: list[dict[str, Any]] = []
    spaces: dict[str, dict[str, Any]] = {}
    for tool in tools:
        namespace, made = write_tool(tool, own)
        if not namespace:
            out.append(made)
        elif namespace in spaces:
            spaces[namespace]["tools"].append(made)
        else:
            spaces[namespace] = {"type": "namespace", "name": namespace, "description": namespace, "tools": [made]}
            out.append(spaces[namespace])
    return out


def write_choice(choice: ToolChoice, known: Mapping[str, Shown], tools: Iterable[Tool]) -> Any:
    custom = {t.name for t in tools if t.kind == "custom"}

    def one(name: str) -> dict[str, Any]:
        found = known.get(name) or Shown("custom" if name in custom else "function", name)
        if found.type not in ("function", "custom"):
            return {"type": found.type}
        return {"type": found.type, "name": found.name, **({"namespace": found.namespace} if found.namespace else {})}

    if choice.mode == "tool":
        return one(choice.name)
    if choice.allowed:
        return {"type": "allowed_tools", "mode": choice.mode, "tools": [one(name) for name in choice.allowed]}
    return choice.mode
