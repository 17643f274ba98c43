"""Requests that may come twice: the Idempotency-Key header, after draft-ietf-httpapi-idempotency-key-header.

first ─▶ a row that says "being answered" ─▶ the work ─▶ the row keeps status and body

A repetition is answered from the row, with Idempotent-Replayed: true; while the first still runs 409, with another body 422.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from datetime import timedelta
from functools import wraps
from typing import Any

from django.db import IntegrityError, transaction
from django.utils import timezone
from rest_framework.request import Request
from rest_framework.response import Response

from panels.api.wording import to_json
from suite.api.problems import Conflict, Problem, Unprocessable
from suite.canonical import digest
from suite.models import Idempotency
from wire.problem import CONTENT_TYPE

KEPT = timedelta(hours=24)
# Who died while answering leaves the row behind; a longer answer than this no path here has.
GIVEN_UP = timedelta(minutes=5)
LONGEST = 255


def idempotent(method: Callable[..., Response]) -> Callable[..., Response]:
    """Lets a view's method be repeated under a key. A failure of the server's own (5xx) is not kept. Errors: Problem 400, 409, 422."""

    @wraps(method)
    def answered(view: Any, request: Request, *args: Any, **kwargs: Any) -> Response:
        key = request.headers.get("Idempotency-Key")
        if key is None and view.takes_key_in_body and isinstance(request.data, dict):
            key = request.data.get("idempotency_key")
        if key is None:
            return method(view, request, *args, **kwargs)
        if not isinstance(key, str) or not 1 <= len(key) <= LONGEST or not key.isprintable():
            raise Problem(400, "invalid_idempotency_key", f"An Idempotency-Key has 1 to {LONGEST} printable characters.")
        # What a test token got was asked of no model: it is no answer to a real one.
        kind = "\ndry" if view.caller.is_dry else ""
        scope = hashlib.sha256(f"{view.caller.team}\n{view.caller.owner}{kind}\n{request.method}\n{request.get_full_path()}".encode()).hexdigest()
        fingerprint = getattr(request.data, "fingerprint", None) or digest(request.data)
        kept = begun(scope, key, fingerprint)
        if kept is not None:
            return replayed(kept, fingerprint)
        mine = Idempotency.objects.filter(scope=scope, key=key)
        try:
            response = method(view, request, *args, **kwargs)
        except Exception as error:
            response = view.handle_exception(error)
        if response.status_code >= 500:
            mine.delete()
            return response
        mine.update(status=response.status_code, body=json.dumps(response.data))
        response.headers["Idempotency-Expires"] = to_json(timezone.now() + KEPT)
        return response

    answered.is_idempotent = True  # type: ignore[attr-defined]  # for the description
    return answered


def begun(scope: str, key: str, fingerprint: str) -> Idempotency | None:
    """Takes a key for oneself; gives what is kept where somebody had it before."""
    now = timezone.now()
    Idempotency.objects.filter(scope=scope, key=key, created_at__lt=now - KEPT).delete()
    Idempotency.objects.filter(scope=scope, key=key, status=0, created_at__lt=now - GIVEN_UP).delete()
    try:
        with transaction.atomic():
            Idempotency.objects.create(scope=scope, key=key, fingerprint=fingerprint, created_at=now)
    except IntegrityError:
        return Idempotency.objects.filter(scope=scope, key=key).first() or begun(scope, key, fingerprint)
    return None


def replayed(kept: Idempotency, fingerprint: str) -> Response:
    if kept.fingerprint != fingerprint:
        raise Unprocessable("idempotency_key_reused", "This Idempotency-Key came with another body before. Use a new key for a new request.")
    if kept.status == 0:
        raise Conflict("idempotency_key_in_use", "A request with this Idempotency-Key is still being answered. Ask again in a moment.", retry_after_s=1)
    media = CONTENT_TYPE if kept.status >= 400 else None
    response = Response(json.loads(kept.body) if kept.body else None, status=kept.status, content_type=media)
    response.headers["Idempotent-Replayed"] = "true"
    response.headers["Idempotency-Expires"] = to_json(kept.created_at + KEPT)
    return response
