"""What is there to read: benchmarks, subsets and their boards, scorers, comparisons."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from benchwright.errors import NotFound
from benchwright.objects import Object, id_of
from benchwright.pages import Page
from benchwright.transport import Transport, filtered, path

Named = str | Mapping[str, Any]


class RegistryBenchmarks:
    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    def list(
        self,
        tag: str | None = None,
        sort: str | None = None,
        limit: int = 50,
        *,
        q: str | None = None,
        filters: Mapping[str, Any] | None = None,
        page_token: str | None = None,
    ) -> Page:
        """Lists benchmarks that one may see; `q` finds by words of name and description."""
        query = {**filtered(filters), "tag": tag, "sort": sort, "limit": limit, "q": q, "page_token": page_token}
        return self._transport.page(path("registry", "benchmarks"), query)

    def get(self, benchmark: Named, expand: Sequence[str] | str | None = None) -> Object:
        """Gives one benchmark; `expand="subsets"` with its subsets. Errors: NotFound."""
        found: Object = self._transport.json("GET", path("registry", "benchmarks", id_of(benchmark)), query={"expand": expand})
        return found

    def find(self, name: str) -> Object:
        """Gives the benchmark of exactly this name; the server looks. Errors: NotFound."""
        page = self._transport.json("GET", path("registry", "benchmarks"), query={"name": name, "limit": 1})
        if not page["data"]:
            raise NotFound(404, {"code": "benchmark_not_found", "detail": f"There is no benchmark called {name} that you may see."})
        found: Object = page["data"][0]
        return found

    def coverage(self, benchmark: Named, range: str, subset: Named | None = None) -> Object:
        """Tells which runs cover positions such as "0-5", and which no run does."""
        query = {"range": range, "subset": None if subset is None else id_of(subset)}
        found: Object = self._transport.json("GET", path("benchmarks", id_of(benchmark), "coverage"), query=query)
        return found


class RegistrySubsets:
    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    def list(
        self,
        benchmark: Named | None = None,
        limit: int = 50,
        *,
        q: str | None = None,
        passes: bool | None = None,
        filters: Mapping[str, Any] | None = None,
        page_token: str | None = None,
    ) -> Page:
        """Lists subsets that one may see; `q` finds by words of slug and name, `passes` those that run by themselves."""
        named = None if benchmark is None else id_of(benchmark)
        query = {**filtered(filters), "benchmark": named, "q": q, "passes": passes, "limit": limit, "page_token": page_token}
        return self._transport.page(path("registry", "subsets"), query)

    def get(self, subset: Named) -> Object:
        """Gives one subset. Errors: NotFound."""
        found: Object = self._transport.json("GET", path("registry", "subsets", id_of(subset)))
        return found

    def leaderboard(self, subset: Named) -> Page:
        """Gives a board for each version, scorer and number of trials: they never mix."""
        return self._transport.page(path("registry", "subsets", id_of(subset), "leaderboard"), {})

    def admission(self, subset: Named, impl: Named | None = None, *, fresh: bool = False) -> Object:
        """Tells how the newest version stands the checks of publishing; tried once for each scorer, anew with `fresh`."""
        query = {"impl": None if impl is None else id_of(impl), "fresh": fresh or None}
        found: Object = self._transport.json("GET", path("registry", "subsets", id_of(subset), "admission"), query=query)
        return found

    def runs(self, subset: Named, limit: int = 50) -> Page:
        """Lists every run of a subset."""
        return self._transport.page(path("registry", "subsets", id_of(subset), "runs"), {"limit": limit})

    def versions(self, subset: Named, limit: int = 50) -> Page:
        """Lists a subset's versions, newest first."""
        return self._transport.page(path("registry", "subsets", id_of(subset), "versions"), {"limit": limit})

    def diff(self, subset: Named, since: int | None = None, to: int | None = None) -> Object:
        """Tells which rows a version has that an earlier one had not."""
        found: Object = self._transport.json("GET", path("registry", "subsets", id_of(subset), "diff"), query={"from": since, "to": to})
        return found


class RegistryImpls:
    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    def get(self, impl: Named) -> Object:
        """Tells of one scorer. Errors: NotFound."""
        found: Object = self._transport.json("GET", path("impls", id_of(impl)))
        return found

    def code(self, impl: Named) -> str:
        """Gives a scorer's code. Errors: NotFound, also where its owner hides it or it is built in."""
        return self._transport.raw("GET", path("impls", id_of(impl), "code")).data.decode("utf-8", "surrogatepass")

    def runs(self, impl: Named, limit: int = 50) -> Page:
        """Lists every run that a scorer graded."""
        return self._transport.page(path("impls", id_of(impl), "runs"), {"limit": limit})


class Registry:
    def __init__(self, transport: Transport) -> None:
        self._transport = transport
        self.benchmarks = RegistryBenchmarks(transport)
        self.subsets = RegistrySubsets(transport)
        self.impls = RegistryImpls(transport)

    def self_checks(self, limit: int = 50) -> Page:
        """Lists how often the comparison called equals different: what its verdicts are worth here."""
        return self._transport.page(path("registry", "self-checks"), {"limit": limit})


class Sweeps:
    """Many models under one key, by one scorer."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    def create(self, *, idempotency_key: str | None = None, **fields: Any) -> Object:
        """Launches one run for each model, of an anchor run or a pinned benchmark. Shape: the fields of POST /v1/sweeps."""
        body = {name: id_of(value) if name in ("anchor", "benchmark", "subset", "impl") else value for name, value in fields.items() if value is not None}
        found: Object = self._transport.json("POST", path("sweeps"), body, key=idempotency_key, may_repeat=True)
        return found

    def list(self, limit: int = 50) -> Page:
        return self._transport.page(path("sweeps"), {"limit": limit})

    def get(self, sweep: Named) -> Object:
        """Gives a sweep with its runs and the board over them. Errors: NotFound."""
        found: Object = self._transport.json("GET", path("sweeps", id_of(sweep)))
        return found
