"""Secrets at rest: encrypted with the server's first secret, read with any of them.

SecretsMismatch   the server's secrets cannot read what the database holds
UnusableKey       a key that a person pasted cannot be sent in a header
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import unicodedata
from functools import lru_cache

from cryptography.fernet import Fernet, InvalidToken, MultiFernet
from django.conf import settings

from access.models import CheckValue

KNOWN_TEXT = "benchwarmers"
LONGEST_KEY = 8192


class SecretsMismatch(Exception):
    code = "secrets_mismatch"


class UnusableKey(ValueError):
    """Shape: the message names the kind of the offending character and its place, never the key."""

    code = "invalid_request"
    field = "key"


@lru_cache(maxsize=8)
def ciphers(secrets: tuple[str, ...]) -> MultiFernet:
    """Derives one cipher a secret. Purpose-bound, so that what signs sessions does not open provider keys."""
    return MultiFernet([Fernet(base64.urlsafe_b64encode(hmac.digest(s.encode(), b"at-rest", hashlib.sha256))) for s in secrets])


def seal(text: str) -> str:
    return ciphers(tuple(settings.SECRET_KEYS)).encrypt(text.encode()).decode()


def unseal(sealed: str) -> str:
    """Errors: SecretsMismatch where none of the server's secrets opens it, or it was tampered with."""
    try:
        return ciphers(tuple(settings.SECRET_KEYS)).decrypt(sealed.encode()).decode()
    except (InvalidToken, UnicodeError):
        raise SecretsMismatch(
            "The server's secrets cannot read a value that is stored encrypted. Add the secret it was stored with to BENCHWARMERS_SECRET_KEYS, after the first."
        ) from None


def reseal(sealed: str) -> str:
    """Encrypts anew with the first secret what any of them opens. Errors: SecretsMismatch."""
    return seal(unseal(sealed))


def ensure_check_value() -> None:
    """Writes the check value where there is none, else reads it.

    Errors: SecretsMismatch where it cannot be read: such a server must not start, since it could read no provider's key either.
    """
    row, _ = CheckValue.objects.get_or_create(pk=1, defaults={"sealed": seal(KNOWN_TEXT)})
    try:
        readable = unseal(row.sealed) == KNOWN_TEXT
    except SecretsMismatch:
        readable = False
    if not readable:
        raise SecretsMismatch(
            "This server's secrets are not those that the database was written with. "
            "Set BENCHWARMERS_SECRET_KEYS to the secret it was written with (it may stand after a new one), or restore the secrets file."
        )


def reseal_check_value() -> None:
    """Encrypts the check value with the first secret. Errors: SecretsMismatch."""
    ensure_check_value()
    CheckValue.objects.filter(pk=1).update(sealed=seal(KNOWN_TEXT))


def clean_key(raw: str) -> str:
    """Trims what a paste brings along and refuses what a header cannot carry; an empty text stays empty.

    Errors: UnusableKey, since an HTTP library's own error for such a header prints the whole key.
    """
    key = raw.strip()
    if len(key) > LONGEST_KEY:
        raise UnusableKey(f"The key is longer than {LONGEST_KEY} characters. Paste the key alone.")
    for position, char in enumerate(key, start=1):
        if kind := offence(char):
            raise UnusableKey(f"The key holds {kind} at position {position}. Paste it again, in one piece and with nothing around it.")
    return key


def offence(char: str) -> str:
    """Names the kind of a character that no key may hold; empty for the others."""
    if "!" <= char <= "~":
        return ""
    if char in "\r\n\v\f\x85\u2028\u2029":
        return "a line break"
    if char == "\t":
        return "a tab"
    if char == "\x00":
        return "a null character"
    category = unicodedata.category(char)
    if category == "Zs":
        return "a space" if char == " " else "a space that is not ASCII"
    if category == "Cc":
        return "a control character"
    if category == "Cf":
        return "an invisible (zero-width) character"
    return "a character that is not ASCII"
