"""Admin pages of this room, one file each."""

from health.admin import budgets, ledger, models, onboarding, probes, schedules

__all__ = ["budgets", "ledger", "models", "onboarding", "probes", "schedules"]
