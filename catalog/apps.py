from django.apps import AppConfig


class CatalogConfig(AppConfig):
    name = "catalog"
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        from access import preferences
        from catalog import (
            checks,  # noqa: F401 -- registers itself
            discover,
            nearby,
            reading,
            signin_rows,
            sources,
        )

        preferences.register(
            "catalog.sources",
            {source.name: True for source in sources.every()},
            reading.check_sources,
            "Which public catalogs are read, once a day and on opening Discover. What one that is off said before no longer counts.",
        )
        preferences.register(
            "discover.own_app",
            {},
            discover.check_own_app,
            'Whether Discover shows models that a provider serves free only to its own app, by provider: {"opencode": "show"}. Hidden without it.',
        )
        nearby.register_settings()
        signin_rows.register_settings()
