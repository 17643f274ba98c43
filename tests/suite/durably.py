"""Runs in the test's own database, worked on by processes that may be killed, and what must be true of them afterwards."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

from django.db import connection

from access.caller import Caller
from health.models import Attempt
from panels import rosterfile
from suite import ids
from suite.authoring import impls, rows, subsets
from suite.models import Answer, Benchmark, Event, Run, Sample, Subset, Task
from suite.running import launching
from tests import factories
from tests.fake import FakeProvider, reply
from tests.suite.driving import sums
from tests.warm import Forked

OWNER = Caller(kind="user", judge="ada", scopes=frozenset({"ask", "runs:write", "registry:read"}))
ANSWER = reply("ANSWER: 4", usage=(20, 8))
PRICES = {"input_usd_per_mtok": "1", "output_usd_per_mtok": "2"}
A_CALL = 20 * 1_000_000 + 8 * 2_000_000  # trillionths of a dollar


class Hosts:
    """Processes that work on the runs of one database, each in a data folder of its own."""

    def __init__(self, folder: Path, fake: FakeProvider) -> None:
        self.folder, self.fake = folder, fake
        self.environment: dict[str, str] = {}  # of each of its processes
        self.started: list[Forked] = []
        self.model = factories.tag("durable")
        fake.script(self.model, ANSWER)

    def roster(self, **endpoint: Any) -> str:
        """Puts one model on the bench."""
        name = f"{self.model}-at"
        roster = {
            "endpoints": [factories.endpoint(name, self.fake.url, **endpoint)],
            "models": [factories.model(self.model, name, facts=PRICES)],
        }
        rosterfile.load(json.dumps(roster))
        return self.model

    def subset(self, tasks: list[dict[str, Any]], grader: Any) -> Subset:
        from django.utils import timezone

        now = timezone.now()
        benchmark = Benchmark.objects.create(id=ids.new_id("bm"), name=self.model, owner="ada", created_at=now, updated_at=now)
        return subsets.create(benchmark, "all", "all", "", rows.read(tasks, grader), False, grader, "ada")

    def launch(self, subset: Subset, **more: Any) -> Run:
        return launching.launch(OWNER, {"benchmark": subset.benchmark_id, "subset": subset.pk, "sut": self.model, **more})

    def sums(self, count: int, **more: Any) -> Run:
        self.roster()
        return self.launch(self.subset(sums(count), {"kind": "math"}), **more)

    def coded(self, count: int, code: str, **more: Any) -> Run:
        self.roster()
        subset = self.subset(sums(count), None)
        impl, _ = impls.create(OWNER, code, "python", "", "", subset.benchmark, subset)
        return self.launch(subset, impl=impl.pk, **more)

    def work(self, point: str = "never", count: int = 1, home: str = "one", **environment: str) -> Forked:
        (self.folder / home).mkdir(exist_ok=True)
        database, arguments = str(connection.settings_dict["NAME"]), (str(self.folder / home), point, str(count))
        self.started.append(Forked(database, "tests.suite.run_worker", "main", *arguments, environment={**self.environment, **environment}))
        return self.started[-1]

    def killed(self, point: str, count: int = 1, home: str = "one", **environment: str) -> None:
        one = self.work(point, count, home, **environment)
        _, said = one.communicate()
        assert one.returncode == -9, (point, one.returncode, said[-3000:])

    def worked(self, home: str = "one", **environment: str) -> int:
        one = self.work(home=home, **environment)
        out, said = one.communicate()
        assert one.returncode == 0, said[-3000:]
        return int(out.split()[-1])

    def close(self) -> None:
        for one in self.started:
            one.close()


def assert_whole(run: Run, calls: int, status: str = "ok") -> None:
    """Holds a run to what must be true however often its processes died. `calls` is how many reached the provider."""
    run.refresh_from_db()
    assert run.status == status, (run.status, run.error, run.halt_reason)
    trials = run.total * run.trials
    counted = Counter(Sample.objects.filter(run=run, superseded=0).values_list("position", "trial"))
    assert set(counted.values()) == {1}
    assert len(counted) == trials
    assert Task.objects.filter(run=run, scoring=1).count() == run.total == run.done
    assert not Answer.objects.filter(run=run).exists(), "an answer goes with its sample"
    events = list(Event.objects.filter(run=run).order_by("seq").values_list("seq", "type"))
    assert [seq for seq, _ in events] == list(range(1, run.last_seq + 1))
    types = Counter(kind for _, kind in events)
    assert (types["RunQueued"], types["PhaseStarted"], types["MaterializeTaskResult"], types["RunFinished"]) == (1, 2, run.total, 1)
    assert events[-1][1] == "RunFinished"
    # Every call that came back is on record once, belongs to one sample, and is paid for once; those that a death cut off are lost, and no sample's.
    ledger = {call: (state, cost) for call, state, cost in Attempt.objects.filter(request=run.pk).values_list("call", "status", "cost_pusd")}
    assert trials <= calls <= len(ledger), (calls, Counter(state for state, _ in ledger.values()))
    good = {call for call, (state, _) in ledger.items() if state == "ok"}
    theirs = [call for found in Sample.objects.filter(run=run).values_list("calls", flat=True) for call in found]
    assert sorted(theirs) == sorted(good)
    assert len(good) == trials
    assert run.cost_pusd == sum(ledger[call][1] or 0 for call in good) == trials * A_CALL
