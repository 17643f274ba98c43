"""Admin pages of this room, one file each."""

from health.admin import ledger, models, onboarding, probes, schedules

__all__ = ["ledger", "models", "onboarding", "probes", "schedules"]
