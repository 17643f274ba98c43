"""The small demo model: a real one that this server fetches and serves by itself, once an operator asks for it and for as long as that holds.

    switch_on ─▶ a file in the data folder ─▶ the supervisor starts `manage.py demo` ─▶ download, model server, endpoint `demo` with its models
    switch_off ─▶ the file goes ─▶ the supervisor ends it; its models are retired, and come back with the next switch_on

Files, not rows: whoever else shares the database has another data folder, and cannot serve what lies in this one.

DemoTaken   an endpoint of this name is somebody else's
"""

from __future__ import annotations

import json
import os
import shutil
from dataclasses import asdict, dataclass, replace
from datetime import datetime
from pathlib import Path
from typing import Any

from django.conf import settings
from django.db import transaction
from django.utils import timezone

from access import audit
from catalog import editing, names, served
from catalog.models import Endpoint, Model

ENDPOINT = "demo"
# What marks the endpoint as this one, whatever its address is today.
PROVIDER = "demo"
SERVED_NAME = "smollm2-135m-instruct"
TITLE = "SmolLM2-135M-Instruct"
SWITCHED_OFF = "The demo model is switched off."

# One model under four names. How it samples is all that differs.
SEATS: dict[str, dict[str, Any]] = {
    "demo-careful": {"temperature": 0.1, "top_p": 0.9, "seed": 1},
    "demo-plain": {"temperature": 0.6, "top_p": 0.95, "seed": 2},
    "demo-bold": {"temperature": 1.1, "top_p": 0.98, "seed": 3},
    "demo-wild": {"temperature": 1.5, "min_p": 0.05, "seed": 4},
}
FACTS = {"context_window": 2048, "output_limit": 512, "input_usd_per_mtok": "0", "output_usd_per_mtok": "0"}


class DemoTaken(Exception):
    code = "in_use"


@dataclass(frozen=True, slots=True)
class Switch:
    """Who switched it on, and when."""

    by: str
    at: str


@dataclass(frozen=True, slots=True)
class State:
    """How far it is.

    Shape: `stage` is off, waiting (for the supervisor), downloading, starting, running or failed; `message` says why it failed, or what is being done.
    Units: bytes of the download, both 0 where nothing is left to fetch.
    """

    stage: str
    done_bytes: int = 0
    total_bytes: int = 0
    message: str = ""
    base_url: str = ""
    pid: int = 0


@dataclass(frozen=True, slots=True)
class Shown:
    """The demo model as a page shows it. Shape: `downloaded` tells that its files are here; `endpoint` is its name, `models` its aliases that play."""

    on: bool
    stage: str
    message: str
    done_bytes: int
    total_bytes: int
    downloaded: bool
    endpoint: str
    models: tuple[str, ...]
    by: str
    since: datetime | None


# ------------------------------------------------------------------ files


def folder() -> Path:
    return Path(settings.HOME) / "demo"


def switch_file() -> Path:
    return folder() / "switch.json"


def state_file() -> Path:
    return folder() / "state.json"


def model_file() -> Path:
    return folder() / "model.gguf"


def is_downloaded() -> bool:
    return model_file().is_file() and any(folder().glob("xllamacpp-*"))


def is_on() -> bool:
    """Whether somebody switched it on: one look at a file, which the supervisor takes four times a second."""
    return switch_file().exists()


def switch() -> Switch | None:
    told = read(switch_file())
    return Switch(str(told.get("by", "")), str(told.get("at", ""))) if told is not None else None


def read(path: Path) -> dict[str, Any] | None:
    try:
        told = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    return told if isinstance(told, dict) else None


def write(path: Path, what: dict[str, Any]) -> None:
    """Writes the file whole or not at all."""
    folder().mkdir(mode=0o700, exist_ok=True)
    beside = path.with_suffix(f".{os.getpid()}")
    beside.write_text(json.dumps(what), encoding="utf-8")
    beside.replace(path)


def tell(state: State) -> None:
    """Says how far this process is with it."""
    write(state_file(), asdict(replace(state, pid=os.getpid())))


def fail(message: str, actor: str) -> None:
    """Gives up until somebody asks again: a server that cannot fetch it would try for ever. Switched off meanwhile, it is no matter any more."""
    if is_on():
        # The switch last: once it is gone the supervisor ends who says this.
        with transaction.atomic():
            retire(actor)
        tell(State("failed", message=message[:500]))
        switch_file().unlink(missing_ok=True)


def last() -> State:
    """What was told last, by whatever process."""
    told = read(state_file()) or {}
    return State(**{"stage": "off", **{name: told[name] for name in State.__dataclass_fields__ if name in told}})


def state() -> State:
    """Reads how far it is. What a process wrote that is no more counts as not begun."""
    found = last()
    if not is_on():
        return found if found.stage == "failed" else State("off")
    return found if found.stage in ("downloading", "starting", "running") and is_alive(found.pid) else State("waiting")


def is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return pid > 0


def shown() -> Shown:
    """Shows it. Two queries at most."""
    now, on = state(), switch()
    models = Model.objects.filter(endpoint__name=ENDPOINT, endpoint__provider=PROVIDER, status=Model.Status.ACTIVE)
    # Off, its models are retired; where they are not, its server stops just now.
    aliases = tuple(models.order_by("pk").values_list("alias", flat=True)) if now.stage == "running" else ()
    return Shown(
        on is not None,
        now.stage,
        now.message,
        now.done_bytes,
        now.total_bytes,
        is_downloaded(),
        ENDPOINT if aliases else "",
        aliases,
        on.by if on else "",
        datetime.fromisoformat(on.at) if on and on.at else None,
    )


# ------------------------------------------------------------------ on and off


def switch_on(actor: str) -> None:
    """Asks for it. Its models come back where it had some. Errors: DemoTaken."""
    refuse_taken()
    if is_on():
        return
    with transaction.atomic():
        audit.record(actor, "demo.start", ENDPOINT)
        restore(actor)
    write(switch_file(), {"by": actor, "at": timezone.now().isoformat()})


def switch_off(actor: str, with_download: bool = False) -> None:
    """Ends it, and takes its models out of play; `with_download` frees the disk of its files, too."""
    was_on = is_on()
    switch_file().unlink(missing_ok=True)
    if with_download and folder().exists():
        # What still runs has them open, and goes on until it is ended.
        shutil.rmtree(folder(), ignore_errors=True)
    elif not was_on:
        state_file().unlink(missing_ok=True)
    with transaction.atomic():
        if was_on or with_download:
            audit.record(actor, "demo.stop", ENDPOINT, {"download": [None, "deleted"]} if with_download else None)
        retire(actor)


def of_the_demo() -> Any:
    return Model.objects.filter(endpoint__name=ENDPOINT, endpoint__provider=PROVIDER)


def retire(actor: str) -> None:
    for row in of_the_demo().filter(status=Model.Status.ACTIVE):
        editing.retire_model(row.alias, SWITCHED_OFF, actor)


def restore(actor: str) -> None:
    """Brings back those of its models that its being switched off took out of play, and no others."""
    for row in of_the_demo().filter(status=Model.Status.RETIRED, status_reason=SWITCHED_OFF):
        editing.restore_model(row.alias, "The demo model is switched on.", actor)


def refuse_taken() -> None:
    row = Endpoint.objects.filter(name=ENDPOINT).first()
    if row is not None and row.provider != PROVIDER:
        raise DemoTaken(
            f"There is an endpoint {ENDPOINT} that is not the demo model's ({row.base_url}). Delete it, or add it under another name, and try again."
        )


def join(base_url: str, actor: str) -> None:
    """Puts the endpoint on the bench at the address that the model is served at now, with its models where it has none. Errors: DemoTaken."""
    refuse_taken()
    with transaction.atomic():
        row = Endpoint.objects.filter(name=ENDPOINT).first()
        if row is None:
            editing.make_endpoint({"name": ENDPOINT, "kind": "openai", "base_url": base_url, "provider": PROVIDER, "limits": {"parallel": 4}}, "", actor)
        elif row.base_url != base_url:
            editing.change_endpoint(ENDPOINT, {"base_url": base_url}, None, actor)
        if not of_the_demo().exists():
            taken = {names.folded(alias) for alias in Model.objects.values_list("alias", flat=True)}
            for name, sampling in SEATS.items():
                alias = served.free_alias(name, ENDPOINT, taken)
                quirks = {"defaults": {**sampling, "max_tokens": 160}}
                editing.make_model({"alias": alias, "endpoint": ENDPOINT, "served_name": SERVED_NAME, "quirks": quirks, "facts": FACTS}, actor)
        restore(actor)
