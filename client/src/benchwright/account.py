"""What belongs to the team: budget and ledger, settings, secrets, which hosts may be reached, webhooks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from benchwright.objects import Object, given, id_of
from benchwright.pages import Page
from benchwright.signatures import construct_event
from benchwright.transport import Transport, filtered, path

Named = str | Mapping[str, Any]


class Part:
    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    def _json(self, method: str, where: str, body: Any = None, *, key: str | None = None, may_repeat: bool = False, query: Any = None) -> Any:
        return self._transport.json(method, where, body, key=key, may_repeat=may_repeat, query=query)


# ------------------------------------------------------------------ budget


class Balance(Part):
    def get(self, account: str | None = None) -> Object:
        """Tells what is left of the team's budget, what this month cost, and its cap; `account` is for an admin, like team:platform or owner:kim."""
        found: Object = self._json("GET", path("billing", "balance"), query={"account": account})
        return found


class Controls(Part):
    def get(self, account: str | None = None) -> Object:
        found: Object = self._json("GET", path("billing", "controls"), query={"account": account})
        return found

    def update(self, *, account: str | None = None, idempotency_key: str | None = None, **fields: Any) -> Object:
        """Changes monthly_cap_cents, auto_refill_enabled, …_amount_cents, …_threshold_cents, alert_enabled, alert_at_cap_pct."""
        found: Object = self._json("PATCH", path("billing", "controls"), fields, key=idempotency_key, may_repeat=True, query={"account": account})
        return found


class Topups(Part):
    def create(
        self,
        amount_cents: int,
        flow: str = "hosted",
        *,
        kind: str | None = None,
        note: str | None = None,
        account: str | None = None,
        idempotency_key: str | None = None,
    ) -> Object:
        """Grants an amount. No money moves: it is in the ledger at once. `kind` is grant, adjustment (also downwards) or refund."""
        body = {"amount_cents": amount_cents, "flow": flow, **given(kind=kind, note=note, account=account)}
        found: Object = self._json("POST", path("billing", "topups"), body, key=idempotency_key, may_repeat=True)
        return found

    def get(self, topup: Named) -> Object:
        found: Object = self._json("GET", path("billing", "topups", id_of(topup)))
        return found

    def list(self, account: str | None = None, limit: int = 50) -> Page:
        return self._transport.page(path("billing", "topups"), {"account": account, "limit": limit})


class Transactions(Part):
    def list(self, filters: Mapping[str, Any] | None = None, limit: int = 50, page_token: str | None = None) -> Page:
        """Lists what was spent and granted, newest first; {"kind": "trace_debit"} are runs' model calls."""
        return self._transport.page(path("billing", "transactions"), {**filtered(filters), "limit": limit, "page_token": page_token})


class Billing(Part):
    def __init__(self, transport: Transport) -> None:
        super().__init__(transport)
        self.balance = Balance(transport)
        self.controls = Controls(transport)
        self.topups = Topups(transport)
        self.transactions = Transactions(transport)

    def usage_trend(self, days: int | None = None, account: str | None = None) -> Object:
        """Tells what was spent, day by day."""
        found: Object = self._json("GET", path("billing", "usage-trend"), query={"days": days, "account": account})
        return found

    def export(self, type: str = "transactions", account: str | None = None) -> bytes:
        """Gives everything as CSV: transactions or runs."""
        return self._transport.raw("GET", path("billing", "export"), query={"type": type, "account": account}, timeout_s=600).data


# ------------------------------------------------------------------ settings, secrets, hosts


class Settings(Part):
    def list(self) -> Object:
        found: Object = self._json("GET", path("settings"))
        return found

    def get(self, key: str) -> Object:
        """Errors: NotFound, Unprocessable for a key that is none."""
        found: Object = self._json("GET", path("settings", key))
        return found

    def set(self, key: str, value: Any) -> Object:
        """Errors: Unprocessable for a key or a value that the schema does not have."""
        found: Object = self._json("PUT", path("settings", key), {"value": value})
        return found

    def delete(self, key: str) -> None:
        """Puts a setting back to what holds without it."""
        self._json("DELETE", path("settings", key))

    def schema(self) -> Object:
        """Gives every key with its type and meaning."""
        found: Object = self._json("GET", path("settings", "schema"))
        return found


class Secrets(Part):
    """Errors: NotImplementedByServer where the server has no secrets proxy."""

    def create(
        self, *, name: str, value: str, rules: Sequence[Mapping[str, Any]] = (), description: str | None = None, idempotency_key: str | None = None
    ) -> Object:
        body = given(name=name, description=description, value=value, rules=[dict(rule) for rule in rules])
        found: Object = self._json("POST", path("secrets"), body, key=idempotency_key, may_repeat=True)
        return found

    def list(self, limit: int = 50) -> Page:
        return self._transport.page(path("secrets"), {"limit": limit})

    def get(self, secret: Named) -> Object:
        """Never gives the value."""
        found: Object = self._json("GET", path("secrets", id_of(secret)))
        return found

    def update(self, secret: Named, *, value: str | None = None, idempotency_key: str | None = None, **patch: Any) -> Object:
        """A new value is for new runs; those under way keep the old one."""
        found: Object = self._json("PATCH", path("secrets", id_of(secret)), given(value=value, **patch), key=idempotency_key, may_repeat=True)
        return found

    def delete(self, secret: Named) -> None:
        self._json("DELETE", path("secrets", id_of(secret)))


class HostPolicy(Part):
    """Errors: NotImplementedByServer where the server has no host policy: its sandboxes reach nothing but the model."""

    def list(self) -> Object:
        found: Object = self._json("GET", path("host-policy"))
        return found

    def add(self, host_pattern: str, mode: str = "allow", idempotency_key: str | None = None) -> Object:
        found: Object = self._json("POST", path("host-policy"), {"host_pattern": host_pattern, "mode": mode}, key=idempotency_key, may_repeat=True)
        return found

    def delete(self, entry: Named) -> None:
        self._json("DELETE", path("host-policy", id_of(entry)))

    def default(self, mode: str) -> Object:
        found: Object = self._json("PUT", path("host-policy", "default"), {"mode": mode})
        return found

    def starter_pack(self, idempotency_key: str | None = None) -> Object:
        found: Object = self._json("POST", path("host-policy", "starter-pack"), {}, key=idempotency_key)
        return found

    def blocked_hosts(self) -> Object:
        found: Object = self._json("GET", path("host-policy", "blocked-hosts"))
        return found


# ------------------------------------------------------------------ webhooks


class Webhooks(Part):
    """Errors: NotImplementedByServer where the server sends none. `construct_event` asks no server."""

    construct_event = staticmethod(construct_event)

    def create(self, *, url: str, events: Sequence[str], description: str | None = None, idempotency_key: str | None = None) -> Object:
        """Its signing_secret is shown this once."""
        body = given(url=url, events=list(events), description=description)
        found: Object = self._json("POST", path("webhooks"), body, key=idempotency_key, may_repeat=True)
        return found

    def list(self, limit: int = 50) -> Page:
        return self._transport.page(path("webhooks"), {"limit": limit})

    def get(self, webhook: Named) -> Object:
        found: Object = self._json("GET", path("webhooks", id_of(webhook)))
        return found

    def update(self, webhook: Named, *, idempotency_key: str | None = None, **patch: Any) -> Object:
        found: Object = self._json("PATCH", path("webhooks", id_of(webhook)), patch, key=idempotency_key)
        return found

    def delete(self, webhook: Named) -> None:
        self._json("DELETE", path("webhooks", id_of(webhook)))

    def rotate_secret(self, webhook: Named, idempotency_key: str | None = None) -> Object:
        found: Object = self._json("POST", path("webhooks", id_of(webhook), "rotate-secret"), {}, key=idempotency_key)
        return found

    def test_delivery(self, webhook: Named, event: str = "webhook.test", idempotency_key: str | None = None) -> Object:
        found: Object = self._json("POST", path("webhooks", id_of(webhook), "test"), {"event": event}, key=idempotency_key)
        return found

    def deliveries(self, webhook: Named, status: str | None = None, limit: int = 50) -> Page:
        return self._transport.page(path("webhooks", id_of(webhook), "deliveries"), {"status": status, "limit": limit})

    def retry_delivery(self, webhook: Named, delivery: Named, idempotency_key: str | None = None) -> Object:
        where = path("webhooks", id_of(webhook), "deliveries", id_of(delivery), "retry")
        found: Object = self._json("POST", where, {}, key=idempotency_key)
        return found
