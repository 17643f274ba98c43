"""What a kind of task is: how its rows look, how a model is asked, and how the answer is graded."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from suite.grading.outcomes import Grade


class RowError(ValueError):
    """A row that its kind cannot use. `pointer` leads to the value in the row, as a JSON pointer."""

    def __init__(self, pointer: str, message: str) -> None:
        super().__init__(message)
        self.pointer = pointer


@dataclass(frozen=True, slots=True)
class Call:
    """One tool call that a model made. `arguments` is JSON text as it came."""

    name: str
    arguments: str


@dataclass(frozen=True, slots=True)
class Output:
    """What a model said: its visible text, without what it thought, and its tool calls."""

    text: str
    calls: tuple[Call, ...] = ()


@dataclass(frozen=True, slots=True)
class Question:
    """How a model is asked: chat messages as any chat API takes them, and tools in OpenAI's shape."""

    messages: Sequence[Mapping[str, Any]]
    tools: Sequence[Mapping[str, Any]] = ()
    response_format: Mapping[str, Any] | None = None


@dataclass(frozen=True, slots=True)
class Options:
    """What a grader may be told besides the row. `decimal` is the sign before decimals where both readings of a number are possible: "." or ","."""

    decimal: str = ""
    ignore_case: bool = True
    tolerance: float = 1e-9
    threshold: float = 1.0
    more: Mapping[str, Any] = field(default_factory=dict)


def options_of(grader: Mapping[str, Any]) -> Options:
    """Reads what a subset's grader says besides its kind."""
    return Options(
        decimal=str(grader.get("decimal", "")),
        ignore_case=bool(grader.get("ignore_case", True)),
        tolerance=float(grader.get("tolerance", 1e-9)),
        threshold=float(grader.get("pass_threshold", 1.0)),
        more=grader,
    )


class Kind(Protocol):
    """Shape: `needs_sandbox` and `needs_judge` say that grading takes more than the answer: it then is a `BoxedKind`, or a `JudgedKind`."""

    name: str
    needs_sandbox: bool = False
    needs_judge: bool = False

    def look_at(self, grader: Mapping[str, Any]) -> None:
        """Looks whether a subset's grader says what this kind needs. Errors: RowError, its pointer into the grader."""
        return None

    def check(self, row_input: Any, expected: Any) -> None:
        """Looks whether a row can be used. Errors: RowError."""
        ...

    def ask(self, row_input: Any) -> Question: ...

    def grade(self, output: Output, row_input: Any, expected: Any, options: Options) -> Grade: ...

    def oracle(self, row_input: Any, expected: Any) -> Output:
        """Gives an answer that must be right: what admission tries first."""
        ...


@dataclass(frozen=True, slots=True)
class Program:
    """Code that a model wrote, and the tests that it has to stand. Shape: `entry_point` is the name that tests get as `candidate`, "" for none."""

    code: str
    tests: str
    entry_point: str = ""


class BoxedKind(Kind, Protocol):
    """A kind whose answers are run."""

    def program(self, output: Output, row_input: Any, expected: Any) -> Program | Grade:
        """Takes out of an answer what is to be run; a grade where nothing is."""
        ...


class JudgedKind(Kind, Protocol):
    """A kind whose answers other models grade."""

    def brief(self, answer: str, row_input: Any, expected: Any, grader: Mapping[str, Any], sign: str) -> Question:
        """Writes what a judge is asked. Shape: `sign` is this call's own; a verdict that does not carry it is none."""
        ...


def text_at(value: Any, name: str, pointer: str) -> str:
    """Reads a text that must be there. Errors: RowError."""
    if not isinstance(value, Mapping):
        raise RowError(pointer, "must be an object.")
    found = value.get(name)
    if not isinstance(found, str) or not found.strip():
        raise RowError(f"{pointer}/{name}", "must be a text that is not empty.")
    return found


def canary_of(value: Any) -> str:
    """Gives the line that marks a row as benchmark data, for who cleans training data by it; "" where the row has none."""
    found = value.get("canary") if isinstance(value, Mapping) else None
    return f"[{found}]\n\n" if isinstance(found, str) and found else ""
