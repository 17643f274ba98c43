"""Values on their way between a candidate and its tests: as plain data that means the same on both sides, or as a handle on what stays where it is.

Nothing that the other side made is ever executed here: a result is data, so no `__eq__` of its own can make it equal.
"""

from __future__ import annotations

import builtins
import datetime
import types
from collections import Counter, OrderedDict, defaultdict, deque, namedtuple
from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from typing import Any

DEEPEST = 150
SAFE_INT = 2**53
# Made again from the texts of their parts.
BY_TEXT: dict[str, tuple[type, Callable[[Any], Any], Callable[[Any], Any]]] = {
    "decimal": (Decimal, str, Decimal),
    "fraction": (Fraction, str, Fraction),
    "complex": (complex, repr, complex),
    "bytes": (bytes, bytes.hex, bytes.fromhex),
    "bytearray": (bytearray, bytearray.hex, bytearray.fromhex),
    "datetime": (datetime.datetime, datetime.datetime.isoformat, datetime.datetime.fromisoformat),
    "date": (datetime.date, datetime.date.isoformat, datetime.date.fromisoformat),
    "time": (datetime.time, datetime.time.isoformat, datetime.time.fromisoformat),
}
LISTS: dict[str, tuple[type, Callable[[Any], Any]]] = {"tuple": (tuple, tuple), "set": (set, set), "frozenset": (frozenset, frozenset), "deque": (deque, deque)}
DICTS: dict[type, tuple[str, Callable[[Any], Any]]] = {
    dict: ("dict", dict),
    OrderedDict: ("odict", OrderedDict),
    Counter: ("counter", Counter),
    defaultdict: ("dict", dict),
}
NAMED = {value: name for name, value in vars(builtins).items() if isinstance(value, type)}
NAMES = {name: value for value, name in NAMED.items()}
MUTABLE = (list, dict, set, bytearray, deque)


class Unsendable(ValueError):
    """A value that is nested too deep, or holds itself."""


def encode(value: Any, keep: Callable[[Any], Any], depth: int = 0) -> Any:
    """Writes a value as JSON. Shape: `keep` writes what is no plain data."""
    if depth > DEEPEST:
        raise Unsendable("a value is nested too deep, or holds itself")
    kind = type(value)
    if value is None or kind is bool or kind is str:
        return value
    if kind is int:
        return value if -SAFE_INT < value < SAFE_INT else {"$": "int", "v": hex(value)}
    if kind is float:
        return value if value - value == 0 else {"$": "float", "v": repr(value)}
    if kind is list:
        return [encode(item, keep, depth + 1) for item in value]
    for name, (of, _) in LISTS.items():
        if kind is of:
            return {"$": name, "v": [encode(item, keep, depth + 1) for item in value]}
    if kind in DICTS:
        return {"$": DICTS[kind][0], "v": [[encode(k, keep, depth + 1), encode(v, keep, depth + 1)] for k, v in dict.items(value)]}
    for name, (of, written, _) in BY_TEXT.items():
        if kind is of:
            return {"$": name, "v": written(value)}
    if kind is range:
        return {"$": "range", "v": [encode(n, keep) for n in (value.start, value.stop, value.step)]}
    if kind is slice:
        return {"$": "slice", "v": [encode(n, keep, depth + 1) for n in (value.start, value.stop, value.step)]}
    if kind is datetime.timedelta:
        return {"$": "timedelta", "v": [value.days, value.seconds, value.microseconds]}
    if value is Ellipsis:
        return {"$": "..."}
    if isinstance(value, type) and NAMED.get(value):
        return {"$": "type", "v": NAMED[value]}
    if isinstance(value, type) and issubclass(value, BaseException):
        return {"$": "error_type", **error_type(value)}
    if isinstance(value, BaseException):
        return {"$": "error", **error_type(kind), "v": [encode(arg, keep, depth + 1) for arg in tuple(value.args)[:8]]}
    fields = getattr(kind, "_fields", None)
    if issubclass(kind, tuple) and isinstance(fields, tuple) and all(isinstance(f, str) and f.isidentifier() and not f.startswith("_") for f in fields):
        items = list(tuple.__iter__(value))
        if len(items) == len(fields):
            return {"$": "named", "name": kind.__name__, "fields": list(fields), "v": [encode(item, keep, depth + 1) for item in items]}
    return keep(value)


# How the plain data in a value is taken out, past whatever methods its class has of its own.
PLAIN: tuple[tuple[type, Callable[[Any], Any]], ...] = (
    (int, int.__int__),
    (float, float.__float__),
    (str, lambda value: str.__getitem__(value, slice(None))),
    (bytes, lambda value: bytes.__getitem__(value, slice(None))),
    (list, lambda value: list(list.__iter__(value))),
    (tuple, lambda value: tuple(tuple.__iter__(value))),
    (set, lambda value: set(set.__iter__(value))),
    (frozenset, lambda value: frozenset(frozenset.__iter__(value))),
    (dict, lambda value: dict(dict.items(value))),
)


def plain_of(value: Any) -> Any:
    """Gives the plain data in a value whose class extends a plain one; NotImplemented for others."""
    for of, taken in PLAIN:
        if isinstance(value, of) and type(value) is not of and not isinstance(value, bool):
            found = taken(value)
            return found if type(found) is of else NotImplemented
    return NotImplemented


def error_type(kind: type[BaseException]) -> dict[str, Any]:
    """Tells an exception's class by its name and by the nearest class that Python has itself."""
    known = next((NAMED[c] for c in kind.__mro__ if c in NAMED and issubclass(c, BaseException)), "Exception")
    return {"name": kind.__name__, "is": known}


ERRORS: dict[tuple[str, str], type[BaseException]] = {}


def error_class(name: str, known: str) -> type[BaseException]:
    """Gives a class for an exception of the other side. What would end a process over there ends nothing here."""
    base = NAMES.get(known, Exception)
    if not (isinstance(base, type) and issubclass(base, Exception)):
        base, name = RuntimeError, f"{known}FromCandidate"
    if name == known:
        return base
    if (name, known) not in ERRORS:
        ERRORS[(name, known)] = type(name if name.isidentifier() else "Error", (base,), {})
    return ERRORS[(name, known)]


def error_made(said: dict[str, Any], args: list[Any]) -> BaseException:
    kind = error_class(str(said["name"])[:100], str(said["is"]))
    try:
        return kind(*args)
    except Exception:  # some take arguments of their own, UnicodeDecodeError five of them
        return error_class(f"{said['name']}"[:100], "Exception")(*args)


def decode(value: Any, handle: Callable[[dict[str, Any]], Any], depth: int = 0) -> Any:
    """Reads what `encode` wrote. Errors: ValueError, KeyError or TypeError for what it cannot have written."""
    if depth > 2 * DEEPEST:
        raise ValueError("nested too deep")
    if isinstance(value, list):
        return [decode(item, handle, depth + 1) for item in value]
    if not isinstance(value, dict):
        return value
    kind = value["$"]
    if kind in LISTS:
        return LISTS[kind][1](decode(item, handle, depth + 1) for item in value["v"])
    for name, made in DICTS.values():
        if kind == name:
            return made({decode(k, handle, depth + 1): decode(v, handle, depth + 1) for k, v in value["v"]})
    if kind in BY_TEXT:
        return BY_TEXT[kind][2](str(value["v"]))
    if kind == "int":
        return int(str(value["v"]), 16)
    if kind == "float":
        return float({"inf": "inf", "-inf": "-inf"}.get(value["v"], "nan"))
    if kind == "range":
        return range(*[int(decode(n, handle)) for n in value["v"]])
    if kind == "slice":
        return slice(*[decode(n, handle, depth + 1) for n in value["v"]])
    if kind == "timedelta":
        return datetime.timedelta(*[int(n) for n in value["v"]])
    if kind == "...":
        return Ellipsis
    if kind == "type":
        return NAMES[value["v"]]
    if kind == "error_type":
        return error_class(str(value["name"]), str(value["is"]))
    if kind == "error":
        return error_made(value, [decode(arg, handle, depth + 1) for arg in value["v"]])
    if kind == "named":
        made_of: Any = namedtuple(str(value["name"]), [str(f) for f in value["fields"]])  # type: ignore[misc]
        return made_of(*[decode(item, handle, depth + 1) for item in value["v"]])
    return handle(value)


def refresh(mine: Any, theirs: Any) -> None:
    """Brings a container that was handed over to the state that it had over there after the call."""
    if type(mine) is not type(theirs):
        return
    if isinstance(mine, list):
        for i, (old, new) in enumerate(zip(mine, theirs, strict=False)):
            mine[i] = kept(old, new)
        mine[len(theirs) :] = theirs[len(mine) :]
    elif isinstance(mine, dict):
        merged = {key: kept(mine[key], new) if key in mine else new for key, new in theirs.items()}
        mine.clear()
        mine.update(merged)
    elif isinstance(mine, set):
        mine.clear()
        mine.update(theirs)
    elif isinstance(mine, bytearray | deque):
        mine.clear()
        mine.extend(theirs)
    elif isinstance(mine, tuple):
        for old, new in zip(mine, theirs, strict=False):
            refresh(old, new)


def kept(old: Any, new: Any) -> Any:
    """Of an item before and after, the old one brought up to date where it is a container: whoever else holds it sees the change."""
    if isinstance(old, MUTABLE) and type(old) is type(new):
        refresh(old, new)
        return old
    return new


def holds_mutable(value: Any, depth: int = 0) -> bool:
    if isinstance(value, MUTABLE):
        return True
    return isinstance(value, tuple) and depth < 5 and any(holds_mutable(item, depth + 1) for item in value)


FUNCTIONS = (types.FunctionType, types.MethodType, types.BuiltinFunctionType)
