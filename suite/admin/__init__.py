"""Admin pages of this room, one file each."""

from suite.admin import backends, money

__all__ = ["backends", "money"]
