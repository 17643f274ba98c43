"""Rosters for tests: endpoints, models and collections as a roster file has them, under names that no other test uses."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

NUMBERS = itertools.count(1)
PRICES = {"input_usd_per_mtok": "0.5", "output_usd_per_mtok": "1.5"}
PROVIDER_KEY = "sk-provider-0123456789abcdef"


def endpoint(name: str, base_url: str, **more: Any) -> dict[str, Any]:
    return {"name": name, "kind": "openai", "base_url": base_url, **more}


def model(alias: str, endpoint_name: str, served_name: str | None = None, **more: Any) -> dict[str, Any]:
    """Ad hoc unless said otherwise: a model of one test takes no explorer's seat in another."""
    return {"alias": alias, "endpoint": endpoint_name, "served_name": served_name or alias, "ad_hoc": True, **more}


def collection(name: str, members: Sequence[str], **more: Any) -> dict[str, Any]:
    """Without explorers unless said otherwise: who sits is then what the test says."""
    return {"name": name, "members": list(members), "explorers": 0, **more}


def tag(prefix: str = "t") -> str:
    """Begins the names of one test."""
    return f"{prefix}{next(NUMBERS)}"
