"""What the chapters measure by: four small benchmarks, made where the server has none of that name yet.

Whoever has a benchmark of their own pins that one instead; nothing else in a chapter changes.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from benchwright import Benchwright, NotFound

SCORERS = Path(__file__).parent / "scorers"
ALGEBRA, CALLS, NUMBERS, PROGRAMS = "Guide: abstract algebra", "Guide: parallel calls", "Guide: word problems", "Guide: programs"


def models(count: int = 1) -> list[str]:
    """The models of the bench that were named on the command line: aliases, or name@endpoint."""
    if len(sys.argv) <= count:
        sys.exit(f"Name {count} model{'s' * (count > 1)} of your bench: python {Path(sys.argv[0]).name} {' '.join(['mercury', 'venus', 'mars'][:count])}")
    return sys.argv[1:]


def question(task_id: str, text: str, choices: list[str], letter: str) -> dict[str, Any]:
    return {"task_id": task_id, "input": {"question": text, "choices": choices}, "expected": {"value": letter}}


ALGEBRA_ROWS = [
    question("order-of-s3", "How many elements does the symmetric group on three letters have?", ["3", "6", "8", "9"], "B"),
    question("units-of-z", "How many units does the ring of integers have?", ["1", "2", "4", "infinitely many"], "B"),
    question("order-of-2", "What is the additive order of 2 in the integers modulo 12?", ["2", "6", "12", "24"], "B"),
    question("subgroups-of-z6", "How many subgroups does the cyclic group of order 6 have?", ["2", "3", "4", "6"], "C"),
    question("abelian-of-4", "How many abelian groups of order 4 are there up to isomorphism?", ["1", "2", "3", "4"], "B"),
    question("field-of-6", "Is there a field with six elements?", ["yes", "no", "only over the reals", "it is not known"], "B"),
    question("sign", "What is the sign of the permutation (1 2 3)?", ["1", "-1", "0", "3"], "A"),
    question("ideals-of-z12", "How many ideals does the ring of integers modulo 12 have?", ["3", "4", "6", "12"], "C"),
]


def function(name: str, **arguments: str) -> dict[str, Any]:
    schema = {"type": "object", "properties": {n: {"type": kind} for n, kind in arguments.items()}, "required": list(arguments)}
    return {"type": "function", "function": {"name": name, "description": f"{name.replace('_', ' ')}", "parameters": schema}}


WEATHER, SUM, ROUTE = function("get_weather", city="string"), function("add", a="integer", b="integer"), function("find_route", start="string", end="string")


def calls(task_id: str, text: str, functions: list[dict[str, Any]], *wanted: tuple[str, dict[str, Any]]) -> dict[str, Any]:
    return {"task_id": task_id, "input": {"question": text, "functions": functions}, "expected": [{"name": n, "args": a} for n, a in wanted]}


CALL_ROWS = [
    calls("two-cities", "What is the weather in Oslo and in Rome?", [WEATHER], ("get_weather", {"city": "Oslo"}), ("get_weather", {"city": "Rome"})),
    calls("two-sums", "Work out 2 + 3 and 10 + 20 with the tool.", [SUM], ("add", {"a": 2, "b": 3}), ("add", {"a": 10, "b": 20})),
    calls(
        "mixed",
        "How is the weather in Lima, and how do I get from Lima to Cusco?",
        [WEATHER, ROUTE],
        ("get_weather", {"city": "Lima"}),
        ("find_route", {"start": "Lima", "end": "Cusco"}),
    ),
    calls("one", "What is the weather in Kyiv?", [WEATHER, SUM], ("get_weather", {"city": "Kyiv"})),
]


NUMBER_ROWS = [
    {"task_id": "apples", "input": {"question": "Three crates hold 12 apples each, and 5 are eaten. How many are left?"}, "expected": "31"},
    {"task_id": "trains", "input": {"question": "A train covers 240 km in 3 hours. How many km does it cover in 5 hours?"}, "expected": "400"},
    {"task_id": "change", "input": {"question": "You pay 2.40 with a coin of 5. How much change do you get?"}, "expected": "2.6"},
]


PROGRAM_ROWS = [
    {
        "task_id": "double",
        "input": {"prompt": "Write a Python function double(x) that gives twice x. Answer with the code alone.", "test": "assert double(4) == 8"},
        "expected": "",
    },
    {
        "task_id": "reverse",
        "input": {
            "prompt": "Write a Python function reverse(s) that gives a text backwards. Answer with the code alone.",
            "test": "assert reverse('abc') == 'cba'",
        },
        "expected": "",
    },
]


def code(name: str) -> str:
    return (SCORERS / f"{name}.py").read_text(encoding="utf-8")


def benchmark(bw: Benchwright, name: str, rows: list[dict[str, Any]], *, category: str, grader: dict[str, Any] | None = None) -> Any:
    """Finds a benchmark with its subset `all`, or makes it. Shape: the benchmark and the subset."""
    try:
        found = bw.registry.benchmarks.find(name=name)
    except NotFound:
        found = bw.benchmarks.create(name=name, category=category, tags=["guide"], idempotency_key=f"guide-{name}")
    subset = next((s for s in bw.subsets.list(found) if s.slug == "all"), None)
    return found, subset or bw.subsets.create(benchmark=found, slug="all", tasks=rows, grader=grader)


def algebra(bw: Benchwright) -> Any:
    """Multiple choice, graded by what is built in. Shape: benchmark, subset, impl."""
    return *benchmark(bw, ALGEBRA, ALGEBRA_ROWS, category="reasoning", grader={"kind": "multiple_choice"}), "latest"


def parallel_calls(bw: Benchwright, scorer: str = "parallel_calls") -> Any:
    """Function calls, graded by a scorer as code, which needs a sandbox on the server. Shape: benchmark, subset, impl."""
    found, subset = benchmark(bw, CALLS, CALL_ROWS, category="tool-use")
    impl = bw.impls.create(benchmark=found, subset=subset, label=scorer, language="python", code=code(scorer))
    return found, subset, impl.id
