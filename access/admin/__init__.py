"""Admin pages of who may call: users, keys, the audit trail."""

from access.admin import keys, people

__all__ = ["keys", "people"]
