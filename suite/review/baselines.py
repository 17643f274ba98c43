"""What answers that know nothing would earn of a set of tasks: always the same, the first line, the longest line, any line. Pure.

A set by which such an answer scores well measures nothing. The oracle must earn everything, or the grader is wrong.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from suite.grading import every
from suite.grading.contract import Options, Output
from suite.grading.outcomes import Outcome

Rows = Sequence[Mapping[str, Any]]
# What a heuristic may find of the faults before a set is refused.
MOST = 0.10


def passed(kind: str, rows: Rows, answer: Callable[[Mapping[str, Any]], str]) -> float:
    """Gives the share of rows that an answer passes, as the grader itself sees it."""
    if not rows:
        return 0.0
    grader = every()[kind]
    found = [grader.grade(Output(answer(row)), row["input"], row["expected"], Options()).outcome == Outcome.PASSED for row in rows]
    return sum(found) / len(found)


def oracle(kind: str, rows: Rows) -> float:
    return passed(kind, rows, lambda row: every()[kind].oracle(row["input"], row["expected"]).text)


def lines_of(row: Mapping[str, Any]) -> list[str]:
    return str(row["input"]["code"]).splitlines()


def longest_line(row: Mapping[str, Any]) -> str:
    lines = lines_of(row)
    return f"ANSWER: {max(range(len(lines)), key=lambda i: len(lines[i].strip())) + 1}"


def of_review(rows: Rows) -> dict[str, Any]:
    """Works out the figures of rows of the kind review_line."""
    faulty = [row for row in rows if row["expected"]["lines"]]
    clean = [row for row in rows if not row["expected"]["lines"]]

    def both(answer: Callable[[Mapping[str, Any]], str]) -> dict[str, float]:
        return {"faulty": round(passed("review_line", faulty, answer), 4), "clean": round(passed("review_line", clean, answer), 4)}

    any_line = sum(len(row["expected"]["lines"]) / len(lines_of(row)) for row in faulty) / len(faulty) if faulty else 0.0
    return {
        "rows": len(rows),
        "faulty": len(faulty),
        "clean": len(clean),
        "oracle": round(oracle("review_line", rows), 4),
        "always_none": both(lambda row: "ANSWER: NONE"),
        "any_line": {"faulty": round(any_line, 4), "clean": 0.0},
        "first_line": both(lambda row: "ANSWER: 1"),
        "middle_line": both(lambda row: f"ANSWER: {(len(lines_of(row)) + 1) // 2}"),
        "longest_line": both(longest_line),
        "silent": both(lambda row: ""),
        "lines": {"fewest": min(map(len, map(lines_of, rows))), "most": max(map(len, map(lines_of, rows)))} if rows else {},
    }


def of_claims(rows: Rows) -> dict[str, Any]:
    """Works out the figures of rows of the kind claim; `by_shape` is the most that somebody earns who knows of each form of sentence what it mostly is."""
    true = sum(row["expected"]["value"] for row in rows)
    shapes: dict[str, list[bool]] = {}
    for row in rows:
        shapes.setdefault(str((row.get("source") or {}).get("operator", "")), []).append(row["expected"]["value"])
    by_shape = sum(max(sum(values), len(values) - sum(values)) for values in shapes.values()) / len(rows) if rows else 0.0
    lengths = sorted(len(row["input"]["claim"]) for row in rows)
    middle = lengths[len(lengths) // 2] if lengths else 0
    by_length = sum((len(row["input"]["claim"]) > middle) == row["expected"]["value"] for row in rows) / len(rows) if rows else 0.0
    return {
        "rows": len(rows),
        "true": true,
        "oracle": round(oracle("claim", rows), 4),
        "always_true": round(passed("claim", rows, lambda row: "ANSWER: TRUE"), 4),
        "always_false": round(passed("claim", rows, lambda row: "ANSWER: FALSE"), 4),
        "by_shape": round(by_shape, 4),
        "by_length": round(max(by_length, 1 - by_length), 4),
        "silent": round(passed("claim", rows, lambda row: ""), 4),
    }


def objections(figures: Mapping[str, Any]) -> list[str]:
    """Says what keeps a set from being used; [] where nothing does."""
    found = []
    if figures.get("rows") and figures["oracle"] != 1.0:
        found.append(f"the oracle earns {figures['oracle']}")
    for name in ("any_line", "first_line", "middle_line", "longest_line"):
        if name in figures and figures[name]["faulty"] > (2 * MOST if name == "any_line" else MOST):
            found.append(f"{name} finds {figures[name]['faulty']:.0%} of the faults")
    if (
        "always_none" in figures
        and (figures["always_none"]["faulty"], figures["always_none"]["clean"]) != (0.0, 1.0)
        and figures["faulty"]
        and figures["clean"]
    ):
        found.append("always NONE is not nothing on faulty code and all on clean code")
    if "always_true" in figures and figures["rows"] and abs(figures["always_true"] - 0.5) > 0.1:
        found.append(f"{figures['always_true']:.0%} of the claims are true")
    if "by_shape" in figures and figures["rows"] and figures["by_shape"] > 0.6:
        found.append(f"the form of the sentence alone earns {figures['by_shape']:.0%}")
    return found


def mix(rows: Rows, name: str) -> dict[str, int]:
    """Counts the rows of pairs by one field of their source, a pair once."""
    found: dict[str, set[str]] = {}
    for row in rows:
        source = row.get("source") or {}
        found.setdefault(str(source.get(name, "")), set()).add(str(source.get("pair", row["task_id"])))
    return {value: len(ids) for value, ids in sorted(found.items(), key=lambda item: (-len(item[1]), item[0]))}


def together(sets: Iterable[Mapping[str, Any]]) -> list[str]:
    return [said for figures in sets for said in objections(figures)]
