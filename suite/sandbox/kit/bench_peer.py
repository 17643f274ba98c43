"""One end of the line between a candidate and its tests: asks the other end to do something with what it keeps, and does what it is asked meanwhile."""

from __future__ import annotations

import asyncio
import inspect
import json
import operator
import socket
import struct
import time
from collections.abc import Callable, Iterator
from typing import Any, NoReturn

from bench_values import Unsendable, decode, encode, error_type, holds_mutable, plain_of, refresh  # type: ignore[import-not-found]

MOST_BYTES = 16 * 1024 * 1024
ARITHMETIC = ("add", "sub", "mul", "truediv", "floordiv", "mod", "pow", "matmul", "and_", "or_", "xor", "lshift", "rshift")
ORDER = ("lt", "le", "gt", "ge")
IN_PLACE = ("iadd", "isub", "imul", "itruediv", "ifloordiv", "imod", "ipow", "iand", "ior", "ixor")
# Whose result may be near what a test compares with, if it comes from whom is tested: then it is not for the candidate to say that the rest is nothing.
TELLING = frozenset({"sub", "rsub", "truediv", "rtruediv", "floordiv", "rfloordiv", "mod", "rmod", "xor", "rxor", "add", "radd", "isub", "itruediv"})
# Names with underscores that are asked for, where others are the handle's own.
ASKED = frozenset({"__name__", "__qualname__", "__doc__", "__annotations__", "__wrapped__"})


class Gone(BaseException):
    """The other end is not there any more, or says what it cannot say."""


class Late(BaseException):
    """The other end did not answer in time."""


def called(of: Any, *args: Any, **kwargs: Any) -> Any:
    return of(*args, **kwargs)


def turned(op: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    return lambda of, other: op(other, of)


DO: dict[str, Callable[..., Any]] = {
    "call": called,
    "attr": getattr,
    "set": setattr,
    "item": operator.getitem,
    "set_item": operator.setitem,
    "del_item": operator.delitem,
    "contains": operator.contains,
    "len": len,
    "iter": iter,
    "next": next,
    "bool": bool,
    "str": str,
    "repr": repr,
    "int": int,
    "float": float,
    "index": operator.index,
    "isinstance": lambda of, other: isinstance(other, of),
    "enter": lambda of: of.__enter__(),
    "exit": lambda of: of.__exit__(None, None, None),
    "await": lambda of: asyncio.run(of),
    "eq": lambda of, other: bool(of == other),
    "hash": hash,
    "issubclass": lambda of, other: issubclass(other, of),
    **{name: getattr(operator, name) for name in IN_PLACE},
    **{name: getattr(operator, name) for name in (*ARITHMETIC, *ORDER, "neg", "pos", "abs", "invert")},
    **{f"r{name}": turned(getattr(operator, name)) for name in ARITHMETIC},
}


class Peer:
    """Shape: `may` says whether the other end may do something with a thing that is kept here; `until` is monotonic, None for no end."""

    def __init__(self, line: socket.socket, may: Callable[[str, Any, list[Any]], bool], until: float | None = None) -> None:
        self.line, self.may, self.until = line, may, until
        self.kept: list[Any] = []
        self.numbers: dict[int, int] = {}
        self.handles: dict[int | str, Handle] = {}
        self.lost = ""
        self.may_stop = True
        self.asked = 0

    # ---- messages

    def send(self, message: dict[str, Any]) -> None:
        data = json.dumps(message, separators=(",", ":")).encode()
        if len(data) > MOST_BYTES:
            raise Unsendable("a value is too large")
        try:
            self.line.settimeout(self.left())
            self.line.sendall(struct.pack(">I", len(data)) + data)
        except TimeoutError:
            self.lose("late", Late)
        except OSError:
            self.lose("gone", Gone)

    def receive(self) -> dict[str, Any]:
        (size,) = struct.unpack(">I", self.take(4))
        if size > MOST_BYTES:
            self.lose("gone", Gone)
        try:
            message = json.loads(self.take(size))
        except (ValueError, RecursionError):
            message = None
        if isinstance(message, dict):
            return message
        return self.lose("gone", Gone)

    def take(self, size: int) -> bytes:
        found = bytearray()
        while len(found) < size:
            try:
                self.line.settimeout(self.left())
                data = self.line.recv(min(size - len(found), 1024 * 1024))
            except TimeoutError:
                self.lose("late", Late)
            except OSError:
                data = b""
            if not data:
                self.lose("gone", Gone)
            found += data
        return bytes(found)

    def left(self) -> float | None:
        return None if self.until is None else max(0.001, self.until - time.monotonic())

    def lose(self, how: str, error: type[BaseException]) -> NoReturn:
        """Gives the other end up, for good: whatever is made of the exception, this stays."""
        self.lost = self.lost or how
        raise error

    # ---- asking

    def ask(self, op: str, of: int | str, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None) -> Any:
        """Has the other end do something. Errors: what it raised there, as a class of here."""
        if self.lost:
            raise Gone
        self.asked += 1
        named = kwargs or {}
        self.send({"do": op, "of": of, "args": encode(list(args), self.keep), "kwargs": {name: encode(value, self.keep) for name, value in named.items()}})
        while "do" in (message := self.receive()):
            self.send(self.answered(message))
        try:
            if message.get("stop"):
                raise self.stop(op)
            if "error" in message:
                error = decode(message["error"], self.handle)
                if isinstance(error, StopIteration | StopAsyncIteration):
                    raise self.stop(op)
                if isinstance(error, Exception | SystemExit):
                    raise error
                raise TypeError("no exception")
            if "args" in message:
                for mine, theirs in zip(args, decode(message["args"], self.handle), strict=False):
                    refresh(mine, theirs)
                for name, theirs in message["kwargs"].items():
                    refresh(named.get(name), decode(theirs, self.handle))
            return decode(message["value"], self.handle)
        except (KeyError, ValueError, TypeError, AttributeError, RecursionError, ArithmeticError):
            if "error" in message or "value" not in message:
                raise
            self.lose("gone", Gone)

    def stop(self, op: str) -> BaseException:
        """Gives what an end of an iteration is: one in a plain call would end a loop of the tests without a word."""
        return StopIteration() if op == "next" or self.may_stop else RuntimeError("StopIteration")

    # ---- answering

    def answered(self, message: dict[str, Any]) -> dict[str, Any]:
        try:
            of = self.kept[message["of"]] if isinstance(message["of"], int) else self.named(str(message["of"]))
            args = decode(message["args"], self.handle)
            kwargs = {str(name): decode(value, self.handle) for name, value in message["kwargs"].items()}
            op = str(message["do"])
            if not self.may(op, of, args):
                raise (AttributeError if op == "attr" else TypeError)(f"{op} is not for the other side")
            value = DO[op](of, *args, **kwargs)
            reply = {"value": encode(value, self.keep)}
            if op == "call" and (any(holds_mutable(a) for a in args) or any(holds_mutable(a) for a in kwargs.values())):
                reply |= {"args": encode(args, self.keep), "kwargs": {name: encode(value, self.keep) for name, value in kwargs.items()}}
            return reply
        except (Gone, Late):
            raise
        except StopIteration:
            return {"stop": True}
        except BaseException as error:
            return {"error": self.error(error)}

    def error(self, error: BaseException) -> Any:
        try:
            return encode(error, lambda value: str(value)[:500])
        except BaseException:
            return {"$": "error", **error_type(type(error)), "v": []}

    def named(self, name: str) -> Any:
        raise KeyError(name)

    def keep(self, value: Any) -> Any:
        """Writes what stays here: as what it is over there, or as a number by which the other end may ask for it."""
        if isinstance(value, Handle):
            if object.__getattribute__(value, "peer") is not self:
                raise TypeError("a handle of another line")
            return {"$": "yours", "id": object.__getattribute__(value, "id")}
        if id(value) not in self.numbers:
            self.numbers[id(value)] = len(self.kept)
            self.kept.append(value)  # kept alive, so that its id stays its own
        found: dict[str, Any] = {"$": "ref", "id": self.numbers[id(value)]}
        if inspect.iscoroutine(value):
            found["is"] = "coroutine"
        plain = plain_of(value)
        if plain is not NotImplemented:
            found["plain"] = encode(plain, self.keep)
        return found

    def handle(self, said: dict[str, Any]) -> Any:
        if said["$"] == "yours":
            return self.kept[said["id"]] if isinstance(said["id"], int) else self.named(str(said["id"]))
        if said["$"] != "ref":
            raise ValueError("no such value")
        plain = decode(said["plain"], self.handle) if "plain" in said else NotImplemented
        made = self.handles.setdefault(int(said["id"]), Handle(self, int(said["id"])))
        object.__setattr__(made, "plain", plain)  # one object is one handle, however often it comes
        if said.get("is") == "coroutine":
            return waited(made)
        return made


async def waited(handle: Handle) -> Any:
    return ask(handle, "await")


class Handle:
    """What the other end keeps. It equals nothing that is plain, unless it holds plain data itself: who says so is this end, never the other."""

    __slots__ = ("id", "is_rest", "peer", "plain")

    def __init__(self, peer: Peer, number: int | str, plain: Any = NotImplemented) -> None:
        object.__setattr__(self, "peer", peer)
        object.__setattr__(self, "id", number)
        object.__setattr__(self, "plain", plain)
        object.__setattr__(self, "is_rest", False)

    def __getattribute__(self, name: str) -> Any:
        if name == "__class__" and (plain := object.__getattribute__(self, "plain")) is not NotImplemented:
            return type(plain)
        if name.startswith("__") and name.endswith("__") and name not in ASKED:
            return object.__getattribute__(self, name)
        return ask(self, "attr", name)

    def __setattr__(self, name: str, value: Any) -> None:
        ask(self, "set", name, value)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return object.__getattribute__(self, "peer").ask("call", object.__getattribute__(self, "id"), args, kwargs)

    def __eq__(self, other: object) -> bool:
        plain = object.__getattribute__(self, "plain")
        if isinstance(other, Handle):
            theirs = object.__getattribute__(other, "plain")
            if plain is not NotImplemented and theirs is not NotImplemented:
                return bool(plain == theirs)
            return ask(self, "eq", other) is True
        return plain is not NotImplemented and bool(plain == other)

    def __ne__(self, other: object) -> bool:
        return not self == other

    def __hash__(self) -> int:
        plain = object.__getattribute__(self, "plain")
        return whole(ask(self, "hash")) if plain is NotImplemented else hash(plain)

    def __bool__(self) -> bool:
        plain = object.__getattribute__(self, "plain")
        return ask(told(self), "bool") is True if plain is NotImplemented else bool(plain)

    def __len__(self) -> int:
        plain = object.__getattribute__(self, "plain")
        return whole(ask(told(self), "len")) if plain is NotImplemented else len(plain)

    def __iter__(self) -> Iterator[Any]:
        walk = ask(self, "iter")
        if not isinstance(walk, Handle):
            raise TypeError("not iterable")
        while True:
            try:
                item = ask(walk, "next")
            except StopIteration:
                return
            yield item

    def __next__(self) -> Any:
        return ask(self, "next")

    def __contains__(self, item: Any) -> bool:
        plain = object.__getattribute__(self, "plain")
        return ask(self, "contains", item) is True if plain is NotImplemented else item in plain

    def __getitem__(self, key: Any) -> Any:
        return ask(self, "item", key)

    def __setitem__(self, key: Any, value: Any) -> None:
        ask(self, "set_item", key, value)

    def __delitem__(self, key: Any) -> None:
        ask(self, "del_item", key)

    def __str__(self) -> str:
        return text(ask(self, "str"))

    def __repr__(self) -> str:
        return text(ask(self, "repr"))

    def __int__(self) -> int:
        return whole(ask(self, "int"))

    def __index__(self) -> int:
        return whole(ask(self, "index"))

    def __float__(self) -> float:
        found = ask(self, "float")
        if type(found) is not float:
            raise TypeError("not a float")
        return found

    def __enter__(self) -> Any:
        return ask(self, "enter")

    def __exit__(self, *error: object) -> None:
        ask(self, "exit")

    def __subclasscheck__(self, other: Any) -> bool:
        return isinstance(other, Handle) and ask(self, "issubclass", other) is True

    def __instancecheck__(self, other: Any) -> bool:
        return isinstance(other, Handle) and ask(self, "isinstance", other) is True


def ask(handle: Handle, op: str, *args: Any) -> Any:
    return object.__getattribute__(handle, "peer").ask(op, object.__getattribute__(handle, "id"), args)


def whole(value: Any) -> int:
    if type(value) is not int:
        raise TypeError("not a whole number")
    return value


def text(value: Any) -> str:
    if type(value) is not str:
        raise TypeError("not a text")
    return value


def two(op: str, is_order: bool = False) -> Callable[[Handle, Any], Any]:
    def done(self: Handle, other: Any) -> Any:
        plain = object.__getattribute__(self, "plain")
        if is_order and not isinstance(other, Handle):
            # Whether what a candidate made is less than a plain value is not for the candidate to say.
            return NotImplemented if plain is NotImplemented else DO[op](plain, other)
        if is_order:
            return ask(self, op, other) is True
        if isinstance(other, Handle) and object.__getattribute__(other, "plain") is NotImplemented:
            return ask(self, op, other)
        if isinstance(plain, int | float | str | bytes | set | frozenset) and not isinstance(other, Handle):
            try:
                return DO[op](plain, other)
            except TypeError:
                pass
        found = ask(self, op, other)
        if not isinstance(found, Handle):
            raise TypeError("a result of a candidate's own operator with a plain value is not plain")
        if op in TELLING:
            object.__setattr__(found, "is_rest", True)
        return found

    return done


def told(self: Handle) -> Handle:
    """Errors: TypeError for what is left of a candidate's object after a test took what it expects from it: how much that is the candidate does not say."""
    if object.__getattribute__(self, "is_rest"):
        raise TypeError("how much is left is not for a candidate to say")
    return self


def one(op: str) -> Callable[[Handle], Any]:
    def done(self: Handle) -> Any:
        plain = object.__getattribute__(self, "plain")
        if isinstance(plain, int | float):
            return DO[op](plain)
        found = ask(told(self) if op == "abs" else self, op)
        if isinstance(found, Handle) and object.__getattribute__(self, "is_rest"):
            object.__setattr__(found, "is_rest", True)
        return found

    return done


for _name in ARITHMETIC:
    setattr(Handle, f"__{_name.rstrip('_')}__", two(_name))
    setattr(Handle, f"__r{_name.rstrip('_')}__", two(f"r{_name}"))
for _name in ORDER:
    setattr(Handle, f"__{_name}__", two(_name, is_order=True))
for _name in IN_PLACE:
    setattr(Handle, f"__{_name}__", two(_name))
for _name in ("neg", "pos", "abs", "invert"):
    setattr(Handle, f"__{_name}__", one(_name))
