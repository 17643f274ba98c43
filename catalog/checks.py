"""What a deployer can get wrong about public catalogs."""

from __future__ import annotations

from typing import Any

from django.conf import settings
from django.core.checks import CheckMessage, Error, register

from catalog import sources


@register()
def catalog_urls(app_configs: Any, **kwargs: Any) -> list[CheckMessage]:
    """Finds addresses of catalogs that there are none of: a mistyped name would be read at its public address all the same."""
    names = [source.name for source in sources.every()]
    return [
        Error(
            f"BENCH_CATALOG_URLS names {name!r}, which is no catalog.",
            hint=f"Write one of {', '.join(names)} before the =.",
            id="catalog.E001",
        )
        for name in settings.CATALOG_URLS
        if name not in names
    ]
