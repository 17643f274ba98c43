"""Webhooks' signatures, looked at without any request.

X-Benchwright-Signature: t=<unix time>,v1=<hex>[,v1=…]       HMAC-SHA256 over `t.body`, the secret's text as key
webhook-signature: v1,<base64>[ v1,…]                        HMAC-SHA256 over `id.timestamp.body`, the secret's bytes as key

While a secret is rotated there are several entries, and any that is right will do. Source: https://www.standardwebhooks.com, version 1.0.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import json
import time
from collections.abc import Mapping

from benchwright.errors import SignatureInvalid
from benchwright.objects import Object, wrapped

TOLERANCE_S = 300.0
STANDARD = ("webhook-id", "webhook-timestamp", "webhook-signature")


def construct_event(
    payload: bytes | str, sig_header: str | Mapping[str, str], secret: str, tolerance_s: float = TOLERANCE_S, now: float | None = None
) -> Object:
    """Verifies a delivery and gives its event.

    Shape: `sig_header` is the value of X-Benchwright-Signature, or all headers of the delivery, in which the Standard Webhooks ones do as well.
    Errors: SignatureInvalid for a signature that is not right, a time that is off by more than the tolerance, a body that is no JSON object.
    """
    body = payload.encode() if isinstance(payload, str) else bytes(payload)
    at = time.time() if now is None else now
    if isinstance(sig_header, str):
        verify_own(body, sig_header, secret, tolerance_s, at)
    else:
        headers = {str(name).lower(): str(value) for name, value in sig_header.items()}
        own = headers.get("x-benchwright-signature")
        if own:
            verify_own(body, own, secret, tolerance_s, at)
        elif all(name in headers for name in STANDARD):
            verify_standard(body, headers, secret, tolerance_s, at)
        else:
            raise SignatureInvalid("There is no signature: neither X-Benchwright-Signature nor the webhook-… headers.")
    try:
        event = json.loads(body)
    except ValueError:
        raise SignatureInvalid("The signature is right, and the body is no JSON.") from None
    if not isinstance(event, dict):
        raise SignatureInvalid("The signature is right, and the body is no JSON object.")
    found: Object = wrapped(event)
    return found


def verify_own(body: bytes, header: str, secret: str, tolerance_s: float, now: float) -> None:
    """Errors: SignatureInvalid."""
    pairs = [part.strip().partition("=") for part in header.split(",")]
    times = [value for name, _, value in pairs if name.strip() == "t"]
    signatures = [value.strip() for name, _, value in pairs if name.strip() == "v1"]
    if len(times) != 1 or not signatures:
        raise SignatureInvalid("The signature reads like t=<unix time>,v1=<hex>, and this one does not.")
    fresh(times[0], tolerance_s, now)
    right = hmac.new(secret.encode(), times[0].encode() + b"." + body, hashlib.sha256).hexdigest()
    judged([hmac.compare_digest(right.encode(), given.lower().encode("utf-8", "replace")) for given in signatures])


def verify_standard(body: bytes, headers: Mapping[str, str], secret: str, tolerance_s: float, now: float) -> None:
    """Errors: SignatureInvalid."""
    fresh(headers["webhook-timestamp"], tolerance_s, now)
    try:
        key = base64.b64decode(secret.removeprefix("whsec_"), validate=True)
    except (binascii.Error, ValueError):
        raise SignatureInvalid("The secret is no base64, as the webhook-… headers want it.") from None
    said = f"{headers['webhook-id']}.{headers['webhook-timestamp']}.".encode() + body
    right = base64.b64encode(hmac.new(key, said, hashlib.sha256).digest()).decode()
    given = [entry.partition(",") for entry in headers["webhook-signature"].split()]
    judged([hmac.compare_digest(right.encode(), value.encode("utf-8", "replace")) for version, _, value in given if version == "v1"])


def fresh(said: str, tolerance_s: float, now: float) -> None:
    if not (said.isascii() and said.isdecimal() and len(said) <= 12):
        raise SignatureInvalid("The signature's time is no number.")
    if abs(now - int(said)) > tolerance_s:
        raise SignatureInvalid(f"The signature's time is more than {tolerance_s:g} s away from now: an old delivery sent again, or a clock that is wrong.")


def judged(found: list[bool]) -> None:
    if not any(found):
        raise SignatureInvalid("No signature is right: it is another secret, or the body was changed. Verify the bytes as they came, before any parsing.")
