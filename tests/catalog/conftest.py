"""A small web server for each test that asks for one, and rows of the roster."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from catalog.models import Endpoint, Model
from tests.catalog.pages import Pages, serving


@pytest.fixture
def pages() -> Iterator[Pages]:
    with serving() as found:
        yield found


@pytest.fixture
def endpoint(db: None) -> Endpoint:
    return Endpoint.objects.create(name="groq-eu", kind="openai", base_url="http://127.0.0.1:9/v1")


@pytest.fixture
def make_model(endpoint: Endpoint) -> Callable[..., Model]:
    def make(alias: str = "fast", **fields: object) -> Model:
        return Model.objects.create(**{"alias": alias, "endpoint": endpoint, "served_name": f"fake/{alias}", **fields})

    return make
