"""What this API takes and gives, for its OpenAPI description. Checks are the rooms' own; a test holds the two together."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any, TypeVar

from drf_spectacular.utils import OpenApiParameter, extend_schema, inline_serializer
from rest_framework import serializers as s

Method = TypeVar("Method", bound=Callable[..., Any])

PAGE = [
    OpenApiParameter("limit", int, description="Entries a page, 1 to 500; 50 without it."),
    OpenApiParameter("page_token", str, description="The next field of the page before."),
]
EXPORT_FORMAT = OpenApiParameter("format", str, enum=("json", "md"), description="json without it.")
VERDICT_FILTERS = [OpenApiParameter(name, str, description=f"Of one {name} alone.") for name in ("model", "collection", "judge")]
TEXTS = OpenApiParameter("texts", str, enum=("1",), description="1: with prompts and answers; at most 50 a page.")


def described(**what: Any) -> Callable[[Method], Method]:
    """Says of a view's method what the description shows."""
    decorated: Callable[[Method], Method] = extend_schema(**what)
    return decorated


@cache
def page_of(shape: type[s.Serializer[Any]]) -> s.Serializer[Any]:
    page: s.Serializer[Any] = inline_serializer(f"{shape.__name__}Page", {"data": shape(many=True), "next": s.CharField(allow_null=True)})
    return page


def usd(help_text: str = "US dollars, exact: no exponent, no trailing zeros.", **kwargs: Any) -> s.CharField:
    return s.CharField(help_text=help_text, allow_null=True, **kwargs)


def claims(help_text: str) -> s.ListField:
    return s.ListField(child=s.CharField(max_length=10_000), required=False, help_text=help_text)
