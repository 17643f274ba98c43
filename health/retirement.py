"""When a model is suspected, and when it is retired: rules over what one run saw of an endpoint's models. Pure.

    a run ─▶ judge ─▶ the connection is at fault: nobody is blamed
                 ├──▶ suspects, each asked once more some minutes later ─▶ confirm ─▶ retire | clear | wait
                 └──▶ cleared: it answers again

One error never retires, and an outage of the endpoint never does. A refused request, key or limit says nothing of the model.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from health.faults import CONNECTION, FAILED, KEY, MODEL, OK, SERVER

# How an endpoint's own list did: it came, there is none to be had, or what its failure says of the connection.
LIST_OK, LIST_NONE = "ok", "none"
RETIRE, CLEAR, WAIT = "retire", "clear", "wait"
UNLISTED, LIVE = "unlisted", "live"


@dataclass(frozen=True, slots=True)
class Seen:
    """What one run saw of one model.

    Shape: `outcome` is empty where it was not asked; `failed_in_row` counts days, this run's included, on which its probe failed without a good answer
    since; `live_fault` is that of its newest live call, empty where it answered.
    """

    alias: str
    outcome: str = ""
    fault: str = ""
    failed_in_row: int = 0
    is_unlisted: bool = False
    live_fault: str = ""
    is_suspect: bool = False

    @property
    def is_bad(self) -> bool:
        return self.outcome == FAILED or self.fault == KEY


@dataclass(frozen=True, slots=True)
class Suspicion:
    """Shape: `why` is model, server, unlisted or live."""

    alias: str
    why: str


@dataclass(frozen=True, slots=True)
class Round:
    """What a run comes to. Shape: `connection` says why nobody is blamed, empty where the connection is well."""

    connection: str = ""
    suspects: tuple[Suspicion, ...] = ()
    cleared: tuple[str, ...] = ()


def judge(seen: Sequence[Seen], list_state: str, failed_days: int) -> Round:
    """Judges one endpoint's models together. Shape: `list_state` is ok, none, key or connection. Units: `failed_days` that a silent model is borne with."""
    cleared = tuple(s.alias for s in seen if s.is_suspect and s.outcome == OK)
    if why := connection_fault(seen, list_state):
        return Round(why, (), cleared)
    missing = [s for s in seen if s.is_unlisted]
    # A list that suddenly lacks most of what it had has changed its spelling, or is another key's.
    list_counts = not (len(seen) >= 2 and len(missing) * 2 > len(seen))
    found = [Suspicion(s.alias, why) for s in seen if (why := suspicion(s, seen, list_counts, list_state, failed_days))]
    return Round("", tuple(found), cleared)


def connection_fault(seen: Sequence[Seen], list_state: str) -> str:
    """Why the connection is at fault rather than its models; empty where it is not."""
    asked = [s for s in seen if s.outcome]
    bad = [s for s in asked if s.is_bad]
    if any(s.outcome == OK for s in asked):
        return f"{len(bad)} of its {len(asked)} models fail at once." if len(asked) >= 2 and len(bad) * 2 > len(asked) else ""
    if list_state == KEY or any(s.fault == KEY for s in bad):
        return "It refuses the key, or credit is used up."
    if list_state == CONNECTION or any(s.fault == CONNECTION for s in bad):
        return "Nothing there answers as an API."
    return f"{len(bad)} of its {len(asked)} models fail at once." if len(asked) >= 2 and len(bad) * 2 > len(asked) else ""


def suspicion(one: Seen, seen: Sequence[Seen], list_counts: bool, list_state: str, failed_days: int) -> str:
    """Why one model is suspected; empty where it is not."""
    if one.outcome == OK:
        return ""
    if one.outcome == FAILED and one.fault == MODEL:
        return MODEL
    if one.live_fault == MODEL:
        return LIVE
    if one.is_unlisted and list_counts:
        return UNLISTED
    others = [s for s in seen if s.alias != one.alias and s.outcome]
    is_alone = not any(s.is_bad for s in others)
    endpoint_is_up = list_state == LIST_OK or any(s.outcome == OK for s in others)
    if one.outcome == FAILED and one.failed_in_row >= failed_days and is_alone and endpoint_is_up:
        return SERVER
    return ""


@dataclass(frozen=True, slots=True)
class Second:
    """What the confirming call saw. Shape: `siblings_ok` and `siblings_bad` count the endpoint's other models by their newest probe."""

    why: str
    outcome: str
    fault: str
    list_state: str
    siblings_ok: int = 0
    siblings_bad: int = 0


def confirm(second: Second) -> str:
    """Decides after the confirming call: retire, clear or wait. What waits stays a suspect, and the next run asks again."""
    if second.outcome == OK:
        return CLEAR
    if second.outcome != FAILED or second.list_state in (KEY, CONNECTION):
        return WAIT
    siblings = second.siblings_ok + second.siblings_bad
    # The model itself counts among those that fail at once.
    if siblings and (second.siblings_bad + 1) * 2 > siblings + 1:
        return WAIT
    if second.fault == MODEL:
        return RETIRE
    is_up = second.list_state == LIST_OK or second.siblings_ok > 0
    if second.fault == SERVER and second.why in (SERVER, UNLISTED) and second.siblings_bad == 0 and is_up:
        return RETIRE
    return WAIT
