"""Admin pages of this room, one file each."""

from health.admin import ledger, models

__all__ = ["ledger", "models"]
