"""Admin pages of the roster: endpoints and models."""

from catalog.admin import endpoints, models, signins, sources

__all__ = ["endpoints", "models", "signins", "sources"]
