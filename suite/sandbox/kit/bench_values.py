"""Values on their way between a candidate and its tests: as plain data that means the same on both sides, or as a handle on what stays where it is.

Nothing that the other side made is ever executed here: a result is data, so no `__eq__` of its own can make it equal.
"""

from __future__ import annotations

import builtins
import datetime
import types
from collections import Counter, OrderedDict, defaultdict, deque, namedtuple
from collections.abc import Callable, Sequence
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
    "timezone": (datetime.timezone, lambda value: str(value.utcoffset(None) / datetime.timedelta(microseconds=1)), lambda text: zone(float(text))),
    "date": (datetime.date, datetime.date.isoformat, datetime.date.fromisoformat),
    "time": (datetime.time, datetime.time.isoformat, datetime.time.fromisoformat),
}


def zone(microseconds: float) -> datetime.timezone:
    return datetime.timezone(datetime.timedelta(microseconds=microseconds))


LISTS: dict[str, tuple[type, Callable[[Any], Any]]] = {"tuple": (tuple, tuple), "set": (set, set), "frozenset": (frozenset, frozenset), "deque": (deque, deque)}
DICTS: dict[type, tuple[str, Callable[[Any], Any]]] = {
    dict: ("dict", dict),
    OrderedDict: ("odict", OrderedDict),
    Counter: ("counter", Counter),
    defaultdict: ("dict", dict),
}
NAMED = {value: name for name, value in vars(builtins).items() if isinstance(value, type)}
NAMES = {name: value for value, name in NAMED.items()}
FACTORIES = frozenset({"list", "dict", "set", "int", "float", "str", "bool"})
PLAIN_KINDS = (type(None), bool, int, float, str, list, tuple, dict)
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
    if kind is deque and value.maxlen is not None:
        return {"$": "bounded", "v": [encode(item, keep, depth + 1) for item in value], "most": value.maxlen}
    if kind is defaultdict and (factory := NAMED.get(value.default_factory)) in FACTORIES:
        return {"$": "default", "of": factory, "v": [[encode(k, keep, depth + 1), encode(v, keep, depth + 1)] for k, v in dict.items(value)]}
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
        found = {"$": "error", **error_type(kind), "v": [encode(arg, keep, depth + 1) for arg in tuple(value.args)[:8]]}
        if kind not in NAMED:
            found["has"] = {name: encode(item, keep, depth + 1) for name, item in list(vars(value).items())[:20] if type(item) in PLAIN_KINDS}
            found["str"] = str(value)[:2000]
        return found
    fields = getattr(kind, "_fields", None)
    if issubclass(kind, tuple) and isinstance(fields, tuple) and all(isinstance(f, str) and f.isidentifier() and not f.startswith("_") for f in fields):
        items = list(tuple.__iter__(value))
        if len(items) == len(fields) and set(vars(kind)) <= PLAIN_NAMED | set(fields):
            return {"$": "named", "name": kind.__name__, "fields": list(fields), "v": [encode(item, keep, depth + 1) for item in items]}
    return keep(value)


# What every named tuple has; one with methods of its own stays where it is.
PLAIN_NAMED = set(vars(namedtuple("Some", ""))) | {
    "__annotations__",
    "__orig_bases__",
    "__static_attributes__",
    "__firstlineno__",
    "__annotate__",
    "__annotations_cache__",
}


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


KEYS: Any = type({}.keys())


def plain_of(value: Any) -> Any:
    """Gives the plain data in a value whose class extends a plain one; NotImplemented for others."""
    if type(value) is KEYS:
        return set(value)
    for of, taken in PLAIN:
        if isinstance(value, of) and type(value) is not of and not isinstance(value, bool):
            found = taken(value)
            return found if type(found) is of else NotImplemented
    return NotImplemented


def error_type(kind: type[BaseException]) -> dict[str, Any]:
    """Tells an exception's class by its name and by the nearest class that Python has itself."""
    known = next((NAMED[c] for c in kind.__mro__ if c in NAMED and issubclass(c, BaseException)), "Exception")
    own = [c.__name__ for c in kind.__mro__[1:] if c not in NAMED and issubclass(c, BaseException)]
    return {"name": kind.__name__, "is": known, "of": own[:8]}


class FromCandidate:
    """Marks what would end the tests, had they raised it themselves."""


ERRORS: dict[tuple[str, ...], type[BaseException]] = {}


def error_class(name: str, known: str, of: Sequence[str] = ()) -> type[BaseException]:
    """Gives a class for an exception of the other side, below those that it is derived from. What would end a process over there ends nothing here."""
    base: Any = NAMES.get(known, Exception)
    if base is SystemExit:
        name = "SystemExitFromCandidate"
    elif not (isinstance(base, type) and issubclass(base, Exception)):
        base, name = RuntimeError, f"{known}FromCandidate"
    if name == known and not of:
        return NAMES[known]
    key = (name, known, *of)
    if key not in ERRORS:
        bases = (error_class(of[0], known, of[1:]),) if of else (FromCandidate, base) if base is SystemExit else (base,)
        ERRORS[key] = type(name if name.isidentifier() else "Error", bases, {"__str__": said_str})
    return ERRORS[key]


def said_str(error: BaseException) -> str:
    said = vars(error).get("_said")
    return said if isinstance(said, str) else BaseException.__str__(error)


def error_made(said: dict[str, Any], args: list[Any], attributes: dict[str, Any]) -> BaseException:
    kind = error_class(str(said["name"])[:100], str(said["is"]), [str(name)[:100] for name in said.get("of", ())][:8])
    try:
        made = kind(*args)
    except Exception:  # some take arguments of their own, UnicodeDecodeError five of them
        made = error_class(f"{said['name']}"[:100], "Exception")(*args)
    if type(made).__module__ != "builtins":
        vars(made).update({name: value for name, value in attributes.items() if name.isidentifier() and not name.startswith("__")})
        vars(made)["_said"] = said.get("str")
    return made


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
    if kind == "bounded":
        return deque([decode(item, handle, depth + 1) for item in value["v"]], maxlen=int(value["most"]))
    if kind == "default" and value["of"] in FACTORIES:
        return defaultdict(NAMES[value["of"]], {decode(k, handle, depth + 1): decode(v, handle, depth + 1) for k, v in value["v"]})
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
        return error_class(str(value["name"]), str(value["is"]), [str(name) for name in value.get("of", ())][:8])
    if kind == "error":
        attributes = {str(name): decode(item, handle, depth + 1) for name, item in value.get("has", {}).items()}
        return error_made(value, [decode(arg, handle, depth + 1) for arg in value["v"]], attributes)
    if kind == "named":
        made_of: Any = namedtuple(str(value["name"]), [str(f) for f in value["fields"]])  # type: ignore[misc]
        return made_of(*[decode(item, handle, depth + 1) for item in value["v"]])
    return handle(value)


def refresh(mine: Any, theirs: Any) -> None:
    """Brings a container that was handed over to the state that it had over there after the call."""
    if type(mine) is not type(theirs) or mine is theirs or type(mine) not in (*MUTABLE, OrderedDict, Counter, defaultdict, tuple):
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
    if type(value) in (*MUTABLE, OrderedDict, Counter, defaultdict):
        return True
    return isinstance(value, tuple) and depth < 5 and any(holds_mutable(item, depth + 1) for item in value)


FUNCTIONS = (types.FunctionType, types.MethodType, types.BuiltinFunctionType)
