"""Requests to the suite: typed failures, and another try only where a request may be sent twice.

GET, or a request under an Idempotency-Key that its path knows ─▶ tried again after 429, 502, 503, 504 and a broken connection
anything else                                                    ─▶ tried again only where it never left
"""

from __future__ import annotations

import json
import random
import threading
import uuid
import warnings
import weakref
from collections.abc import Iterator, Mapping
from typing import Any
from urllib.parse import quote

from benchwarmers_client.http import Answer, Client, NoServer, Refused, ServerFailure, Unreached
from benchwarmers_client.server import Server
from benchwarmers_client.sse import Event

from benchwright import errors
from benchwright.objects import Object, wrapped
from benchwright.pages import Page

FIND = "Start one (make run), or say where it is: base_url, BW_BASE_URL or a profile (benchwright login)."
PASSING = (429, 502, 503, 504)
FIRST_PAUSE_S, LONGEST_PAUSE_S = 0.5, 60.0


def path(*parts: str) -> str:
    """A path below /v1, each part percent-encoded."""
    return "/v1/" + "/".join(quote(part, safe="@:") for part in parts)


class Transport:
    """Shape: `retries` is how often a request that may be repeated is sent again."""

    def __init__(self, server: Server, timeout_s: float = 60.0, retries: int = 2) -> None:
        self.client = Client(server, "benchwright", FIND)
        self.timeout_s, self.retries = timeout_s, retries
        self.replayed = threading.local()
        self.close = weakref.finalize(self, self.client.inner.close)  # for whoever forgets to

    def json(
        self,
        method: str,
        where: str,
        body: Any = None,
        *,
        query: Mapping[str, Any] | None = None,
        headers: Mapping[str, str] | None = None,
        key: str | None = None,
        may_repeat: bool = False,
        timeout_s: float | None = None,
    ) -> Any:
        """Sends a request and gives its JSON as objects, None for an empty answer. `may_repeat`: its path knows Idempotency-Key. Errors: BenchwrightError."""
        answer = self.raw(method, where, body, query=query, headers=headers, key=key, may_repeat=may_repeat, timeout_s=timeout_s)
        if not answer.data:
            return None
        try:
            return wrapped(json.loads(answer.data))
        except ValueError:
            raise errors.ConnectionFailed(f"What answers at {self.client.server.url} is no Benchwarmers server: it sent no JSON.") from None

    def raw(
        self,
        method: str,
        where: str,
        body: Any = None,
        *,
        content: bytes | None = None,
        query: Mapping[str, Any] | None = None,
        headers: Mapping[str, str] | None = None,
        key: str | None = None,
        may_repeat: bool = False,
        timeout_s: float | None = None,
    ) -> Answer:
        """Sends a request and gives the answer's bytes. Errors: BenchwrightError."""
        if may_repeat and key is None:
            key = str(uuid.uuid4())
        is_safe = method == "GET" or may_repeat
        sent = {**(headers or {}), **({"idempotency-key": key} if key else {})}
        for tried in range(self.retries + 1):
            is_last = tried == self.retries
            try:
                answer = self.client.exchange(
                    method, where, body, content=content, query=plain(query), headers=sent, timeout_s=self.timeout_s if timeout_s is None else timeout_s
                )
            except Unreached as error:
                if is_last:
                    raise errors.ConnectionFailed(str(error)) from None
                self.pause(tried, None)
                continue
            except ServerFailure as error:  # it broke on the way: whether the server did it is not known
                if is_last or not is_safe:
                    raise errors.ConnectionFailed(str(error)) from None
                self.pause(tried, None)
                continue
            if answer.status < 300:
                if answer.headers.get("deprecation"):
                    until = answer.headers.get("sunset")
                    warnings.warn(f"{method} {where} is going away{f' on {until}' if until else ''}: update this client.", DeprecationWarning, stacklevel=5)
                self.replayed.last = answer.headers.get("idempotent-replayed", "").lower() == "true"
                return answer
            failure = self.failure(answer)
            if is_last or not is_safe or not (failure.status in PASSING or failure.code == "idempotency_key_in_use"):
                raise failure
            self.pause(tried, failure.retry_after)
        raise AssertionError("the last try returns or raises")

    def failure(self, answer: Answer) -> errors.APIError:
        try:
            body = wrapped(json.loads(answer.data))
        except ValueError:
            body = None
        if body is None and answer.status < 500 and answer.status not in (401, 403, 404, 429):
            raise errors.ConnectionFailed(f"What answers at {self.client.server.url} is no Benchwarmers server: status {answer.status}, no JSON.")
        return errors.of(answer.status, body, answer.headers)

    def pause(self, tried: int, asked_s: float | None) -> None:
        """Waits as long as the server asks, else longer each time."""
        wait_s = asked_s if asked_s is not None else FIRST_PAUSE_S * 2**tried * random.uniform(0.5, 1.0)
        threading.Event().wait(min(wait_s, LONGEST_PAUSE_S))

    def events(self, where: str, last_id: str) -> Iterator[Event]:
        """Gives what one connection to an event stream brings. Errors: BenchwrightError."""
        try:
            with self.client.stream(where, method="GET", headers={"last-event-id": last_id} if last_id else {}) as found:
                yield from found
        except Refused as error:
            if error.status:
                raise errors.of(error.status, wrapped(error.body), {}) from None
            raise errors.ConnectionFailed(str(error)) from None
        except NoServer as error:
            raise errors.ConnectionFailed(str(error)) from None

    def page(self, where: str, query: Mapping[str, Any]) -> Page:
        """Reads a list. Errors: BenchwrightError."""
        first: Object = self.json("GET", where, query=query)
        return Page(first, self.following(where, query))

    def following(self, where: str, query: Mapping[str, Any]) -> Any:
        return lambda token: self.json("GET", where, query={**query, "page_token": token})


class Each(tuple[str, ...]):
    """Values of one query field that stands there once for each."""


def plain(query: Mapping[str, Any] | None) -> dict[str, Any]:
    """Writes query values as the API reads them: true and false, lists with commas, nothing for None."""
    found: dict[str, Any] = {}
    for name, value in (query or {}).items():
        if isinstance(value, bool):
            found[name] = "true" if value else "false"
        elif isinstance(value, Each):
            found[name] = list(value)
        elif isinstance(value, list | tuple):
            if value:
                found[name] = ",".join(str(part) for part in value)
        elif value is not None:
            found[name] = str(value)
    return found


def filtered(filters: Mapping[str, Any] | None) -> dict[str, Any]:
    """Writes filters: {"status": "ok"} is filter[status]=ok."""
    return {f"filter[{name}]": value for name, value in (filters or {}).items()}
