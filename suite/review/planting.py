"""Faults planted in real functions, each with a clean control, each proved: a test fails by it, or a call gives another answer.

functions that are covered ─▶ an operator drawn by how often people make its mistake ─▶ candidates on lines drawn evenly ─▶ rules that the text alone decides
   ─▶ tests or generated calls in the sandbox ─▶ of two that hold the one that fewer tests see ─▶ a pair
"""

from __future__ import annotations

import ast
import hashlib
import random
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from suite.review import functions, generated, neutral, repository, telling, verifying
from suite.review.edits import Edit, Text, is_sound, statement_of
from suite.review.functions import Function
from suite.review.operators import WEIGHTS, every
from suite.review.operators.site import Site
from suite.review.repository import Commit, Place
from suite.review.scopes import Module, findings
from suite.review.tasks import Half, Pair
from suite.review.verifying import Change, Tested

MOST_A_FILE = 3
TRIES = 8  # rounds of candidates before an operator that finds no place gives its share to others
DIFFICULTY = ((0.1, "hard"), (0.25, "medium"), (1.0, "easy"))


@dataclass(slots=True)
class File:
    """One file of the repository with its functions that are worth a look."""

    path: str
    text: Text
    tree: ast.Module
    module: Module
    functions: list[Function]
    findings: frozenset[str]
    gone: frozenset[str] | None = None


@dataclass(frozen=True, slots=True)
class Candidate:
    file: File = field(compare=False)
    function: Function = field(compare=False)
    edit: Edit
    controls: tuple[Edit, ...] = ()

    @property
    def id(self) -> str:
        return hashlib.sha256(f"{self.file.path}\n{self.function.name}\n{self.edit}".encode("utf-8", "surrogatepass")).hexdigest()[:12]


@dataclass(slots=True)
class Seeding:
    """One go at a repository. Shape: `told` counts what became of candidates, by why they were left out."""

    place: Place
    commit: Commit
    tree: Path
    tested: Tested | None
    seed: int
    take_unverified: bool = False
    told: Counter[str] = field(default_factory=Counter)
    taken: set[str] = field(default_factory=set)
    by_file: Counter[str] = field(default_factory=Counter)
    digests: set[str] = field(default_factory=set)


def read_files(place: Place, commit: Commit) -> Iterator[File]:
    """Reads the files of a commit that hold the product's own Python."""
    for path in repository.paths(place.folder, commit.id):
        if not functions.is_product(path) or any(path == out or path.startswith(f"{out.rstrip('/')}/") for out in place.leave_out):
            continue
        source = repository.content(place.folder, commit.id, path)
        tree = functions.parsed(source) if source else None
        if source is None or tree is None:
            continue
        worth = [one for one in functions.of(path, tree) if functions.is_worth(one) and is_plain(functions.window(source, one.first, one.last))]
        if worth:
            yield File(path, Text(source), tree, Module.of(tree), worth, findings(source, tree))


def is_plain(window: str) -> bool:
    """Tells whether a window's lines are the same for everybody who counts them, and name no place elsewhere that its answer could be looked up at."""
    return len(window.splitlines()) == window.count("\n") and "://" not in window


def plant(seeding: Seeding, count: int, most_rounds: int = 40) -> list[Pair]:
    """Plants faults until there are `count` pairs or no place is left."""
    chance = random.Random(seeding.seed)
    files = list(read_files(seeding.place, seeding.commit))
    stock = stocked(seeding, files)
    wanted = Counter(draw(chance, [name for name in stock if stock[name]], count))
    found: list[Pair] = []
    tries: Counter[str] = Counter()
    for _ in range(most_rounds):
        if not (open_ones := {name: n for name, n in wanted.items() if n > 0 and stock.get(name)}):
            left = sum(n for n in wanted.values() if n > 0)
            alive = [name for name in stock if stock[name] and tries[name] < TRIES]
            if not left or not alive:
                break
            wanted = Counter(draw(chance, alive, left))
            continue
        candidates = [one for name, n in open_ones.items() for one in propose(seeding, chance, stock, name, 2 * n)]
        for name in open_ones:
            tries[name] += 1
            if tries[name] >= TRIES:
                stock[name] = {}
        proved = prove(seeding, candidates, chance)
        for name in open_ones:
            mine = sorted([(p, c) for c, p in proved if c.edit.operator == name], key=lambda pair: pair[0].share)
            for proof, candidate in mine:
                if wanted[name] <= 0:
                    break
                if is_free(seeding, candidate):
                    take(seeding, candidate)
                    found.append(pair_of(seeding, candidate, proof, chance))
                    wanted[name] -= 1
        if len(found) >= count:
            break
    return found[:count]


Stock = dict[str, dict[tuple[str, str], tuple[File, Function, Site]]]


def stocked(seeding: Seeding, files: Sequence[File]) -> Stock:
    """Finds the functions that a fault may be planted in, by operator: those that tests run, or that calls can be made up for."""
    found: Stock = {name: {} for name in WEIGHTS}
    for file in files:
        for function in file.functions:
            digest = functions.digest(function.node)
            if digest in seeding.digests:
                seeding.told["twice"] += 1
                continue
            seeding.digests.add(digest)
            if not (is_covered(seeding, file, function) or generated.can_call(file.tree, function) or seeding.take_unverified):
                continue
            site = Site.of(file.text, function, file.module)
            for name, operator in every().items():
                if next(operator(site), None) is not None:
                    found[name][(file.path, function.name)] = (file, function, site)
    return found


def is_covered(seeding: Seeding, file: File, function: Function) -> bool:
    """Tells whether a fault in a function could be seen by a test, and by less than half of those that run it."""
    return seeding.tested is not None and len(seeding.tested.of_lines(file.path, range(function.first, function.last + 1))) >= 2


def draw(chance: random.Random, names: Sequence[str], count: int) -> list[str]:
    """Draws operators by how often people make their mistake."""
    return chance.choices(names, [WEIGHTS[name] for name in names], k=count) if names else []


def propose(seeding: Seeding, chance: random.Random, stock: Stock, operator: str, count: int) -> list[Candidate]:
    """Chooses candidates of one operator that the text alone lets pass, each in a function of its own."""
    found: list[Candidate] = []
    places = list(stock[operator])
    chance.shuffle(places)
    places.sort(key=lambda place: not is_covered(seeding, *stock[operator][place][:2]))  # what tests show costs less to prove than what calls show
    files: Counter[str] = Counter()
    for place in places:
        if len(found) >= count:
            break
        file, function, site = stock[operator][place]
        if f"{file.path}:{function.name}" in seeding.taken or seeding.by_file[file.path] + files[file.path] >= MOST_A_FILE:
            continue
        candidate = chosen(seeding, chance, file, function, site, operator)
        del stock[operator][place]
        if candidate is not None:
            found.append(candidate)
            files[file.path] += 1
    return found


def chosen(seeding: Seeding, chance: random.Random, file: File, function: Function, site: Site, operator: str) -> Candidate | None:
    """Chooses one edit: a line first, each as likely as the others, or long lines would have most faults."""
    by_line: dict[int, list[Edit]] = defaultdict(list)
    for edit in every()[operator](site):
        by_line[edit.line].append(edit)
    lines = sorted(by_line)
    chance.shuffle(lines)
    for line in lines[:3]:
        chance.shuffle(by_line[line])
        for edit in by_line[line][:3]:
            why = objection(seeding, file, function, edit)
            seeding.told[why or "tried"] += 1
            if not why:
                return Candidate(file, function, edit, tuple(neutral.edits(file.text, function, file.module, chance)))
    return None


def objection(seeding: Seeding, file: File, function: Function, edit: Edit) -> str:
    """Says why an edit may not be planted, by the text alone; "" where it may."""
    if not is_sound(file.text, edit, function.node):
        return "not one statement"
    statement = statement_of(function.node, edit.line)
    if statement is None or isinstance(statement, ast.Raise | ast.Assert | ast.Import | ast.ImportFrom):
        return "no place for a fault"
    window = functions.window(file.text.source, function.first, function.last)
    if telling.gives_away(window, function.first, edit):
        return "told by words beside it"
    after = file.text.applied(edit)
    tree = functions.parsed(after)
    if tree is None or findings(after, tree) != file.findings:
        return "seen by a linter"
    known = seeding.tested.covering.get(file.path, {}) if seeding.tested is not None else {}
    is_tested = any(line in known for line in range(function.first, function.last + 1))
    if is_tested and edit.line not in known and statement.lineno not in known:
        return "not run by a test"
    if is_covered(seeding, file, function) and len(covering(seeding, function, edit)) < 2:
        return "run by one test only"
    if file.gone is None:
        file.gone = repository.lines_that_were(seeding.place.folder, seeding.commit.id, file.path)
    if after.split("\n")[edit.line - 1].strip() in file.gone:
        return "stood there once"
    return ""


@dataclass(frozen=True, slots=True)
class Proof:
    """How a fault was shown to be one. Shape: `share` of the tests, or calls, that see it."""

    how: str
    share: float
    note: str


def prove(seeding: Seeding, candidates: Sequence[Candidate], chance: random.Random) -> list[tuple[Candidate, Proof]]:
    """Runs what proves a fault, and that its control is none."""
    found: list[tuple[Candidate, Proof]] = []
    waiting: dict[str, tuple[Candidate, tuple[str, ...]]] = {}
    loose: list[Candidate] = []
    for one in candidates:
        tests = sorted(covering(seeding, one.function, one.edit))
        if len(tests) < 2:
            loose.append(one)
        else:
            waiting[one.id] = (one, tuple(chance.sample(tests, verifying.MOST_TESTS) if len(tests) > verifying.MOST_TESTS else tests))
    faults = run(seeding, {name: (one, (one.edit,), tests) for name, (one, tests) in waiting.items()})
    subtle = {name: waiting[name] for name in waiting if name in faults and faults[name].is_subtle}
    controls = run(seeding, {name: (one, one.controls, tests) for name, (one, tests) in subtle.items() if one.controls})
    for name, (one, _) in waiting.items():
        result, control = faults.get(name), controls.get(name)
        if result is None:
            seeding.told["no answer from the tests"] += 1
        elif not result.is_killed:
            seeding.told["no test sees it"] += 1
        elif not result.is_subtle:
            seeding.told["too loud"] += 1
        elif one.controls and (control is None or control.is_killed):
            seeding.told["its control was seen by a test"] += 1
        else:
            failed = len(result.failed)
            found.append((one, Proof("tests", failed / result.tests, f"{failed} of the {result.tests} tests that run it fail by it.")))
    for one in loose:
        proof = generated.prove(seeding.place, seeding.tree, one.file.path, one.file.text, one.function, one.edit, one.controls, chance)
        if proof is not None:
            found.append((one, Proof("run", proof.share, f"{proof.different} of {proof.calls} calls give another answer.")))
        elif seeding.take_unverified:
            found.append((one, Proof("unverified", 1.0, "Neither a test nor a call shows it.")))
        else:
            seeding.told["neither a test nor a call shows it"] += 1
    return found


def run(seeding: Seeding, wanted: Mapping[str, tuple[Candidate, Sequence[Edit], tuple[str, ...]]]) -> dict[str, verifying.Came]:
    """Runs the tests of each candidate with edits made."""
    changes = [Change(name, {one.file.path: one.file.text.applied(*edits)}, tests) for name, (one, edits, tests) in wanted.items()]
    return verifying.changes(seeding.place, seeding.tree, changes, seeding.tested.modules if seeding.tested else ())


def covering(seeding: Seeding, function: Function, edit: Edit) -> frozenset[str]:
    """Gives the tests that run the statement of an edit."""
    statement = statement_of(function.node, edit.line)
    if seeding.tested is None or statement is None:
        return frozenset()
    body: list[ast.stmt] = getattr(statement, "body", [])
    last = body[0].lineno - 1 if body else statement.end_lineno or statement.lineno
    return seeding.tested.of_lines(function.path, range(statement.lineno, max(last, edit.line) + 1))


def is_free(seeding: Seeding, candidate: Candidate) -> bool:
    return f"{candidate.file.path}:{candidate.function.name}" not in seeding.taken and seeding.by_file[candidate.file.path] < MOST_A_FILE


def take(seeding: Seeding, candidate: Candidate) -> None:
    seeding.taken.add(f"{candidate.file.path}:{candidate.function.name}")
    seeding.by_file[candidate.file.path] += 1
    seeding.told["planted"] += 1


def pair_of(seeding: Seeding, candidate: Candidate, proof: Proof, chance: random.Random) -> Pair:
    function, edit, text = candidate.function, candidate.edit, candidate.file.text
    faulty = functions.window(text.applied(edit), function.first, function.last)
    clean = functions.window(text.applied(*candidate.controls), function.first, function.last)
    difficulty = next(name for most, name in DIFFICULTY if proof.share <= most)
    kinds = sorted({one.operator for one in candidate.controls}) or ["none"]
    column = edit.start - text.starts[edit.line - 1] + 1
    source: Mapping[str, str] = {
        "repo": seeding.place.name,
        "path": candidate.file.path,
        "commit": seeding.commit.id,
        "date": f"{seeding.commit.date:%Y-%m-%d}",
        "licence": seeding.place.licence,
        "origin": "planted",
        "operator": edit.operator,
        "span": f"{candidate.file.path}:{edit.line}:{column}-{column + edit.end - edit.start}",
        "seed": str(seeding.seed),
        "verified": proof.how,
        "note": f"{proof.note} Difficulty: {difficulty}. Control edited by: {', '.join(kinds)}.",
    }
    return Pair(
        candidate.id,
        Half(faulty, (edit.line - function.first + 1,)),
        Half(clean, ()),
        {name: value for name, value in source.items() if value},
        f"{seeding.place.name}/{candidate.file.path}",
    )
