"""What the suite keeps. What models and people wrote is JSON in ASCII, so that a NUL or half a surrogate pair is kept as it came on every database.

Benchmark ─ Subset ─ Version        what is asked: rows belong to a subset from the version on that brought them
                 └── Row
Impl                                how it is asked and graded, addressed by its content
Admission                           how a version stood the checks of publishing under an impl
Run ─ Task ─ Sample                 one subject through one version: a task is a row of it, a sample one trial of a task
  ├── Event                         what happened, numbered without a gap
  ├── Rescoring ─ Regrade           its stored outputs graded again, as a further scoring
  └── Artifact ─ Blob
"""

from __future__ import annotations

from suite.models.asked import Admission, Benchmark, Impl, Row, Subset, Version
from suite.models.office import Backend, CodeHost, DryRun, Grant, Idempotency, SelfCheck, TeamSetting
from suite.models.runs import DRY, Answer, Artifact, Blob, Connection, Event, Metadatum, Regrade, Rescoring, Run, Sample, Summary, Sweep, Task

__all__ = [
    "DRY",
    "Admission",
    "Answer",
    "Artifact",
    "Backend",
    "Benchmark",
    "Blob",
    "CodeHost",
    "Connection",
    "DryRun",
    "Event",
    "Grant",
    "Idempotency",
    "Impl",
    "Metadatum",
    "Regrade",
    "Rescoring",
    "Row",
    "Run",
    "Sample",
    "SelfCheck",
    "Subset",
    "Summary",
    "Sweep",
    "Task",
    "TeamSetting",
    "Version",
]
