"""Why a command does not go on: one sentence for a person, and a non-zero exit."""

from django.core.management.base import CommandError


class Refusal(CommandError):
    """Shape: the message says what is the matter, with which thing, and what to do."""
