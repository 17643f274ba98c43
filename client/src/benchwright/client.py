"""One client of the suite, with a part for each kind of thing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from benchwarmers_client.server import BadAddress

from benchwright import profiles
from benchwright.account import Billing, HostPolicy, Secrets, Settings, Webhooks
from benchwright.authoring import Benchmarks, Built, Impls, Packs, Subsets
from benchwright.errors import BenchwrightError
from benchwright.objects import Object, id_of
from benchwright.registry import Registry, Sweeps
from benchwright.runs import Runs
from benchwright.transport import Transport, path


class Benchwright:
    """Shape: `api_key` or BW_PAT; `base_url`, BW_BASE_URL or the profile's. Units: `timeout` seconds, for one request. Errors: BenchwrightError.

    A client may be shared between threads. Close it, or use it with `with`.
    """

    def __init__(self, api_key: str | None = None, base_url: str | None = None, *, profile: str | None = None, timeout: float = 60.0, retries: int = 2) -> None:
        try:
            server = profiles.find(api_key, base_url, profile)
        except BadAddress as error:
            raise BenchwrightError(str(error)) from None
        self._transport = transport = Transport(server, timeout, retries)
        self.base_url = server.url
        self.runs = Runs(transport)
        self.benchmarks = Benchmarks(transport)
        self.subsets = Subsets(transport)
        self.packs = Packs(transport)
        self.impls = Impls(transport)
        self.built = Built(transport)
        self.registry = Registry(transport)
        self.sweeps = Sweeps(transport)
        self.secrets = Secrets(transport)
        self.host_policy = HostPolicy(transport)
        self.billing = Billing(transport)
        self.settings = Settings(transport)
        self.webhooks = Webhooks(transport)

    def __enter__(self) -> Benchwright:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def close(self) -> None:
        self._transport.close()

    @property
    def was_replayed(self) -> bool:
        """Whether this thread's last call that succeeded was answered by what an earlier one under the same key had made."""
        return bool(getattr(self._transport.replayed, "last", False))

    def compare(self, runs: Sequence[str | Mapping[str, Any]]) -> Object:
        """Compares the first run with each of the others, task by task: better, worse or inconclusive, with the smallest difference that could be seen."""
        found: Object = self._transport.json("GET", path("compare"), query={"runs": [id_of(run) for run in runs]}, timeout_s=600)
        return found

    def me(self) -> Object:
        """Tells whose key this is and what it may do."""
        found: Object = self._transport.json("GET", path("me"))
        return found

    def doctor(self) -> Object:
        """Looks whether what runs need is there: each check with a hint where it is not."""
        found: Object = self._transport.json("GET", path("doctor"))
        return found

    def backends(self) -> Object:
        """Lists where runs can be computed."""
        found: Object = self._transport.json("GET", path("backends"))
        return found

    def harnesses(self) -> Object:
        """Lists what can drive a run."""
        found: Object = self._transport.json("GET", path("harnesses"))
        return found

    def openapi(self) -> Object:
        """Gives the description of every path."""
        found: Object = self._transport.json("GET", path("openapi.json"))
        return found
