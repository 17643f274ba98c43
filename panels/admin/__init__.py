"""Admin pages of collections, panels and verdicts, and the overview."""

from panels.admin import asked, collections, judged

__all__ = ["asked", "collections", "judged"]
