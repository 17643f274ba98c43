"""A run's files, made when somebody first asks and kept by their content: the same bytes are one blob, whichever run they are of.

task_impl, dataset, recipe     of what was frozen at the launch: there from the beginning
log, transcript, report        once the run is over; another scoring makes another version of the last two
Long ones come in parts, so that no process holds more than one of them.
"""

from __future__ import annotations

import hashlib
import json
import zlib
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from django.db import transaction
from django.db.models import Q
from django.utils import timezone

from suite import canonical, ids
from suite.api import shapes
from suite.models import Artifact, Blob, Event, Row, Run, Sample
from suite.reporting import page
from suite.running import recording
from suite.running.selection import rows_of

TYPES = ("task_impl", "dataset", "recipe", "log", "transcript", "report")
OVER = (Run.Status.OK, Run.Status.FAILED, Run.Status.HALTED)
PART_BYTES = 32 * 1024 * 1024
NDJSON, JSON = "application/x-ndjson", "application/json"


@dataclass(frozen=True, slots=True)
class Maker:
    """How a file comes about. Shape: `lines` gives its bytes piece by piece; `in_parts` where it may be long."""

    type: str
    name: str
    media_type: str
    version: int
    lines: Callable[[Run], Iterable[bytes]]
    in_parts: bool = False


def makers(run: Run) -> list[Maker]:
    """Lists what a run has by now."""
    is_code = run.impl.language != "builtin"
    found = [
        Maker("task_impl", "task_impl.py" if is_code else "grader.json", "text/x-python" if is_code else JSON, 1, impl_of),
        Maker("dataset", "dataset.jsonl", NDJSON, 1, dataset_of, in_parts=True),
        Maker("recipe", "recipe.json", JSON, 1, recipe_of),
    ]
    if run.status in OVER:
        found += [
            Maker("log", "events.jsonl", NDJSON, 1, log_of, in_parts=True),
            Maker("transcript", "transcript.jsonl", NDJSON, run.scoring, transcript_of, in_parts=True),
            Maker("report", "report.html", "text/html; charset=utf-8", run.scoring, lambda r: [page.written(r)]),
        ]
    return found


def ensure(run: Run, types: Iterable[str] = TYPES) -> None:
    """Makes what is missing of these types. Two who ask at once make the same."""
    there = set(Artifact.objects.filter(run=run).values_list("type", "version"))
    for maker in makers(run):
        if maker.type in types and (maker.type, maker.version) not in there:
            make(run, maker)


def make(run: Run, maker: Maker) -> None:
    blobs = list(blobs_of(maker.lines(run), PART_BYTES if maker.in_parts else None))
    stem, _, ending = maker.name.rpartition(".")
    now = timezone.now()
    rows = [
        Artifact(
            id=ids.new_id("art"),
            run=run,
            type=maker.type,
            name=maker.name if len(blobs) == 1 else f"{stem}-{i:03d}.{ending}",
            version=maker.version,
            media_type=maker.media_type,
            blob_id=blob.digest,
            created_at=now,
        )
        for i, blob in enumerate(blobs, 1)
    ]
    with transaction.atomic():
        # In one order, so that two who make the same never wait for each other in a circle.
        Blob.objects.bulk_create(sorted(blobs, key=lambda b: b.digest), ignore_conflicts=True)
        Artifact.objects.bulk_create(rows, ignore_conflicts=True)


def blobs_of(lines: Iterable[bytes], part: int | None) -> Iterator[Blob]:
    """Packs pieces as they come, a blob each so many bytes. Shape: at least one, an empty one of nothing."""
    now = timezone.now()
    sum_, packer, size, packed = hashlib.sha256(), zlib.compressobj(6), 0, bytearray()
    begun = False
    for line in lines:
        if part is not None and size and size + len(line) > part:
            yield Blob(digest=sum_.hexdigest(), size=size, content=bytes(packed + packer.flush()), created_at=now)
            sum_, packer, size, packed = hashlib.sha256(), zlib.compressobj(6), 0, bytearray()
        sum_.update(line)
        packed += packer.compress(line)
        size += len(line)
        begun = True
    if size or not begun:
        yield Blob(digest=sum_.hexdigest(), size=size, content=bytes(packed + packer.flush()), created_at=now)


def content_of(blob: Blob) -> bytes:
    return zlib.decompress(bytes(blob.content))


def forget(runs: Q) -> int:
    """Takes the files of runs away, with the blobs that nobody else has; they are made again when somebody asks."""
    with transaction.atomic():
        gone = Artifact.objects.filter(runs)
        digests = set(gone.values_list("blob_id", flat=True))
        count = gone.delete()[0]
        for some in pieces(sorted(digests), 500):
            Blob.objects.filter(digest__in=some, artifact=None).delete()
    return int(count)


def pieces(values: list[str], size: int) -> Iterator[list[str]]:
    for start in range(0, len(values), size):
        yield values[start : start + size]


# ------------------------------------------------------------------ what is in them


def line(value: Any) -> bytes:
    return f"{canonical.kept(value)}\n".encode()


def impl_of(run: Run) -> list[bytes]:
    if run.impl.language != "builtin":
        return [run.impl.code.encode("utf-8", "surrogatepass")]
    return [json.dumps(run.impl.grader, indent=1, sort_keys=True).encode()]


def recipe_of(run: Run) -> list[bytes]:
    """How the run was made: what another server needs to make the same."""
    said = {
        "fingerprint": run.fingerprint,
        "benchmark": {"id": run.benchmark_id, "name": run.benchmark.name},
        "subset": {"id": run.subset_id, "slug": run.subset.slug, "version": run.version},
        "selection": {name: value for name, value in run.selection.items() if name != "positions"},
        "scope": run.scope,
        "impl": {"id": run.impl_id, "digest": run.impl.digest, "language": run.impl.language, "grader": run.impl.grader, "dependencies": run.impl.dependencies},
        "sut": run.sut,
        "trials": run.trials,
        "seed": run.seed,
        "limits": run.limits,
        "harness": run.harness,
        "backend": run.backend,
    }
    return [json.dumps(said, indent=1, sort_keys=True).encode()]


def dataset_of(run: Run) -> Iterator[bytes]:
    """The rows that were asked, each as it could be sent again."""
    rows = rows_of(run.subset_id, run.version).order_by("position")
    chosen = run.selection.get("positions")
    if chosen is not None:
        for start in range(0, len(chosen), 500):
            yield from (row_line(row) for row in rows.filter(position__in=chosen[start : start + 500]))
    else:
        yield from (row_line(row) for row in rows.filter(position__lt=run.total).iterator(chunk_size=500))


def row_line(row: Row) -> bytes:
    body = json.loads(row.body)
    said = {"task_id": row.task_id, "input": body["input"], "expected": body["expected"], "source": body["source"]}
    more = {"kind": row.kind, "cluster": row.cluster}
    return line({name: value for name, value in {**said, **more}.items() if value not in (None, "") or name in ("task_id", "input", "expected")})


def log_of(run: Run) -> Iterator[bytes]:
    for event in Event.objects.filter(run=run).order_by("seq").iterator(chunk_size=2000):
        yield line(shapes.event(event))


def transcript_of(run: Run) -> Iterator[bytes]:
    """Every trial: what came, how it was graded then, and the task's result in the newest scoring."""
    tasks = {t.position: t for t in run.tasks.filter(scoring=run.scoring).only("position", "task_id", "outcome", "score", "passed")}
    for sample in Sample.objects.filter(run=run).order_by("position", "trial", "superseded").iterator(chunk_size=500):
        task = tasks.get(sample.position)
        kept = recording.unpacked(sample.payload)
        yield line(
            {
                "task_id": task.task_id if task else None,
                "position": sample.position,
                "trial": sample.trial,
                "superseded": sample.superseded > 0,
                "outcome": sample.outcome,
                "score": sample.score,
                "error_class": sample.reason or None,
                "finish_reason": sample.finish_reason or None,
                "attempts": sample.attempts,
                "calls": sample.calls,
                "duration_ms": sample.duration_ms,
                "tokens": {"input": sample.input_tokens, "output": sample.output_tokens, "reasoning": sample.reasoning_tokens},
                "task": {"outcome": task.outcome, "score": task.score, "passed": task.passed} if task else None,
                "tool_calls": kept.pop("calls", []),
                **kept,
            }
        )
