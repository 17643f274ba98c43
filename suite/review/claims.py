"""True and false statements about functions, each proved: by the text of the code, or by running it in the sandbox.

A false one speaks of the same function as a true one could, in the same words, so that nothing but the code tells them apart: the answer of another
call, a name that does stand there, but not so. Each form of sentence is true as often as false.
"""

from __future__ import annotations

import ast
import hashlib
import random
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from suite.review import functions, generated, verifying
from suite.review.functions import AnyFunction, Function
from suite.review.planting import File, read_files
from suite.review.repository import Commit, Place
from suite.review.scopes import BUILT_IN, OWN_SCOPE, Module, own_nodes
from suite.review.tasks import ClaimTask
from suite.review.verifying import Tested

MOST_A_FILE = 3
MOST_CALLED = 60
LONGEST_ANSWER = 120
# Calls that may not come back.
NEVER_BACK = frozenset({"", "exit", "_exit", "abort", "fail", "skip", "execv", "execve", "end"})
LOOPS = (ast.For, ast.AsyncFor, ast.While)


@dataclass(frozen=True, slots=True)
class Statement:
    """One sentence about a function. Shape: `form` is the kind of sentence, `proof` how it was decided."""

    form: str
    claim: str
    value: bool
    proof: str


@dataclass(slots=True)
class Telling:
    """One go at a repository."""

    place: Place
    commit: Commit
    tree: Path
    tested: Tested | None
    seed: int
    told: Counter[str] = field(default_factory=Counter)


# ------------------------------------------------------------------ what the text alone proves


def facts(function: Function) -> Iterator[Statement]:
    """Makes the statements that the text of one function decides."""
    node, name = function.node, function.node.name
    yield from called_in_loops(node, name)
    yield from bound_often(node, name)
    yield from raised(node, name)
    yield from parameters_bound(node, name)
    kinds = {type(inner) for inner in own_nodes(node)}
    runs_off = may_run_off(node.body) if ast.Return in kinds and not kinds & {ast.Yield, ast.YieldFrom} else None
    if runs_off is not None:
        claim = f"Every way through `{name}` that ends normally ends in a `return` statement; none runs off the end of its body."
        yield Statement("runs_off", claim, not runs_off, "the statements that end its body")


def called_in_loops(node: AnyFunction, name: str) -> Iterator[Statement]:
    inside: set[str] = set()
    anywhere: Counter[str] = Counter()
    for inner in ast.walk(node):
        if isinstance(inner, ast.Call) and (called := plain_name(inner.func)):
            anywhere[called] += 1
        repeated: list[ast.AST] = []
        if isinstance(inner, LOOPS):
            repeated = [*inner.body, *([inner.test] if isinstance(inner, ast.While) else [])]
        elif isinstance(inner, ast.ListComp | ast.SetComp | ast.DictComp | ast.GeneratorExp):
            repeated = [inner]
        elif isinstance(inner, (*OWN_SCOPE[:3],)) and inner is not node:
            repeated = [inner]  # who knows how often that is called
        for top in repeated:
            inside |= {called for one in ast.walk(top) if isinstance(one, ast.Call) and (called := plain_name(one.func))}
    loops = {
        called
        for inner in ast.walk(node)
        if isinstance(inner, ast.For | ast.While)
        for top in inner.body
        for one in ast.walk(top)
        if isinstance(one, ast.Call) and (called := plain_name(one.func))
    }
    for called in sorted(anywhere):
        claim = f"In `{name}`, `{called}(…)` is called in the body of a `for` or `while` loop."
        if called in loops:
            yield Statement("in_a_loop", claim, True, "where the call stands")
        elif called not in inside and loops:
            yield Statement("in_a_loop", claim, False, "where the call stands")


def plain_name(node: ast.expr) -> str:
    return (
        node.id
        if isinstance(node, ast.Name)
        else f"{node.value.id}.{node.attr}"
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name)
        else ""
    )


def bindings(node: AnyFunction) -> Counter[str]:
    """Counts the statements of a function's own scope that bind each name."""
    found: Counter[str] = Counter()
    for inner in own_nodes(node):
        if isinstance(inner, ast.Name) and isinstance(inner.ctx, ast.Store):
            found[inner.id] += 1
    return found


def bound_often(node: AnyFunction, name: str) -> Iterator[Statement]:
    parameters = {one.arg for one in ast.walk(node.args) if isinstance(one, ast.arg)}
    barred = {n for inner in ast.walk(node) if isinstance(inner, ast.Global | ast.Nonlocal) for n in inner.names}
    for bound, count in sorted(bindings(node).items()):
        if bound not in parameters | barred and not bound.startswith("_"):
            claim = f"`{name}` assigns to the local name `{bound}` in more than one place (loop targets count)."
            yield Statement("assigned_twice", claim, count > 1, "the places that bind it")


def parameters_bound(node: AnyFunction, name: str) -> Iterator[Statement]:
    found = bindings(node)
    for one in [*node.args.args, *node.args.kwonlyargs]:
        if one.arg not in ("self", "cls"):
            yield Statement("parameter_kept", f"`{name}` never assigns anew to its own parameter `{one.arg}`.", not found[one.arg], "the places that bind it")


def raised(node: AnyFunction, name: str) -> Iterator[Statement]:
    """Of the errors that a function names, which it raises itself."""
    raises = {
        plain_name(inner.exc.func if isinstance(inner.exc, ast.Call) else inner.exc) for inner in ast.walk(node) if isinstance(inner, ast.Raise) and inner.exc
    }
    caught = {
        plain_name(one)
        for inner in ast.walk(node)
        if isinstance(inner, ast.ExceptHandler) and inner.type
        for one in ast.walk(inner.type)
        if isinstance(one, ast.expr)
    }
    for error in sorted((raises | caught) - {""}):
        if error[:1].isupper() or "." in error:
            claim = f"The body of `{name}` has a `raise` statement that names `{error}`."
            yield Statement("raises", claim, error in raises, "its raise statements")


def may_run_off(body: Sequence[ast.stmt]) -> bool | None:
    """Tells whether a body can come to its end without return or raise; None where the text alone does not say."""
    last = body[-1]
    match last:
        case ast.Return() | ast.Raise():
            return False
        case ast.If() if last.orelse:
            return either([last.body, last.orelse])
        case ast.Assign() | ast.AugAssign() | ast.Delete():
            return True
        case ast.Expr(value=ast.Call(func=called)) if plain_name(called).rpartition(".")[2] not in NEVER_BACK:
            return True
        case _:
            return None


def either(bodies: Sequence[Sequence[ast.stmt]]) -> bool | None:
    found = [may_run_off(body) for body in bodies]
    return True if True in found else None if None in found else False


# ------------------------------------------------------------------ what running it proves


def is_alone(function: Function, module: Module) -> bool:
    """Tells whether a function can be understood by its own text: it reads nothing of its module but Python's own names."""
    own = {one.arg for one in ast.walk(function.node) if isinstance(one, ast.arg)}
    own |= {inner.id for inner in ast.walk(function.node) if isinstance(inner, ast.Name) and isinstance(inner.ctx, ast.Store)}
    annotations = {id(one) for top in annotated(function.node) for one in ast.walk(top)}
    read = {inner.id for inner in ast.walk(function.node) if isinstance(inner, ast.Name) and isinstance(inner.ctx, ast.Load) and id(inner) not in annotations}
    return read <= own | BUILT_IN


def annotated(node: AnyFunction) -> list[ast.expr]:
    found = [one.annotation for one in ast.walk(node) if isinstance(one, ast.arg | ast.AnnAssign) and one.annotation is not None]
    return [*found, *([node.returns] if node.returns is not None else [])]


def executed(telling: Telling, files: Sequence[File], chance: random.Random) -> Iterator[tuple[File, Function, Statement]]:
    """Calls functions that stand alone, with arguments of tests or made-up ones, and says of them what they gave, or what they gave for others."""
    wanted: dict[str, list[tuple[File, Function, list[dict[str, str]]]]] = defaultdict(list)
    count = 0
    for file in files:
        for function in file.functions:
            if count < MOST_CALLED and generated.can_call(file.tree, function) and is_alone(function, file.module):
                examples = telling.tested.examples.get(f"{file.path}:{function.first}", ()) if telling.tested is not None else ()
                wanted[file.path].append((file, function, generated.arguments(function, chance, examples, 12)))
                count += 1
    for path, group in sorted(wanted.items()):
        plan = {
            "variants": [{"id": "original", "files": {}}],
            "module": generated.module_of(path),
            "functions": [{"function": function.name, "calls": calls} for _, function, calls in group],
            "paths": verifying.source_folders(telling.tree),
        }
        try:
            said = {line["function"]: line for line in verifying.asked(telling.place, telling.tree, verifying.CALLER, plan, 60 + 60 * len(group))}
        except verifying.NoTests:
            telling.told["could not be called"] += len(group)
            continue
        for file, function, calls in group:
            line = said.get(function.name, {})
            for statement in returned(function, calls, line.get("answers", []), line.get("again", []), chance):
                yield file, function, statement


def returned(
    function: Function, calls: Sequence[Mapping[str, str]], answers: Sequence[str], again: Sequence[str], chance: random.Random
) -> Iterator[Statement]:
    """Makes one true and one false statement of what a function gave: the false one has the answer that another call got."""
    sure = {
        i: answer.removeprefix("= ")
        for i, (answer, second) in enumerate(zip(answers, again, strict=False))
        if answer == second and answer.startswith("= ") and len(answer) <= LONGEST_ANSWER and " | {" not in answer
    }
    if len(set(sure.values())) < 2:
        return
    one, other = chance.sample(sorted(sure), 2) if len(sure) > 1 else (0, 0)
    yield Statement("returns", sentence(function, calls[one], sure[one]), True, "a call in the sandbox")
    wrong = [answer for answer in sorted(set(sure.values())) if answer != sure[other] and type_of(answer) == type_of(sure[other])]
    if wrong:
        yield Statement("returns", sentence(function, calls[other], chance.choice(wrong)), False, "a call in the sandbox")


def type_of(text: str) -> str:
    try:
        return type(ast.literal_eval(text)).__name__
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        return ""


def sentence(function: Function, call: Mapping[str, str], answer: str) -> str:
    return f"`{function.node.name}({', '.join(f'{name}={text}' for name, text in call.items())})` returns `{answer}`."


# ------------------------------------------------------------------ a set of them


def tell(telling: Telling, count: int) -> list[ClaimTask]:
    """Makes claims: of each form as many true as false ones, of a function one at most."""
    chance = random.Random(telling.seed)
    files = list(read_files(telling.place, telling.commit))
    pools: dict[str, dict[bool, list[tuple[File, Function, Statement]]]] = defaultdict(lambda: {True: [], False: []})
    for file in files:
        for function in file.functions:
            for statement in facts(function):
                pools[statement.form][statement.value].append((file, function, statement))
    for found in executed(telling, chance.sample(files, len(files)), chance):
        pools[found[2].form][found[2].value].append(found)
    for pool in pools.values():
        for side in pool.values():
            chance.shuffle(side)
    taken: set[str] = set()
    by_file: Counter[str] = Counter()
    made: list[ClaimTask] = []
    order = sorted(pools)
    while len(made) < count and order:
        form = order.pop(0)
        true = next_free(pools[form][True], taken, by_file)
        false = next_free(pools[form][False], taken, by_file)
        if true is None or false is None:
            continue  # a form that has no more of one kind is over
        made += [task_of(telling, *true), task_of(telling, *false)]
        order.append(form)
    telling.told.update(Counter(one.source["operator"] for one in made))
    return made[: count - count % 2]


def next_free(pool: list[tuple[File, Function, Statement]], taken: set[str], by_file: Counter[str]) -> tuple[File, Function, Statement] | None:
    """Takes the next statement whose function has none yet."""
    while pool:
        file, function, statement = pool.pop()
        if f"{file.path}:{function.name}" not in taken and by_file[file.path] < MOST_A_FILE:
            taken.add(f"{file.path}:{function.name}")
            by_file[file.path] += 1
            return file, function, statement
    return None


def task_of(telling: Telling, file: File, function: Function, statement: Statement) -> ClaimTask:
    name = hashlib.sha256(f"{telling.place.name}\n{file.path}\n{function.name}\n{statement.claim}".encode("utf-8", "surrogatepass")).hexdigest()[:12]
    source = {
        "repo": telling.place.name,
        "path": file.path,
        "commit": telling.commit.id,
        "date": f"{telling.commit.date:%Y-%m-%d}",
        "licence": telling.place.licence,
        "origin": "claim",
        "operator": statement.form,
        "verified": "run" if statement.form == "returns" else "text",
        "seed": str(telling.seed),
        "note": f"Decided by {statement.proof}.",
    }
    code = functions.window(file.text.source, function.first, function.last)
    return ClaimTask(name, statement.claim, code, statement.value, {key: value for key, value in source.items() if value}, f"{telling.place.name}/{file.path}")
