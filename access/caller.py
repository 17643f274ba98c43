"""Who is calling: one frozen value for users, keys and keyless callers on loopback. Every rule about what they may do reads it."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal

BENCH_SCOPES = ("read", "ask", "judge", "operate", "admin")
# What the suite's API asks for, by the names of its contract.
SUITE_SCOPES = (
    "runs:read",
    "runs:write",
    "artifacts:read",
    "registry:read",
    "registry:publish",
    "billing:read",
    "billing:write",
    "settings:read",
    "settings:write",
    "secrets:read",
    "secrets:write",
    "hooks:read",
    "hooks:write",
    "host_policy:read",
    "host_policy:write",
)
SCOPES = (*BENCH_SCOPES, *SUITE_SCOPES)

# Each role may do all that the ones before it may.
_VIEWER = frozenset({"read", "runs:read", "artifacts:read", "registry:read", "billing:read", "settings:read"})
_JUDGE = _VIEWER | {"ask", "judge", "runs:write"}
_OPERATOR = _JUDGE | {"operate", "registry:publish", "settings:write", "secrets:read", "hooks:read", "hooks:write", "host_policy:read"}
ROLE_SCOPES: dict[str, frozenset[str]] = {"viewer": _VIEWER, "judge": _JUDGE, "operator": _OPERATOR, "admin": frozenset(SCOPES)}

# What a dry token may do: nothing that would call models by another way than the road, and nothing that decides who plays.
DRY_SCOPES = frozenset({"read", "ask", "runs:read", "runs:write", "artifacts:read", "registry:read", "registry:publish", "billing:read", "settings:read"})


@dataclass(frozen=True, slots=True)
class Caller:
    """Shape: `judge` is the name that verdicts and panels are kept under, and whose budget a call counts against, `team` whose besides; `key_id` is set for
    keys only; None in a limit means none. `pat` is live or test for a personal token, "" for all else: what a test token sets off asks no model.

    Units: `rpm` requests and `tpm` tokens a minute, `budget_usd` US dollars a calendar month.
    """

    kind: str  # user, key or loopback
    judge: str
    scopes: frozenset[str]
    key_id: int | None = None
    key_name: str = ""
    collections: tuple[str, ...] | None = None
    models: tuple[str, ...] | None = None
    rpm: int | None = None
    tpm: int | None = None
    max_parallel: int | None = None
    budget_usd: Decimal | None = None
    keep_text: bool | None = None
    team: str = ""
    pat: str = ""

    # DRF asks a user for this; every caller here has been established as somebody.
    @property
    def is_authenticated(self) -> bool:
        return True

    @property
    def owner(self) -> str:
        """Whoever judges pays: the user, else the key's owner, else the key, or `local`."""
        return self.judge

    @property
    def is_dry(self) -> bool:
        return self.pat == "test"

    @property
    def is_limited(self) -> bool:
        return self.rpm is not None or self.tpm is not None or self.max_parallel is not None or self.budget_usd is not None

    def may(self, scope: str) -> bool:
        # Keys were made before the suite had scopes of its own: an admin's opens all of those.
        return scope in self.scopes or (":" in scope and "admin" in self.scopes)

    def may_ask_collection(self, name: str) -> bool:
        """With either list set, everything that is not named is refused."""
        if self.collections is None and self.models is None:
            return True
        return name in (self.collections or ())

    def may_ask_model(self, alias: str) -> bool:
        """By alias, or by a prefix that ends in `*`; matched with case."""
        if self.collections is None and self.models is None:
            return True
        is_plain = ".." not in alias.split("/")  # such a name looks as if it led out of the prefix: it must be named whole
        return any(alias == rule or (is_plain and rule.endswith("*") and alias.startswith(rule[:-1])) for rule in self.models or ())


LOOPBACK = Caller(kind="loopback", judge="local", scopes=frozenset({"ask", "judge"}))
