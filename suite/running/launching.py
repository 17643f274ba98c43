"""A launch: what was asked for resolved and frozen into a queued run. Nothing is spent here.

mode_missing, mode_conflict     which of request, benchmark and replay
sut_unknown, sut_retired        whom it tests
backend_unknown, grader_unknown, sandbox_unavailable   where and how it is done
What it measures by: `targets`.
"""

from __future__ import annotations

import difflib
import secrets
from collections.abc import Mapping
from dataclasses import dataclass
from math import isfinite
from typing import Any

from django.db import connection, transaction
from django.utils import timezone

from access.caller import Caller
from catalog import candidates
from panels.snapshot import Snapshot, load_snapshot
from suite import backends, canonical, ids, teamsettings
from suite.api.problems import NotYet, Problem, Unprocessable, Wrong, wrong
from suite.models import DRY, Backend, Metadatum, Row, Run, Subset
from suite.running import limits as ceilings
from suite.running import needs, recording, subjects
from suite.running.asking import look_at_params
from suite.running.limits import Limits
from suite.running.subjects import Subject
from suite.running.targets import Target, find_run, pinned, replayed

__all__ = ["FIELDS", "Target", "find_run", "kept", "launch", "metadata_of", "prepare", "tags_of"]

FIELDS = (
    "request", "benchmark", "subset", "impl", "replay", "sut", "driver", "phase_models", "harness", "compute", "limits", "constraints", "trials", "hints",
    "metadata", "tags", "idempotency_key", "timeout", "source", "visibility", "priority",
)  # fmt: skip
HARNESSES = ("benchwright", "inspect", "lmeval", "lighteval", "harbor")
SOURCES = ("manual", "ci", "onboarding", "scheduled")
PHASES = ("find", "analyze", "atomize", "materialize", "report")
MOST_TRIALS, MOST_HINTS = 100, 64 * 1024
USUAL, LAST = 50, 100
LOCAL = teamsettings.LOCAL
# A reasoning model spends more than this before it names a letter: its answers would be cut off, and its score near chance.
SMALL_CAP = 512
CAPS = ("max_tokens", "max_completion_tokens")


@dataclass(frozen=True, slots=True)
class Prepared:
    """A launch without its subject: what many runs of one sweep have in common."""

    body: Mapping[str, Any]
    target: Target
    caps: Limits
    trials: int
    metadata: Mapping[str, Any]
    backend: str
    snapshot: Snapshot


def launch(caller: Caller, body: Mapping[str, Any]) -> Run:
    """Makes a queued run. Errors: Problem."""
    prepared = prepare(caller, body)
    return begun(caller, prepared, subject_of(prepared, body.get("sut")))


def prepare(caller: Caller, body: Mapping[str, Any]) -> Prepared:
    """Resolves all of a launch but whom it tests. Errors: Problem."""
    if "agent" in body:
        raise Unprocessable(
            "unknown_field",
            "agent is not a field: use driver for the model that authors, sut for the one under test.",
            [Wrong("/agent", "unknown_field", "Use driver or sut.")],
        )
    mode = mode_of(body)
    harness = body.get("harness") or "benchwright"
    if harness not in HARNESSES:
        raise wrong("/harness", f"must be one of {', '.join(HARNESSES)}.")
    if harness != "benchwright":
        raise Unprocessable(
            "harness_unavailable",
            f"The harness {harness} is not installed here, and there is no adapter to it yet. Leave harness out: the graders here run a pinned benchmark.",
            [Wrong("/harness", "harness_unavailable", "GET /v1/harnesses lists those there are.")],
        )
    if mode == "request":
        raise NotYet("Launching by a request in words", "Name a benchmark, or replay a run: GET /v1/registry/benchmarks lists them.")
    caps = ceilings.read(body.get("limits"), body.get("constraints"))
    metadata = metadata_of(body.get("metadata"))
    cap = ceilings.narrower(caps.run_tasks, limit_of(metadata))
    trials = trials_of(body)
    if (body.get("source") or "manual") not in SOURCES:
        raise wrong("/source", f"must be one of {', '.join(SOURCES)}.")
    tags_of(body.get("tags"))
    priority_of(caller, body.get("priority"))
    said_of(body)
    visibility_of(caller, body.get("visibility"))
    target = replayed(caller, body["replay"], cap) if mode == "replay" else pinned(caller, body, cap)
    parent = target.parent
    if trials is None:
        trials = parent.trials if parent is not None else recipe_trials(target.subset, caller.team)
    if parent is not None and body.get("limits") is None and body.get("constraints") is None:
        caps = ceilings.read(parent.limits)
    merged = {**(parent.metadata if parent is not None else {}), **metadata}
    needs.check(target.impl, target.subset.pk, target.version)
    return Prepared(body, target, caps, trials, merged, backend_of(caller, body.get("compute")), load_snapshot())


def subject_of(prepared: Prepared, sut: Any) -> Subject:
    """Finds whom a launch tests; without a word of it a replay asks whom its parent asked. Errors: Unprocessable, Conflict."""
    parent = prepared.target.parent
    if sut is not None:
        subject = subjects.resolve(sut, prepared.snapshot)
        look_in_list(subject)
        look_at_params(subject.params)
    elif parent is not None:
        subject = subjects.kept_one(parent.sut, prepared.snapshot)
    else:
        raise Unprocessable("sut_missing", "sut says whom the run tests.", [Wrong("/sut", "missing", "is needed.")])
    subjects.seated(subject, prepared.snapshot)
    return subject


def look_in_list(subject: Subject) -> None:
    """Refuses a name that the endpoint's newest list lacks. One that was never read, was cut or failed says nothing. Errors: Unprocessable with the nearest."""
    found = candidates.kept(subject.provider) if subject.kind == "served" else None
    if found is not None and candidates.missing_of(found, [subject.served_name]):
        nearest = difflib.get_close_matches(subject.served_name, [one.served_name for one in found.models], n=5, cutoff=0.5)
        hint = f" Perhaps {', '.join(nearest)}." if nearest else ""
        message = (
            f"{subject.provider} lists no model {subject.served_name[:100]}.{hint} Where it is new there, GET /bench/candidates?refresh=1 reads the list again."
        )
        raise Unprocessable("sut_unknown", message, [Wrong("/sut", "sut_unknown", message)], nearest=[f"{name}@{subject.provider}" for name in nearest])


def begun(caller: Caller, prepared: Prepared, subject: Subject, sweep: str = "") -> Run:
    return kept(caller, prepared.body, prepared.target, subject, prepared.caps, prepared.trials, prepared.metadata, prepared.backend, sweep)


def warnings_of(target: Target, subject: Subject, caps: Limits) -> list[str]:
    """Tells what will probably spoil a run's numbers, before anything is spent."""
    found = []
    given = [value for name in CAPS if isinstance(value := (subject.params or {}).get(name), int)]
    cap = ceilings.narrower(*given, caps.attempt_tokens, caps.task_tokens)
    if cap is not None and cap < SMALL_CAP and asks_for_choices(target):
        found.append(
            f"At most {cap} tokens for multiple choice: a model that thinks first is cut off before it names a letter, and scores near chance. "
            f"Allow {SMALL_CAP} or more."
        )
    return found


def asks_for_choices(target: Target) -> bool:
    kind = (target.impl.grader or {}).get("kind")
    return kind == "multiple_choice" or (not kind and Row.objects.filter(subset=target.subset, kind="multiple_choice").exists())


def mode_of(body: Mapping[str, Any]) -> str:
    """Tells which of the three ways to launch is meant. Errors: Unprocessable."""
    given = [name for name in ("request", "benchmark", "replay") if body.get(name) is not None]
    if len(given) > 1:
        wrongs = [Wrong(f"/{name}", "mode_conflict", "stands beside another way to launch.") for name in given]
        raise Unprocessable(
            "mode_conflict", f"{' and '.join(given)} exclude each other: a launch has one of request, benchmark and replay.", wrongs, fields=given
        )
    if given == ["replay"] and (pins := [name for name in ("subset", "impl") if body.get(name) is not None]):
        wrongs = [Wrong(f"/{name}", "mode_conflict", "is the parent's in a replay.") for name in pins]
        said = f"A replay has its parent's {' and '.join(pins)}: fork it for another scorer, or name a benchmark."
        raise Unprocessable("mode_conflict", said, wrongs, fields=["replay", *pins])
    if not given:
        raise Unprocessable("mode_missing", "A launch has one of request, benchmark and replay.", [Wrong("", "mode_missing", "None of them is there.")])
    return given[0]


def metadata_of(value: Any) -> dict[str, Any]:
    if value is None:
        return {}
    if not isinstance(value, Mapping) or len(value) > 100:
        raise wrong("/metadata", "must be an object of at most 100 fields.")
    for name in value:
        if not name or len(name) > 80:
            raise wrong("/metadata", "has names of 1 to 80 characters.")
    if len(canonical.kept(value)) > 64 * 1024:
        raise wrong("/metadata", "is larger than 64 KiB.", "too_long")
    return dict(value)


def found_by(value: str | int | float | bool) -> str:
    """Writes a value of the metadata as a filter names it: truths as in JSON."""
    return ("true" if value else "false") if isinstance(value, bool) else str(recording.safe(value))[:300]


def limit_of(metadata: Mapping[str, Any]) -> int | None:
    """Reads metadata.limit, which caps tasks. Errors: Unprocessable; 0 is refused, since loaders elsewhere took it for all."""
    value = metadata.get("limit")
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        raise wrong("/metadata/limit", "must be a whole number from 1 on.")
    return value


def trials_of(body: Mapping[str, Any]) -> int | None:
    value = body.get("trials")
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= MOST_TRIALS:
        raise wrong("/trials", f"must be a whole number from 1 to {MOST_TRIALS}.")
    return value


def recipe_trials(subset: Subset, team: str) -> int:
    """Gives how often a task is tried where the launch does not say: as the recipe says, else as the team has it."""
    value = subset.recipe.get("trials")
    return value if isinstance(value, int) and 1 <= value <= MOST_TRIALS else int(teamsettings.value(team, "default_trials"))


def backend_of(caller: Caller, asked: Any) -> str:
    """Finds a backend that an admin set up. Errors: Unprocessable."""
    if asked is None:
        return backends.default_for(caller.team)
    names = sorted({LOCAL, *Backend.objects.values_list("name", flat=True)})
    if asked not in names:
        raise Unprocessable(
            "backend_unknown",
            f"There is no backend {str(asked)[:80]}. There are: {', '.join(names)}.",
            [Wrong("/compute", "backend_unknown", "is none.")],
        )
    return str(asked)


def kept(
    caller: Caller,
    body: Mapping[str, Any],
    target: Target,
    subject: subjects.Subject,
    caps: Limits,
    trials: int,
    metadata: Mapping[str, Any],
    backend: str,
    sweep: str,
) -> Run:
    seed = secrets.randbits(53)
    now = timezone.now()
    launch = {name: value for name, value in body.items() if name != "idempotency_key"}
    if told := warnings_of(target, subject, caps):
        launch["warnings"] = told
    run = Run(
        id=ids.new_id("run"),
        mode=target.mode,
        launch=launch,
        benchmark=target.benchmark,
        subset=target.subset,
        version=target.version,
        impl=target.impl,
        requested_impl=target.requested_impl,
        subject=subject.name[:300],
        sut=subject.said(),
        driver=str(body.get("driver") or "")[:300],
        backend=backend,
        source=DRY if caller.is_dry else body.get("source") or "manual",
        limits=caps.said(),
        trials=trials,
        metadata=dict(metadata),
        tags=tags_of(body.get("tags")),
        hints=body.get("hints"),
        selection=target.selection.said(seed),
        scope=target.selection.scope,
        parent=target.parent,
        sweep=sweep,
        seed=seed,
        priority=priority_of(caller, body.get("priority")),
        visibility=visibility_of(caller, body.get("visibility")),
        owner=caller.owner,
        team=caller.team,
        key_id=caller.key_id,
        total=target.selection.total,
        created_at=now,
    )
    run.fingerprint = fingerprint(run)
    with transaction.atomic():
        run.save(force_insert=True)
        Metadatum.objects.bulk_create(
            [Metadatum(run=run, name=name, value=found_by(value)) for name, value in metadata.items() if isinstance(value, str | int | float | bool)]
        )
        with connection.cursor() as cursor:
            queued = ("RunQueued", {"subject": run.subject, "tasks": run.total})
            recording.tell(cursor, run.pk, [queued, *(("Log", {"message": warning}) for warning in told)])
    run.refresh_from_db(fields=["last_seq", "etag"])
    return run


def priority_of(caller: Caller, asked: Any) -> int:
    """Reads a run's place in the queue, the lowest first. Only who operates the bench goes before others. Errors: Unprocessable, Problem 403."""
    if asked is None:
        return USUAL
    if isinstance(asked, bool) or not isinstance(asked, int) or not 1 <= asked <= LAST:
        raise wrong("/priority", f"must be a whole number from 1 to {LAST}; {USUAL} is usual, lower goes first.")
    if asked < USUAL and not caller.may("operate"):
        raise Problem(403, "not_allowed", f"A priority below {USUAL} needs the scope operate.", required_scope="operate", granted=sorted(caller.scopes))
    return asked


def said_of(body: Mapping[str, Any]) -> None:
    """Looks at what a launch says for whoever authors and waits: kept with the run, whatever becomes of it. Errors: Unprocessable."""
    driver, phases, timeout = body.get("driver"), body.get("phase_models"), body.get("timeout")
    if driver is not None and not (isinstance(driver, str) and 0 < len(driver) <= 300):
        raise wrong("/driver", "must name a model in at most 300 characters.")
    if phases is not None and not (isinstance(phases, Mapping) and set(phases) <= set(PHASES) and all(isinstance(m, str) and m for m in phases.values())):
        raise wrong("/phase_models", f"must name models by phase: {', '.join(PHASES)}.")
    if timeout is not None and (isinstance(timeout, bool) or not isinstance(timeout, int | float) or not isfinite(timeout) or timeout <= 0):
        raise wrong("/timeout", "must be a number of seconds above 0.")
    if body.get("hints") is not None and len(canonical.kept(body["hints"])) > MOST_HINTS:
        raise wrong("/hints", "is larger than 64 KiB.", "too_long")


def visibility_of(caller: Caller, asked: Any) -> str:
    """Reads who may see a run: as asked, else as the team has it. Nothing becomes public before there is anything to see. Errors: Unprocessable."""
    if asked is None:
        return str(teamsettings.value(caller.team, "default_visibility"))
    if asked not in ("private", "team"):
        raise wrong("/visibility", "must be private or team; a run is published once it has ended.")
    return str(asked)


def tags_of(value: Any) -> list[str]:
    if value is None:
        return []
    if not isinstance(value, list) or len(value) > 50 or not all(isinstance(tag, str) and 0 < len(tag) <= 80 for tag in value):
        raise wrong("/tags", "must be a list of at most 50 texts of 1 to 80 characters.")
    return list(dict.fromkeys(value))


def fingerprint(run: Run) -> str:
    """Makes one digest of all that a run's result depends on but chance: equal ones are comparable."""
    needed = needs.of(run.impl, run.subset_id, run.version)
    return canonical.digest(
        {
            **({"judges": needs.judges(run.impl, load_snapshot())} if needed.judge else {}),
            "selection": run.selection["digest"],
            "impl": run.impl.digest,
            "sut": run.sut,
            "trials": run.trials,
            "harness": run.harness,
            "backend": run.backend,
            "graders": 1,
            **({"dry": True} if run.is_dry else {}),
        }
    )
