"""Admin pages of the roster: endpoints and models."""

from catalog.admin import discover, endpoints, models, signins, sources

__all__ = ["discover", "endpoints", "models", "signins", "sources"]
