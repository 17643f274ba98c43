"""Rows as authors send them: read strictly, all or none, each wrong one named by its index."""

from __future__ import annotations

import json
import unicodedata
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from suite import canonical
from suite.api.problems import Problem, Unprocessable, Wrong
from suite.grading import every
from suite.grading.contract import RowError

FIELDS = ("task_id", "input", "expected", "source", "kind", "cluster")
SOURCE_FIELDS = (
    "benchmark", "subset", "task_id", "repo", "cluster", "license", "licence", "date", "url", "commit", "note",
    "path", "origin", "pair", "operator", "span", "seed", "verified",  # of review tasks: where they came from, their other half, how they were made and proved
)  # fmt: skip
MOST_ROWS = 1000
MOST_BYTES = 64 * 1024 * 1024
LONGEST_ROW = 4 * 1024 * 1024
LONGEST_ID = 255
MOST_WRONG = 100


@dataclass(frozen=True, slots=True)
class NewRow:
    """Shape: `body` is what is kept, JSON in ASCII; `digest` is of the row as its author meant it."""

    task_id: str
    kind: str
    cluster: str
    digest: str
    body: str


class Lines(Protocol):
    def readline(self, size: int = ..., /) -> bytes: ...


def read(tasks: Any, grader: Mapping[str, Any] | None, most: int = MOST_ROWS, at: str = "/tasks") -> list[NewRow]:
    """Reads rows of a body. Errors: Unprocessable naming every row that is wrong; then none is taken."""
    if not isinstance(tasks, list):
        raise Unprocessable("invalid_request", f"{at[1:]} must be a list of rows.", [Wrong(at, "invalid", "must be a list.")])
    if len(tasks) > most:
        raise Unprocessable(
            "too_many_tasks",
            f"A request takes at most {most} rows; append the rest, or send them as NDJSON.",
            [Wrong(at, "too_many", f"has {len(tasks)}.")],
            max=most,
        )
    return checked(enumerate(tasks), grader, at)


def read_lines(stream: Lines, grader: Mapping[str, Any] | None) -> list[NewRow]:
    """Reads rows from NDJSON, a line each, as they come. Errors: Problem 413 for too much of it, Unprocessable for what is no row."""
    return checked(parsed_lines(stream), grader, "")


def parsed_lines(stream: Lines) -> Iterator[tuple[int, Any]]:
    total = index = 0
    while line := stream.readline(LONGEST_ROW + 1):
        total += len(line)
        if len(line) > LONGEST_ROW:
            raise Problem(413, "body_too_large", f"Row {index} is longer than {LONGEST_ROW // 1024 // 1024} MiB.")
        if total > MOST_BYTES:
            raise Problem(413, "body_too_large", f"The rows are more than {MOST_BYTES // 1024 // 1024} MiB together. Append them in parts.")
        if not line.strip():
            continue
        try:
            value = json.loads(line, parse_constant=refuse, object_pairs_hook=once)
        except (ValueError, RecursionError) as error:
            raise Unprocessable("invalid_row", f"Line {index + 1} is no JSON: {error}", [Wrong(f"/{index}", "invalid_json", str(error)[:200])]) from None
        yield index, value
        index += 1


def refuse(name: str) -> Any:
    raise ValueError(f"{name} is no JSON.")


def once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Refuses an object that says one name twice: which of them was meant, nobody knows."""
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError(f"an object says {next(name for i, (name, _) in enumerate(pairs) if name in [n for n, _ in pairs[:i]])[:60]!r} twice.")
    return found


def checked(rows: Iterable[tuple[int, Any]], grader: Mapping[str, Any] | None, at: str) -> list[NewRow]:
    found: list[NewRow] = []
    wrongs: list[Wrong] = []
    seen: dict[str, int] = {}
    for index, row in rows:
        try:
            new = one(row, grader)
        except RowError as error:
            wrongs.append(Wrong(f"{at}/{index}{error.pointer}", "invalid_row", str(error)))
        else:
            if new.task_id in seen:
                wrongs.append(Wrong(f"{at}/{index}/task_id", "duplicate_task_id", f"stands at {seen[new.task_id]} too."))
            seen.setdefault(new.task_id, index)
            found.append(new)
        if len(wrongs) >= MOST_WRONG:
            break
    if wrongs:
        code = wrongs[0].code
        indexes = sorted({int(w.pointer.removeprefix(at).split("/")[1]) for w in wrongs})
        raise Unprocessable(code, f"{wrongs[0].pointer} {wrongs[0].message} No row was taken.", wrongs, indexes=indexes)
    return found


def one(row: Any, grader: Mapping[str, Any] | None) -> NewRow:
    """Reads one row. Errors: RowError."""
    if not isinstance(row, Mapping):
        raise RowError("", "must be an object with task_id, input and expected.")
    for name in row:
        if name not in FIELDS:
            raise RowError(f"/{name[:60]}", f"is no field of a row. There are: {', '.join(FIELDS)}.")
    task_id = row.get("task_id")
    if not isinstance(task_id, str) or not task_id.strip():
        raise RowError("/task_id", "must be a text that is not empty.")
    task_id = unicodedata.normalize("NFC", task_id)
    if len(task_id) > LONGEST_ID:
        raise RowError("/task_id", f"is longer than {LONGEST_ID} characters.")
    if not is_plain(task_id):
        raise RowError("/task_id", "holds a control character, or half of one.")
    if "input" not in row:
        raise RowError("/input", "is missing.")
    row_input, expected = row["input"], row.get("expected")
    source = source_of(row.get("source"))
    kind = kind_of(row, row_input, expected)
    if grader is not None:
        check_kind(kind or str(grader.get("kind", "")), row_input, expected, grader)
    cluster = row.get("cluster") or (source or {}).get("cluster") or (source or {}).get("repo") or ""
    if not isinstance(cluster, str) or len(cluster) > LONGEST_ID or not is_plain(cluster):
        raise RowError("/cluster", f"must be a text of at most {LONGEST_ID} characters, none of them a control character.")
    try:
        digest = canonical.digest({"task_id": task_id, "input": row_input, "expected": expected, "source": source})
        body = canonical.kept({"input": row_input, "expected": expected, "source": source})
    except (ValueError, TypeError, RecursionError):
        raise RowError("", "holds NaN or an infinity, or is nested too deep.") from None
    if len(body) > LONGEST_ROW:
        raise RowError("", f"is larger than {LONGEST_ROW // 1024 // 1024} MiB.")
    return NewRow(task_id, kind or str((grader or {}).get("kind", "")), cluster, digest, body)


def is_plain(text: str) -> bool:
    return not any(unicodedata.category(c) in ("Cc", "Cs") for c in text)


def source_of(source: Any) -> dict[str, Any] | None:
    if source is None:
        return None
    if not isinstance(source, Mapping):
        raise RowError("/source", "must be an object.")
    for name, value in source.items():
        if name not in SOURCE_FIELDS:
            raise RowError(f"/source/{name[:60]}", f"is no field of a source. There are: {', '.join(SOURCE_FIELDS)}.")
        if value is not None and (not isinstance(value, str) or len(value) > 1000):
            raise RowError(f"/source/{name}", "must be a text of at most 1,000 characters.")
    return dict(source)


def kind_of(row: Mapping[str, Any], row_input: Any, expected: Any) -> str:
    """Reads a row's kind, which stands on the row, its input, its expected value or several of them, and must be one."""
    said = {}
    for pointer, holder in (("/kind", row), ("/input/kind", row_input), ("/expected/kind", expected)):
        value = holder.get("kind") if isinstance(holder, Mapping) else None
        if value is not None:
            if not isinstance(value, str) or not value or len(value) > 40 or not is_plain(value):
                raise RowError(pointer, "must be a text of 1 to 40 characters, none of them a control character.")
            said[pointer] = value
    if len(set(said.values())) > 1:
        raise RowError("/expected/kind" if "/expected/kind" in said else "/input/kind", f"is not the same everywhere: {', '.join(said.values())}.")
    return next(iter(said.values()), "")


def check_kind(kind: str, row_input: Any, expected: Any, grader: Mapping[str, Any]) -> None:
    """Lets a built-in kind look at its row. A kind that is not built in needs an impl, which looks for itself."""
    if found := every().get(kind):
        found.check(row_input, expected)
        if not grader.get("kind"):
            try:
                found.look_at(grader)
            except RowError as error:
                raise RowError("/input/kind", f"is {kind}, and the subset's grader is none for it: {error.pointer} {error}") from None
    elif not grader.get("kind") and kind:
        raise RowError("/input/kind", f"is {kind}, which no built-in grader grades. There are: {', '.join(every())}.")
    elif not kind:
        raise RowError("/input/kind", "is missing, and the subset's grader names none for all rows.")


def version_digest(digests: Iterable[str]) -> tuple[str, int]:
    """Makes a version's digest of its rows', which come in the order of their task ids' characters. Shape: the digest, how many rows there were."""
    import hashlib

    sum_, count = hashlib.sha256(), 0
    for digest in digests:
        sum_.update(bytes.fromhex(digest))
        count += 1
    return sum_.hexdigest(), count
