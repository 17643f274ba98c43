"""Secrets at rest, the check value, and keys that people paste."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from access import secrets
from access.models import CheckValue
from access.secrets import SecretsMismatch, UnusableKey, clean_key, reseal, seal, unseal

OLD, NEW = "old-secret-0123456789", "new-secret-0123456789"


def test_what_is_sealed_can_be_read_again_and_does_not_show() -> None:
    sealed = seal("sk-provider-ünïcode")
    assert unseal(sealed) == "sk-provider-ünïcode"
    assert "sk-provider" not in sealed
    assert seal("same") != seal("same")


def test_every_secret_decrypts_and_the_first_encrypts(settings) -> None:
    settings.SECRET_KEYS = [OLD]
    sealed = seal("sk-1")
    settings.SECRET_KEYS = [NEW, OLD]
    assert unseal(sealed) == "sk-1"
    moved = reseal(sealed)
    settings.SECRET_KEYS = [NEW]
    assert unseal(moved) == "sk-1"
    with pytest.raises(SecretsMismatch):
        unseal(sealed)


@pytest.mark.parametrize("sealed", ["", "x", "sk-plain", "gAAAAA==", "ü", "\ud800"])
def test_what_was_never_sealed_or_was_tampered_with_is_a_mismatch(sealed: str) -> None:
    with pytest.raises(SecretsMismatch, match="BENCHWARMERS_SECRET_KEYS"):
        unseal(sealed)


def test_the_cipher_is_not_the_key_that_signs_sessions(settings) -> None:
    """One secret serves several purposes; knowing what one of them derives must not open another."""
    import base64

    from cryptography.fernet import Fernet, InvalidToken

    signing = bytes.fromhex(settings.SECRET_KEY) if len(settings.SECRET_KEY) == 64 else settings.SECRET_KEY.encode()[:32]
    with pytest.raises(InvalidToken):
        Fernet(base64.urlsafe_b64encode(signing)).decrypt(seal("x").encode())


@pytest.mark.django_db
def test_a_server_with_other_secrets_finds_out(settings) -> None:
    settings.SECRET_KEYS = [OLD]
    secrets.ensure_check_value()
    secrets.ensure_check_value()
    assert CheckValue.objects.count() == 1
    settings.SECRET_KEYS = [NEW, OLD]
    secrets.ensure_check_value()
    settings.SECRET_KEYS = [NEW]
    with pytest.raises(SecretsMismatch) as caught:
        secrets.ensure_check_value()
    assert "BENCHWARMERS_SECRET_KEYS" in str(caught.value)
    assert NEW not in str(caught.value)


@pytest.mark.django_db
def test_after_a_rotation_the_new_secret_alone_reads_the_check_value(settings) -> None:
    settings.SECRET_KEYS = [OLD]
    secrets.ensure_check_value()
    settings.SECRET_KEYS = [NEW, OLD]
    secrets.reseal_check_value()
    settings.SECRET_KEYS = [NEW]
    secrets.ensure_check_value()


@pytest.mark.parametrize("raw", ["sk-up-1", "sk-up-1\n", " sk-up-1 ", "\r\n\tsk-up-1\r\n", "\u00a0sk-up-1\u00a0"])
def test_what_a_paste_brings_along_is_trimmed(raw: str) -> None:
    assert clean_key(raw) == "sk-up-1"


@pytest.mark.parametrize(
    ("raw", "kind", "position"),
    [
        ("sk-up-1\r\nx-evil: 1", "a line break", 8),
        ("sk-up\n1", "a line break", 6),
        ("sk-up\u20281", "a line break", 6),
        ("sk\t1", "a tab", 3),
        ("sk\x001", "a null character", 3),
        ("sk\x1b[31m", "a control character", 3),
        ("sk\x7f1", "a control character", 3),
        ("sk\x9f1", "a control character", 3),
        ("sk-\u200bup-1", "an invisible (zero-width) character", 4),
        ("\ufeffsk-up-1", "an invisible (zero-width) character", 1),
        ("sk-\u00adup", "an invisible (zero-width) character", 4),
        ("Bearer sk-up-1", "a space", 7),
        ("sk\u00a0up", "a space that is not ASCII", 3),
        ("sk-üp", "a character that is not ASCII", 4),
        ("sk-\U0001f511", "a character that is not ASCII", 4),
        ("sk\ud800up", "a character that is not ASCII", 3),
    ],
)
def test_a_character_that_no_header_may_hold_is_named_and_the_key_is_not(raw: str, kind: str, position: int) -> None:
    with pytest.raises(UnusableKey) as caught:
        clean_key(raw)
    assert f"{kind} at position {position}." in str(caught.value)
    assert "sk-up" not in str(caught.value)


def test_a_whole_file_pasted_by_mistake_is_refused() -> None:
    with pytest.raises(UnusableKey, match="longer than"):
        clean_key("a" * 9000)


def test_no_key_stays_no_key() -> None:
    assert clean_key(" \n") == ""


@given(st.text(max_size=60))
def test_a_key_is_either_fit_for_a_header_or_refused_without_showing_it(raw: str) -> None:
    fit = all("!" <= char <= "~" for char in raw.strip())
    if fit:
        assert clean_key(raw) == raw.strip()
    else:
        with pytest.raises(UnusableKey) as caught:
            clean_key(raw)
        assert str(caught.value).isascii()
