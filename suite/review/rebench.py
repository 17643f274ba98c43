"""SWE-rebench-V2 rows as review tasks: the function that a real pull request mended, before and after.

a row ─▶ what its labels and its patch allow ─▶ the one file at its base commit ─▶ patched, parsed, cut alike ─▶ a pair, and one with the issue's text

Source: the dataset nebius/SWE-rebench-V2 (CC-BY-4.0, each repository's own licence besides), arXiv 2602.23866.
"""

from __future__ import annotations

import ast
import hashlib
import json
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from suite.review import fixes, functions
from suite.review.fixes import Fix, Mining
from suite.review.repository import Commit, Place, ReviewError, safe, text_of
from suite.review.tasks import Pair

# Labels of rows whose tests or text do not fit the fix: B1 other tests, B2 hidden names, B5 more than the fix, B7 tests inside, B11 several issues.
BARRED = frozenset({"B1", "B2", "B5", "B7", "B11"})
PERMISSIVE = frozenset({
    "mit", "apache-2.0", "bsd-2-clause", "bsd-3-clause", "isc", "0bsd", "unlicense", "psf-2.0", "python-2.0", "zlib", "mit-0", "bsl-1.0", "cc0-1.0",
    "mit license", "apache license 2.0", "apache software license", "bsd license", "bsd 3-clause license", "bsd 2-clause license", "bsd", "new bsd license",
})  # fmt: skip
REPO = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}/[A-Za-z0-9._-]{1,100}")
COMMIT = re.compile(r"[0-9a-f]{40}")
HUNK = re.compile(r"@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@")
WORDS_ONLY = re.compile(r"\.(md|rst|txt|toml|cfg|ini|ya?ml|json|lock)$|(^|/)(CHANGES|CHANGELOG|NEWS|AUTHORS|docs?|newsfragments)(/|$|\.)", re.IGNORECASE)
# Gives the text of a file of a repository at a commit, or its licence; None where there is none.
ReadFile = Callable[[str, str, str], str | None]
ReadLicence = Callable[[str], str | None]


@dataclass(frozen=True, slots=True)
class FilePatch:
    """What a patch does to one file. Shape: hunks as (first line of the old file, lines with their sign)."""

    path: str
    hunks: tuple[tuple[int, tuple[str, ...]], ...]


@dataclass(slots=True)
class Import:
    """One import. Shape: `told` counts rows, by why they were left out."""

    read_file: ReadFile
    read_licence: ReadLicence
    told: Counter[str] = field(default_factory=Counter)
    digests: set[str] = field(default_factory=set)


# ------------------------------------------------------------------ rows, in each form that there is


def read_rows(path: Path) -> Iterator[Mapping[str, Any]]:
    """Reads rows of a file: JSONL, a JSON list, one row, or an answer of a dataset server. Errors: ReviewError."""
    try:
        raw = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ReviewError(f"{path} cannot be read: {error}") from None
    try:
        found = json.loads(raw)
    except ValueError:
        for number, line in enumerate(raw.splitlines(), 1):
            if line.strip():
                try:
                    yield from rows_of(json.loads(line))
                except ValueError as error:
                    raise ReviewError(f"{path}: line {number} is no JSON: {error}") from None
        return
    yield from rows_of(found)


def rows_of(found: Any) -> Iterator[Mapping[str, Any]]:
    if isinstance(found, Mapping) and isinstance(found.get("rows"), list):
        found = [one.get("row", one) if isinstance(one, Mapping) else one for one in found["rows"]]
    for one in found if isinstance(found, list) else [found]:
        if isinstance(one, Mapping):
            yield one


def text_at(row: Mapping[str, Any], name: str) -> str:
    value = row.get(name)
    return value if isinstance(value, str) else ""


def date_of(value: Any) -> datetime | None:
    """Reads a moment: milliseconds or seconds since 1970, or ISO 8601."""
    try:
        if isinstance(value, int | float) and not isinstance(value, bool):
            return datetime.fromtimestamp(value / 1000 if value > 10_000_000_000 else value, UTC)
        if isinstance(value, str) and value.strip():
            found = datetime.fromisoformat(value.strip().replace("Z", "+00:00"))
            return found if found.tzinfo else found.replace(tzinfo=UTC)
    except (ValueError, OverflowError, OSError):
        pass
    return None


def labels_of(row: Mapping[str, Any]) -> tuple[set[str], set[str]]:
    """Reads what models said of a row. Shape: codes, and categories; older rows have fewer, or none."""
    meta = row.get("meta")
    if isinstance(meta, str):
        try:
            meta = json.loads(meta)
        except ValueError:
            meta = None
    said = meta.get("llm_metadata") if isinstance(meta, Mapping) else None
    codes: set[str] = set()
    categories: set[str] = set()
    for one in [said] if isinstance(said, Mapping) else said if isinstance(said, list) else []:
        if not isinstance(one, Mapping):
            continue
        if isinstance(one.get("code"), str):
            codes.add(one["code"])
        issues = one.get("detected_issues")
        if isinstance(issues, Mapping):
            codes |= {str(name).split("_")[0] for name, is_so in issues.items() if is_so is True}
        kinds = one.get("pr_categories")
        categories |= {kind for kind in kinds if isinstance(kind, str)} if isinstance(kinds, list) else set()
    return codes, categories


# ------------------------------------------------------------------ patches


def patches(text: str) -> list[FilePatch]:
    """Reads a unified diff. What is no change of a file that stays, new, gone, renamed or binary, has no hunks."""
    found: list[FilePatch] = []
    path, is_odd = "", False
    hunks: list[tuple[int, tuple[str, ...]]] = []
    lines = text.replace("\r\n", "\n").split("\n")
    i = 0

    def close() -> None:
        if path:
            found.append(FilePatch(path, () if is_odd else tuple(hunks)))

    while i < len(lines):
        line = lines[i]
        if line.startswith("diff --git "):
            close()
            path, is_odd, hunks = line.rpartition(" b/")[2], False, []
        elif line.startswith(("new file", "deleted file", "rename ", "similarity", "Binary", "GIT binary")):
            is_odd = True
        elif line.startswith("--- ") and i + 1 < len(lines) and lines[i + 1].startswith("+++ "):
            name = lines[i + 1][4:].split("\t")[0].removeprefix("b/")
            if not path or (name != path and name != "/dev/null"):
                close()
                path, is_odd, hunks = name, False, []
            is_odd = is_odd or "/dev/null" in (line[4:].split("\t")[0], name)
            i += 1
        elif head := HUNK.match(line):
            old_left, new_left = int(head[2] or 1), int(head[4] or 1)
            body: list[str] = []
            while (old_left > 0 or new_left > 0) and i + 1 < len(lines):
                i += 1
                one = lines[i]
                if one.startswith("\\"):
                    continue
                sign = one[:1] or " "
                old_left -= sign in " -"
                new_left -= sign in " +"
                body.append(one or " ")
            hunks.append((int(head[1]), tuple(body)))
        i += 1
    close()
    return found


def applied(source: str, patch: FilePatch) -> str | None:
    """Applies a file's hunks where they say they belong; None where the file is not the one they were made for."""
    lines = source.split("\n")
    shift = 0
    for first, body in patch.hunks:
        old = [line[1:] for line in body if line[0] in " -"]
        new = [line[1:] for line in body if line[0] in " +"]
        start = first - 1 + shift if old else first + shift
        if lines[start : start + len(old)] != old:
            return None
        lines[start : start + len(old)] = new
        shift += len(new) - len(old)
    return "\n".join(lines)


# ------------------------------------------------------------------ one row


def taken(go: Import, row: Mapping[str, Any]) -> tuple[Pair, Pair | None] | None:
    """Makes a row's pair, and the same with the issue's text where there is one."""
    why, found = looked_at(go, row)
    go.told[why] += 1
    return found


def looked_at(go: Import, row: Mapping[str, Any]) -> tuple[str, tuple[Pair, Pair | None] | None]:
    repo, commit = text_at(row, "repo"), text_at(row, "base_commit").lower()
    if not REPO.fullmatch(repo) or ".." in repo or not COMMIT.fullmatch(commit):
        return "it names no repository and commit", None
    language = text_at(row, "language").lower()
    if language not in ("", "python"):
        return "it is not Python", None
    codes, categories = labels_of(row)
    if "A" not in codes and codes & BARRED:
        return "its labels say that tests or text do not fit the fix", None
    if categories and not any(kind.endswith("_bug") or kind == "bug" for kind in categories):
        return "it is no fix of a fault", None
    files = patches(text_at(row, "patch"))
    product = [one for one in files if functions.is_product(one.path) and safe(one.path)]
    others = [one for one in files if one not in product and not functions.NOT_PRODUCT.search(one.path) and not WORDS_ONLY.search(one.path)]
    if len(product) != 1 or others or not 1 <= len(product[0].hunks) <= fixes.MOST_HUNKS:
        return "it changes more than one file, or too much", None
    patch = product[0]
    if sum(line.startswith("-") for _, body in patch.hunks for line in body) == 0:
        return "it adds lines only", None
    licence = licence_of(go, row, repo)
    if licence.lower() not in PERMISSIVE:
        return "its licence is not known to allow it", None
    before = go.read_file(repo, commit, patch.path)
    after = applied(before, patch) if before is not None else None
    if before is None or after is None:
        return "its file could not be had, or is another", None
    return halved(go, row, repo, commit, patch.path, before, after, licence, codes)


def licence_of(go: Import, row: Mapping[str, Any], repo: str) -> str:
    for name in ("license", "licence", "license_name"):
        if text_at(row, name):
            return text_at(row, name)
    return go.read_licence(repo) or ""


def halved(
    go: Import, row: Mapping[str, Any], repo: str, commit: str, path: str, before: str, after: str, licence: str, codes: Iterable[str]
) -> tuple[str, tuple[Pair, Pair | None] | None]:
    tree = functions.parsed(after)
    if tree is None or functions.parsed(before) is None:
        return "its file does not parse", None
    when = date_of(row.get("created_at"))
    name = text_at(row, "instance_id") or f"{repo}@{commit[:12]}"
    mining = Mining(Place(repo, Path()), Commit(commit, "", when or datetime(1970, 1, 1, tzinfo=UTC), name), digests=go.digests)
    blank = Fix(mining.commit, path, before, after, fixes.NOWHERE, (), ())
    hunks = [hunk for hunk in fixes.hunks_of(before, after) if fixes.does_something(hunk)]
    found = [fix for fix in fixes.in_functions(mining, blank, tree, hunks) if len(fix.hunks) == 1]
    if len(hunks) != 1 or len(found) != 1:
        return "it is not one change of one to three lines in one function", None
    both = fixes.halves(found[0], found[0].hunks)
    if both is None:
        return "words beside the code tell of it, or it cannot be cut alike", None
    faulty, clean = (replace(half, code=untraced(half.code, repo)) for half in both)
    source = {
        "repo": repo,
        "path": path,
        "commit": commit,
        "date": f"{when:%Y-%m-%d}" if when else "",
        "licence": licence,
        "origin": "real",
        "operator": "fix",
        "verified": "upstream",
        "url": "https://huggingface.co/datasets/nebius/SWE-rebench-V2",
        "note": f"{name}. Labels: {', '.join(sorted(codes)) or 'none'}. By its dataset, tests fail before the fix and pass after it. Rows: CC-BY-4.0."[:1000],
    }
    kept = {key: value for key, value in source.items() if value}
    pair = Pair(hashlib.sha256(name.encode()).hexdigest()[:12], faulty, clean, kept, repo)
    issue = issue_of(text_at(row, "problem_statement"), repo, path, found[0].function.node)
    told = Pair(pair.id, replace(faulty, issue=issue), replace(clean, issue=issue), kept, repo) if issue else None
    return "taken", (pair, told)


def untraced(text: str, repo: str) -> str:
    """Takes out of a text by what its answer could be looked up: addresses, numbers of issues, the repository's name. Lines stay lines."""
    text = re.sub(r"https?://[^\s'\"<>)]+", "<address>", text)
    text = re.sub(r"(?<![\w&])(?:GH-?|gh-?|#)\d{2,7}\b", "<issue>", text)
    return re.sub(re.escape(repo), "<repository>", text, flags=re.IGNORECASE)


def issue_of(text: str, repo: str, path: str, function: ast.AST) -> str:
    """Gives what a user reported, without traces that point at the line; "" where nothing is left."""
    kept, is_trace = [], False
    for line in untraced(text.replace("\r\n", "\n"), repo).split("\n"):
        if "Traceback (most recent call last)" in line:
            is_trace = True
            continue
        if is_trace:
            is_trace = bool(re.match(r'\s+|File "|\w*(Error|Exception|Warning)\b', line)) or not line.strip()
            if is_trace or re.match(r"[\w.]+(Error|Exception)\b", line):
                continue
        if re.search(r"\bline \d+\b|\.py:\d+|#L\d+", line) or path in line:
            continue
        kept.append(line)
    return "\n".join(kept).strip()[:8000]


def pairs(go: Import, rows: Iterable[Mapping[str, Any]], most: int) -> tuple[list[Pair], list[Pair]]:
    """Imports rows until there are enough. Shape: pairs of code alone, and those with what a user reported."""
    blind: list[Pair] = []
    told: list[Pair] = []
    for row in rows:
        if len(blind) >= most:
            break
        if (found := taken(go, row)) is not None:
            blind.append(found[0])
            told += [found[1]] if found[1] is not None else []
    return blind, told


# ------------------------------------------------------------------ where files come from


def from_folder(folder: Path) -> ReadFile:
    """Reads files from a folder: <owner>__<name>/<commit>/<path>."""

    def read(repo: str, commit: str, path: str) -> str | None:
        place = folder / repo.replace("/", "__") / commit
        found = (place / path).resolve()
        if not found.is_relative_to(place.resolve()) or not found.is_file():
            return None
        return text_of(found.read_bytes())

    return read
