"""Reads typed fields out of a caller's JSON: a wrong type is a CallerError that names the field's path, never a traceback."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from wire.errors import CallerError

JSON_NAMES = {dict: "an object", list: "a list", str: "a string", bool: "true or false", int: "a whole number", float: "a number", type(None): "null"}


def wrong(path: str, wanted: str, got: Any) -> CallerError:
    return CallerError("invalid_request", f"{path} must be {wanted}, not {JSON_NAMES.get(type(got), 'that')}.", field=path)


def missing(path: str) -> CallerError:
    return CallerError("invalid_request", f"{path} is missing.", field=path)


def obj(value: Any, path: str) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise wrong(path, "an object", value)
    return value


def array(value: Any, path: str) -> list[Any]:
    if not isinstance(value, list):
        raise wrong(path, "a list", value)
    return value


def text(value: Any, path: str) -> str:
    if not isinstance(value, str):
        raise wrong(path, "a string", value)
    return value


def optional_text(body: Mapping[str, Any], name: str, path: str = "") -> str:
    """ "" where the field is absent or null."""
    value = body.get(name)
    return "" if value is None else text(value, f"{path}{name}")


def optional_bool(body: Mapping[str, Any], name: str, path: str = "") -> bool | None:
    value = body.get(name)
    if value is None or isinstance(value, bool):
        return value
    raise wrong(f"{path}{name}", "true or false", value)


def optional_int(body: Mapping[str, Any], name: str, path: str = "", least: int | None = None, most: int = 2**53) -> int | None:
    """A whole number; 3.0 counts as one, as JSON makes no difference."""
    value = body.get(name)
    if value is None:
        return None
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if isinstance(value, bool) or not isinstance(value, int):
        raise wrong(f"{path}{name}", "a whole number", value)
    if (least is not None and value < least) or abs(value) > most:
        raise CallerError(
            "invalid_request",
            f"{path}{name} must be {f'at least {least}' if least is not None and value < least else f'at most {most}'}.",
            field=f"{path}{name}",
        )
    return value


def optional_number(body: Mapping[str, Any], name: str, path: str = "") -> float | None:
    value = body.get(name)
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        raise wrong(f"{path}{name}", "a number", value)
    return value


def model_name(body: Mapping[str, Any]) -> str:
    """The `model` field: 1 to 200 printable characters of any script."""
    if "model" not in body or body["model"] is None:
        raise missing("model")
    name = text(body["model"], "model")
    if not 1 <= len(name) <= 200 or not name.isprintable():
        raise CallerError("invalid_request", "model must be a name of 1 to 200 printable characters.", field="model")
    return name
