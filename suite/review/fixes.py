"""Real faults, out of a repository's own history: what a small fix changed, with the fixed function as the control.

commits that speak of a fix ─▶ functions of which they changed one to three lines ─▶ each turned back alone ─▶ the tests that came with the fix
   ─▶ the hunks that make one of them fail are where the fault was ─▶ a pair
"""

from __future__ import annotations

import ast
import hashlib
import re
import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import timedelta
from difflib import SequenceMatcher
from pathlib import Path
from typing import cast

from suite.review import functions, repository, verifying
from suite.review.functions import Function
from suite.review.repository import Commit, Place
from suite.review.scopes import findings
from suite.review.tasks import Half, Pair
from suite.review.verifying import Change

FIX = re.compile(r"\b(fix(es|ed)?|mend(s|ed)?|repair(s|ed)?|bugs?|wrong(ly)?|corrects?|crash(es|ed)?|regressions?|broken|faulty)\b", re.IGNORECASE)
TEST = re.compile(r"(^|/)test_[^/]*\.py$|_test\.py$")
# More files than these are a rebuilding, whatever its message says.
MOST_HUNKS, MOST_LINES, MOST_FILES = 3, 3, 12
SETTLED = timedelta(days=90)
# Whole files of tests are run, which takes longer than the tests of one line.
FIX_S = 300


@dataclass(frozen=True, slots=True)
class Hunk:
    """Lines that a fix changed. Shape: `old` stood at `at` in the old file, `new` stands from line `new_at` on in the fixed one."""

    old: tuple[str, ...]
    new: tuple[str, ...]
    new_at: int


@dataclass(frozen=True, slots=True)
class Fix:
    """One commit that may have mended a fault in one function. Shape: `before` and `after` are the whole file."""

    commit: Commit
    path: str
    before: str
    after: str
    function: Function
    hunks: tuple[Hunk, ...]
    tests: tuple[str, ...]


NOWHERE = Function("", "", cast(ast.FunctionDef, ast.parse("def nowhere(): ...").body[0]), 0, 0)


@dataclass(slots=True)
class Mining:
    """One walk through a history. Shape: `only` names commits that somebody looked at, instead of those whose messages speak of a fix; `told` counts."""

    place: Place
    commit: Commit
    take_unverified: bool = False
    only: tuple[str, ...] = ()
    told: Counter[str] = field(default_factory=Counter)
    digests: set[str] = field(default_factory=set)


def hunks_of(before: str, after: str) -> list[Hunk]:
    """Lists what changed, line by line, without what only moved lines about."""
    old, new = before.split("\n"), after.split("\n")
    found = []
    for kind, i1, i2, j1, j2 in SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
        if kind != "equal":
            found.append(Hunk(tuple(old[i1:i2]), tuple(new[j1:j2]), j1 + 1))
    return found


def code_lines(lines: Sequence[str]) -> list[str]:
    """Keeps the lines that do something: no comment, no blank, no import; without spaces, so that formatting is no change."""
    kept = []
    for line in lines:
        bare = re.sub(r"\s+#.*$", "", line).strip()
        if bare and not bare.startswith(("#", "import ", "from ", '"""', "'''")):
            kept.append(re.sub(r"\s+", "", bare).rstrip(","))
    return kept


def does_something(hunk: Hunk) -> bool:
    return code_lines(hunk.old) != code_lines(hunk.new)


def candidates(mining: Mining, most: int) -> Iterator[Fix]:
    """Walks the history for commits that look like a small fix."""
    for commit in repository.history(mining.place.folder, mining.commit.id, most):
        if mining.only and not commit.id.startswith(mining.only):
            continue
        if not mining.only and not FIX.search(repository.message(mining.place.folder, commit)):
            mining.told["commits that speak of no fix"] += 1
            continue
        touched = repository.changed(mining.place.folder, commit)
        product = [path for kind, path in touched if kind == "M" and functions.is_product(path)]
        tests = tuple(path for kind, path in touched if kind in "AM" and TEST.search(path))
        if not 1 <= len(product) <= MOST_FILES:
            mining.told["commits that change no file of the product, or many"] += 1
            continue
        for path in product:
            yield from of_file(mining, commit, path, tests)


def of_file(mining: Mining, commit: Commit, path: str, tests: tuple[str, ...]) -> Iterator[Fix]:
    """Finds the functions of one file of which a commit changed little, and lines that were there."""
    before, after = (repository.content(mining.place.folder, name, path) for name in (commit.parent, commit.id))
    if before is None or after is None or functions.parsed(before) is None or (tree := functions.parsed(after)) is None:
        mining.told["files that cannot be read"] += 1
        return
    hunks = [hunk for hunk in hunks_of(before, after) if does_something(hunk)]
    yield from in_functions(mining, Fix(commit, path, before, after, NOWHERE, (), tests), tree, hunks)


def in_functions(mining: Mining, fix: Fix, tree: ast.Module, hunks: Sequence[Hunk]) -> Iterator[Fix]:
    """Finds the functions of a fixed file of which little changed. Shape: `fix` without its function and hunks."""
    for function in functions.of(fix.path, tree):
        if not functions.is_worth(function):
            continue
        mine = [hunk for hunk in hunks if hunk.new_at <= function.last and hunk.new_at + max(1, len(hunk.new)) > function.first]
        if not mine:
            continue
        counts = [len(code_lines(hunk.old)) for hunk in mine]
        is_inside = all(function.first <= hunk.new_at and hunk.new_at + len(hunk.new) - 1 <= function.last for hunk in mine)
        if not is_inside or len(mine) > MOST_HUNKS or 0 in counts or sum(counts) > MOST_LINES:
            mining.told["functions that got lines only, or changed in more than three"] += 1
        elif (digest := functions.digest(function.node)) in mining.digests:
            mining.told["functions that were taken already"] += 1
        else:
            mining.digests.add(digest)
            mining.told["functions looked at"] += 1
            yield replace(fix, function=function, hunks=tuple(mine))


def turned_back(text: str, hunks: Sequence[Hunk]) -> tuple[str, tuple[int, ...]]:
    """Gives the fixed file with some hunks as they were before. Shape: the file, and the lines of it that came back and do something."""
    lines = text.split("\n")
    gold: list[int] = []
    shift = 0
    for hunk in sorted(hunks, key=lambda h: h.new_at):
        start = hunk.new_at - 1 + shift
        lines[start : start + len(hunk.new)] = hunk.old
        fresh = set(code_lines(hunk.new))
        gold += [start + i + 1 for i, line in enumerate(hunk.old) if (kept := code_lines([line])) and kept[0] not in fresh]
        shift += len(hunk.old) - len(hunk.new)
    return "\n".join(lines), tuple(gold)


def halves(fix: Fix, hunks: Sequence[Hunk]) -> tuple[Half, Half] | None:
    """Cuts both halves alike. None where that is not possible, or where words beside the code differ or stand at the fault."""
    faulty, gold = turned_back(fix.after, hunks)
    tree = functions.parsed(faulty)
    twin = next((one for one in functions.of(fix.path, tree) if one.name == fix.function.name), None) if tree is not None else None
    old_tree = functions.parsed(fix.before)
    old = next((one for one in functions.of(fix.path, old_tree) if one.name == fix.function.name), None) if old_tree is not None else None
    if twin is None or tree is None or old is None or not gold or not all(twin.first <= line <= twin.last for line in gold):
        return None
    if ast.dump(twin.node.args) != ast.dump(fix.function.node.args) or findings(faulty, tree) - findings(fix.after, ast.parse(fix.after)):
        return None  # another signature, or what a linter would find: the commit changed more than this function
    clean, wrong = functions.window(fix.after, fix.function.first, fix.function.last), functions.window(faulty, twin.first, twin.last)
    said, said_before = functions.words(wrong), functions.words(functions.window(fix.before, old.first, old.last))
    if said.all != functions.words(clean).all or said.all != said_before.all:
        return None  # a comment or a docstring that came with the fix tells of it
    lines = tuple(line - twin.first + 1 for line in gold)
    if any(near in said.comments for line in lines for near in (line - 1, line)):
        return None
    if any(text.count("\n") != len(text.splitlines()) or "://" in text for text in (clean, wrong)):
        return None
    return Half(wrong, lines), Half(clean, ())


def is_settled(mining: Mining, fix: Fix) -> bool:
    """Tells whether nobody changed the fixed lines again within ninety days."""
    until = fix.commit.date + SETTLED
    fixed = {line.strip() for hunk in fix.hunks for line in hunk.new if code_lines([line])}
    said = repository.git(
        mining.place.folder, "log", "--no-show-signature", "-p", "--no-color", "--no-ext-diff", "--format=%x01%ct", f"{fix.commit.id}..{mining.commit.id}",
        "--", fix.path,
    ).decode(errors="replace")  # fmt: skip
    for part in said.split("\x01")[1:]:
        seconds, _, diff = part.partition("\n")
        if int(seconds) > until.timestamp():
            continue
        if any(line[1:].strip() in fixed for line in diff.splitlines() if line.startswith("-") and not line.startswith("---")):
            return False
    return True


def proved(mining: Mining, fix: Fix) -> tuple[Hunk, ...]:
    """Finds the hunks without which a test that came with the fix fails. () where none does, or where nothing can be run."""
    if not fix.tests:
        return ()
    with tempfile.TemporaryDirectory(prefix="review-") as folder:
        tree = Path(folder)
        repository.unpack(mining.place.folder, fix.commit.id, tree)
        ways = [Change("fixed", {}, fix.tests)]
        ways += [Change(str(i), {fix.path: turned_back(fix.after, [hunk])[0]}, fix.tests) for i, hunk in enumerate(fix.hunks)]
        ways = [way for way in ways if all(functions.parsed(text) is not None for text in way.files.values())]
        came = verifying.changes(mining.place, tree, ways, change_s=FIX_S)
        seen = {name: failing(came.get("fixed"), came.get(name)) for name in (way.id for way in ways) if name != "fixed"}
        # A test that fails now and then proves nothing: what failed must fail again, and pass again with the fix.
        again: list[Change] = []
        for way in ways:
            if tests := tuple(sorted(seen.get(way.id, ()))):
                again += [Change(f"{way.id}-fixed", {}, tests), Change(f"{way.id}-without", way.files, tests)]
        sure = verifying.changes(mining.place, tree, again, change_s=FIX_S)
    names = {name for name, tests in seen.items() if tests & failing(sure.get(f"{name}-fixed"), sure.get(f"{name}-without"))}
    return tuple(hunk for i, hunk in enumerate(fix.hunks) if str(i) in names)


def failing(fixed: verifying.Came | None, without: verifying.Came | None) -> set[str]:
    """Lists the tests that pass with a fix and fail without it; none where without it nothing can even be collected."""
    if fixed is None or without is None or any(name.startswith("collecting ") for name in without.outcomes):
        return set()
    return {test for test, outcome in fixed.outcomes.items() if outcome == "passed" and without.outcomes.get(test) == "failed"}


def mine(mining: Mining, count: int, most_commits: int = 5000) -> list[Pair]:
    """Takes real faults out of the history until there are `count` pairs or no commit is left."""
    found: list[Pair] = []
    for fix in candidates(mining, most_commits):
        if len(found) >= count:
            break
        if halves(fix, fix.hunks) is None:
            mining.told["told by words beside it, or not to be cut alike"] += 1
        elif not is_settled(mining, fix):
            mining.told["changed again within ninety days"] += 1
        elif (hunks := proved(mining, fix)) and (both := halves(fix, hunks)) is not None:
            mining.told["taken"] += 1
            found.append(pair_of(mining, fix, both, "tests"))
        elif not hunks and mining.take_unverified and len(fix.hunks) == 1 and (both := halves(fix, fix.hunks)) is not None:
            mining.told["taken unverified"] += 1
            found.append(pair_of(mining, fix, both, "unverified"))
        else:
            mining.told["no test that came with it fails without it"] += 1
    return found


def pair_of(mining: Mining, fix: Fix, both: tuple[Half, Half], verified: str) -> Pair:
    faulty, clean = both
    name = hashlib.sha256(f"{mining.place.name}\n{fix.commit.id}\n{fix.path}\n{fix.function.name}".encode()).hexdigest()[:12]
    source = {
        "repo": mining.place.name,
        "path": fix.path,
        "commit": fix.commit.id,
        "date": f"{fix.commit.date:%Y-%m-%d}",
        "licence": mining.place.licence,
        "origin": "real",
        "operator": "fix",
        "verified": verified,
        "note": "A test that came with the fix fails without it." if verified == "tests" else "Its subject says that it is a fix; no test shows it.",
    }
    return Pair(name, faulty, clean, {key: value for key, value in source.items() if value}, f"{mining.place.name}/{fix.path}")
