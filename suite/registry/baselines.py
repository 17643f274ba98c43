"""How a benchmark answers to those who know everything, nothing, or only one word: what it must tell apart before it may tell models apart. Pure.

oracle     the right answer passes everywhere: else the grader or a row is wrong
empty      saying nothing passes nowhere
constant   no single answer passes most tasks: else whoever always says it leads
random     drawing lots does about as well as chance
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from suite import grading
from suite.grading.contract import Kind, Options, Output
from suite.grading.outcomes import Grade, Outcome

# With fewer tasks one answer that fits most of them, or a lucky draw, is no surprise.
FEWEST = 20
DRAWS, COMMONEST, MOST_NAMED = 3, 5, 20
# So much better than chance may lots or one word do.
ABOVE_CHANCE, LEAST_LIMIT = 0.25, 0.5
WORDS = ("ANSWER: A", "ANSWER: B", "ANSWER: TRUE", "ANSWER: FALSE", "ANSWER: NONE", "ANSWER: 0", "ANSWER: 1", "{}", "[]", "I do not know.")


@dataclass(frozen=True, slots=True)
class Task:
    """One row with its kind and the grader's options, ready to be graded."""

    task_id: str
    kind: str
    input: Any
    expected: Any


@dataclass(frozen=True, slots=True)
class Check:
    """Shape: `ok` None where it could not be told; `rate` is the share that passed, `limit` what it may be; `tasks` are some that are to blame."""

    name: str
    ok: bool | None
    said: str
    rate: float | None = None
    limit: float | None = None
    of: int = 0
    tasks: tuple[str, ...] = ()

    def told(self) -> dict[str, Any]:
        return asdict(self) | {"tasks": list(self.tasks)}


def checks(tasks: Sequence[Task], options: Options, seed: int = 0) -> list[Check]:
    """Tries all four on rows whose kinds need neither a sandbox nor a judge; the others cannot be told without asking somebody."""
    kinds = grading.every()
    plain = [t for t in tasks if (kind := kinds.get(t.kind)) is not None and not kind.needs_sandbox and not kind.needs_judge]
    if not plain:
        said = "Grading these rows takes a sandbox or a judge, so it is not tried before it is published."
        return [Check(name, None, said) for name in ("oracle", "empty", "constant", "random")]
    known = [(task, answer) for task in plain if not is_nothing(answer := kinds[task.kind].oracle(task.input, task.expected))]
    limit = max(LEAST_LIMIT, sum(chance(t) for t in plain) / len(plain) + ABOVE_CHANCE)
    return [oracle(known, options), empty(known, options), constant(plain, known, options, limit), lots(plain, known, options, limit, seed)]


def oracle(known: Sequence[tuple[Task, Output]], options: Options) -> Check:
    if not known:
        return Check("oracle", None, "No row says what is right.")
    wrong = [task.task_id for task, answer in known if not passes(task, answer, options)]
    rate = 1 - len(wrong) / len(known)
    said = "The right answer passes everywhere." if not wrong else f"The right answer itself does not pass {len(wrong)} of {len(known)} tasks."
    return Check("oracle", not wrong, said, rate, 1.0, len(known), tuple(wrong[:MOST_NAMED]))


def empty(known: Sequence[tuple[Task, Output]], options: Options) -> Check:
    """Rows that want nothing to be said, such as no call, are not asked."""
    if not known:
        return Check("empty", None, "No row says what is right.")
    through = [task.task_id for task, _ in known if passes(task, Output(""), options)]
    said = "An empty answer passes nowhere." if not through else f"An empty answer passes {len(through)} of {len(known)} tasks."
    return Check("empty", not through, said, len(through) / len(known), 0.0, len(known), tuple(through[:MOST_NAMED]))


def constant(tasks: Sequence[Task], known: Sequence[tuple[Task, Output]], options: Options, limit: float) -> Check:
    common = [answer for answer, _ in Counter(answer for _, answer in known).most_common(COMMONEST)]
    rates = {answer: sum(passes(task, answer, options) for task in tasks) / len(tasks) for answer in [*common, *(Output(word) for word in WORDS)]}
    best = max(rates, key=lambda answer: rates[answer])
    shown = best.text or ", ".join(call.name for call in best.calls)
    said = f"Always saying {shown[:80]!r} passes {rates[best]:.0%}."
    return judged("constant", rates[best], limit, len(tasks), said)


def lots(tasks: Sequence[Task], known: Sequence[tuple[Task, Output]], options: Options, limit: float, seed: int) -> Check:
    """Draws an answer from those there are: a letter, true or false, or the right answer of another task."""
    drawn = random.Random(seed)
    pool = [answer for _, answer in known]
    if not pool:
        return Check("random", None, "No row says what is right.")
    hits = sum(passes(task, draw(task, pool, drawn), options) for task in tasks for _ in range(DRAWS))
    rate = hits / (len(tasks) * DRAWS)
    return judged("random", rate, limit, len(tasks), f"Drawing lots passes {rate:.0%}.")


def judged(name: str, rate: float, limit: float, of: int, said: str) -> Check:
    if of < FEWEST:
        return Check(name, None, f"{said} With {of} tasks that tells nothing.", rate, limit, of)
    ok = rate <= limit
    return Check(name, ok, said if ok else f"{said} More than {limit:.0%} is too much to tell models apart.", rate, limit, of)


def draw(task: Task, pool: Sequence[Output], drawn: random.Random) -> Output:
    if task.kind == "multiple_choice":
        return Output(f"ANSWER: {chr(65 + drawn.randrange(len(task.input['choices'])))}")
    if task.kind == "claim":
        return Output(f"ANSWER: {drawn.choice(('TRUE', 'FALSE'))}")
    return drawn.choice(pool)


def chance(task: Task) -> float:
    """Gives the share that lots would pass of such a task, as far as it is known beforehand."""
    if task.kind == "multiple_choice":
        return 1 / max(1, len(task.input["choices"]))
    return 0.5 if task.kind in ("claim", "review_line") else 0.0


def passes(task: Task, output: Output, options: Options) -> bool:
    grade = graded(grading.every()[task.kind], task, output, options)
    return grade.outcome is Outcome.PASSED


def graded(kind: Kind, task: Task, output: Output, options: Options) -> Grade:
    try:
        return kind.grade(output, task.input, task.expected, options)
    except Exception as error:  # a grader's fault passes nothing, and shows in what the oracle comes to
        return Grade(Outcome.JUDGE_FAILED, None, reason="grader_raised", explanation=f"{type(error).__name__}: {str(error)[:200]}")


def is_nothing(answer: Output) -> bool:
    return not answer.text.strip() and not answer.calls


def verdict(found: Sequence[Check]) -> str:
    """Sums up: failed by one, unchecked where none could be told, else admitted."""
    if any(check.ok is False for check in found):
        return "failed"
    return "admitted" if any(check.ok for check in found) else "unchecked"
