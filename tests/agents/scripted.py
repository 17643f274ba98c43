"""Two members that an agent's task needs: the first calls a tool, answers, and breaks down on the second turn; the second takes over.

They look at what they are sent, not at how often they were asked, since agents also ask for titles and the like.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from tests.fake import reply, status
from tests.fake.script import Answer, Call, Step
from tests.live import Bench

FIRST_TASK, SECOND_TASK = "Find out the first number.", "Now find out the second number."
# A shell works the numbers out, so that they stand in a conversation only once the tool has run.
FIRST_COMMAND, FIRST_SAID = "echo first-$((40+2)) | tee first.txt", "first-42"
SECOND_COMMAND, SECOND_SAID = "echo second-$((50+3)) | tee second.txt", "second-53"
FACTS = {"tools": True, "vision": True, "context_window": 200_000}
LONGEST_S = 240


@dataclass(frozen=True, slots=True)
class Tool:
    """How an agent calls its shell. Shape: `names` in order of preference; `arguments` makes the JSON text of a call."""

    names: tuple[str, ...]
    arguments: Any

    def call(self, number: int, offered: Sequence[str], command: str) -> tuple[str, str, str]:
        name = next((n for n in self.names if n in offered), None)
        assert name, f"none of {self.names} is among the tools offered: {offered}"
        return f"call_{number}", name, self.arguments(command)


def offered(call: Call) -> list[str]:
    """The tools of a request, in any of the formats that the fake provider speaks."""
    found = []
    for tool in call.json.get("tools") or []:
        declared = tool.get("functionDeclarations") or [tool.get("function") or tool]
        found += [d["name"] for d in declared if "name" in d]
    return found


def first_member(tool: Tool) -> Answer:
    def play(call: Call) -> list[Step]:
        body, names = call.body.decode(), offered(call)
        if not names:
            return reply("Numbers").steps(call)
        if FIRST_SAID not in body:
            return reply("", reasoning="The shell knows.", tools=[tool.call(1, names, FIRST_COMMAND)]).steps(call)
        if SECOND_TASK not in body:
            return reply(["The first number ", "is found."]).steps(call)
        return status(503, "overloaded").steps(call)

    return Answer(play)


def second_member(tool: Tool) -> Answer:
    def play(call: Call) -> list[Step]:
        body, names = call.body.decode(), offered(call)
        if not names:
            return reply("Numbers").steps(call)
        if SECOND_SAID not in body:
            return reply("", tools=[tool.call(2, names, SECOND_COMMAND)]).steps(call)
        return reply(["The second number ", "is found."]).steps(call)

    return Answer(play)


@dataclass(frozen=True, slots=True)
class Stage:
    """A collection in route mode with these two, and a key for it. Shape: `first` and `second` are aliases."""

    bench: Bench
    first: str
    second: str
    model: str
    key: str


def stage(bench: Bench, tool: Tool, kinds: tuple[str, str]) -> Stage:
    """Seats the two members behind endpoints of these kinds."""
    aliases = []
    for name, kind, script in zip(("first", "second"), kinds, (first_member(tool), second_member(tool)), strict=True):
        endpoint = bench.endpoint(name, bench.fake.root, kind=kind)
        aliases.append(bench.model(name, script, endpoint=endpoint, facts=FACTS))
    collection = bench.collection(aliases)
    return Stage(bench, aliases[0], aliases[1], f"{collection}:route", bench.key())


def check_failover(stage: Stage, is_thinking_marked: bool = True) -> None:
    """The first member broke down on the second turn only, and the second went on from the whole conversation.

    Shape: `is_thinking_marked` is false for a client that sends thinking back as if the model had said it.
    """
    fake, live = stage.bench.fake, stage.bench.live
    mine = [c for c in fake.calls_to(stage.first) if offered(c)]
    theirs = [c for c in fake.calls_to(stage.second) if offered(c)]
    assert len(mine) == 3, "a tool call, an answer, a breakdown: nothing is sent twice"
    assert len(theirs) == 2, "a tool call and an answer, without a look at the member that rests"
    assert all(c.stream for c in mine + theirs)
    assert FIRST_SAID in theirs[0].body.decode(), "what the first member's tool said"
    assert not (is_thinking_marked and "The shell knows." in theirs[0].body.decode()), "another model's thinking stays at home"
    rows = [r for alias in (stage.first, stage.second) for r in live.rows("health.Attempt", model=alias)]
    said = [(r["model"], r["status"]) for r in sorted(rows, key=lambda r: str(r["id"]))]
    assert said.count((stage.first, "error")) == 1
    assert said.count((stage.second, "ok")) >= 2
