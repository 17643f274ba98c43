"""Admin pages of who may call: users, keys, the audit trail; and of settings."""

from access.admin import keys, people, preferences

__all__ = ["keys", "people", "preferences"]
