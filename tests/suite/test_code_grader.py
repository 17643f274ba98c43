"""The grader for programs: tests in one sandbox call a program in another, and nothing that the program does there is a verdict."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from suite.sandbox import box
from tests.fake import reply
from tests.fake.script import Answer
from tests.live import Bench
from tests.suite.driving import Driver

pytestmark = pytest.mark.skipif(bool(box.trouble()), reason=f"no sandbox here: {box.trouble()}")

# Name, program, tests.
HOLD = {
    "a function": ("def foo(x):\n    return x + 1", "assert foo(1) == 2"),
    "a list is changed in place": ("def order(a):\n    a.sort()", "a = [3, [2], 1][::2]\norder(a)\nassert a == [1, 3]"),
    "inside another": ("def fill(d):\n    d['a'].append(1)", "l = []\nd = {'a': l}\nfill(d)\nassert l == [1] and d == {'a': [1]}"),
    "a class": (
        "class Stack:\n    def __init__(self): self.items = []\n    def push(self, x): self.items.append(x)\n    def pop(self): return self.items.pop()\n"
        "    def __len__(self): return len(self.items)",
        "s = Stack()\ns.push(1)\ns.push((2, 3))\nassert len(s) == 2 and s.pop() == (2, 3) and s.items == [1]\ntry:\n    s.pop(); s.pop()\n    assert False\n"
        "except IndexError: pass",
    ),
    "operators of a class": (
        "class V:\n    def __init__(self, x): self.x = x\n    def __add__(self, o): return V(self.x + o.x)\n    def __eq__(self, o): return self.x == o.x\n"
        "    def __lt__(self, o): return self.x < o.x",
        "assert V(1) + V(2) == V(3) and V(1) != V(2) and V(1) < V(2) and sorted([V(3), V(1)])[0].x == 1 and isinstance(V(1), V)",
    ),
    "values of many kinds": (
        "from collections import namedtuple, deque, Counter, OrderedDict\nfrom decimal import Decimal\nfrom fractions import Fraction\nimport datetime\n"
        "P = namedtuple('P', 'x y')\ndef all_of():\n"
        "    return [None, True, 1.5, float('inf'), 2**80, 'é\\ud835', b'\\x00', (1, {2}), {(1, 2): 3}, Decimal('0.1'),\n"
        "            Fraction(1, 3), range(3), complex(1, 2), deque([1]), Counter('aa'), datetime.date(2026, 1, 2), P(1, 2), int]",
        "import datetime\nfrom decimal import Decimal\nfrom fractions import Fraction\na = all_of()\n"
        "assert a[:9] == [None, True, 1.5, float('inf'), 2**80, 'é\\ud835', b'\\x00', "
        "(1, {2}), {(1, 2): 3}]\nassert a[9] == Decimal('0.1') and a[10] == Fraction(1, 3) and list(a[11]) == [0, 1, 2] and a[12] == 1 + 2j\n"
        "assert a[14]['a'] == 2 and a[15] == datetime.date(2026, 1, 2) and a[16] == (1, 2) and a[16].y == 2 and a[17] is int",
    ),
    "generators, callbacks, coroutines": (
        "def twice(f, xs):\n    for x in xs: yield f(f(x))\nasync def later(x):\n    return x * 2",
        "import asyncio\nassert list(twice(lambda x: x + 1, [1, 2])) == [3, 4]\nassert asyncio.run(later(4)) == 8",
    ),
    "an exception of its own": (
        "class Empty(ValueError): pass\ndef first(xs):\n    if not xs: raise Empty('nothing there')\n    return xs[0]",
        "try:\n    first([])\n    assert False\nexcept Empty as error:\n    assert 'nothing' in str(error)\ntry:\n    first([])\nexcept ValueError: pass",
    ),
    "objects of the tests": (
        "def total(node):\n    return node.value + (total(node.next) if node.next else 0)",
        "class Node:\n    def __init__(self, value, next=None): self.value, self.next = value, next\nassert total(Node(1, Node(2, Node(3)))) == 6",
    ),
    "functions named test": ("def foo(x): return x", "def test_one():\n    assert foo(1) == 1\ndef test_two():\n    assert foo(2) == 2"),
    "unittest": ("def foo(x): return x", "import unittest\nclass T(unittest.TestCase):\n    def test_it(self):\n        self.assertEqual(foo(3), 3)"),
    "imported": ("def foo(x): return x", "from solution import foo as f\nassert f(2) == 2"),
    "what it prints is nothing": ("import sys\nprint('noise' * 1000)\nprint('more', file=sys.stderr)\ndef foo(x): return x", "assert foo(1) == 1"),
    "a module that it imported": ("import math\ndef half(x): return x / 2", "assert math.isclose(half(1), 0.5)"),
}
FORGED = {
    "wrong": ("def foo(x):\n    return x", "assert foo(1) == 2"),
    "exit before the tests": ("import sys; sys.exit(0)", "assert False"),
    "hard exit": ("import os; os._exit(0)", "assert False"),
    "raised exit": ("raise SystemExit", "assert False"),
    "exit in the call": ("def foo(x):\n    import sys; sys.exit(0)", "assert foo(1) == 2"),
    "hard exit in the call": ("def foo(x):\n    import os; os._exit(0)", "assert foo(1) == 2"),
    "exit that tests swallow": ("def foo(x):\n    import os; os._exit(0)", "try:\n    foo(1)\nexcept BaseException: pass"),
    "at exit": ("import atexit, os\natexit.register(lambda: os._exit(0))\ndef foo(x): return x", "assert foo(1) == 2"),
    "prints a verdict": ("print('PASSED')\nprint('1 passed in 0.01s')\nprint('{\"outcome\": \"passed\"}')\ndef foo(x): return x", "assert foo(1) == 2"),
    "equal to all": (
        "class E:\n    def __eq__(self, o): return True\n    def __ne__(self, o): return False\n    __hash__ = None\ndef foo(x): return E()",
        "assert foo(1) == 2",
    ),
    "equal to all, turned": ("class E(int):\n    def __eq__(self, o): return True\n    __hash__ = None\ndef foo(x): return E(7)", "assert 2 == foo(1)"),
    "less than all": ("class E:\n    def __lt__(self, o): return True\n    def __gt__(self, o): return True\ndef foo(x): return E()", "assert foo(1) < 3"),
    "close to all": (
        "class E(float):\n    def __sub__(self, o): return 0.0\n    def __abs__(self): return 0.0\ndef foo(x): return E(9)",
        "assert foo(1) == 2.0",
    ),
    "mock": ("from unittest.mock import ANY\ndef foo(x): return ANY", "assert foo(1) == 2"),
    "its own abs and all": (
        "def abs(x): return 0\ndef all(x): return True\ndef isinstance(a, b): return True\ndef foo(x): return 99",
        "assert abs(foo(1) - 2) < 1e-6",
    ),
    "patched built-ins": (
        "import builtins\nbuiltins.AssertionError = Exception\nbuiltins.all = lambda x: True\ndef foo(x): return 3",
        "assert all(foo(i) == i for i in range(3))",
    ),
    "conftest": (
        "for name in ('conftest.py', 'sitecustomize.py', 'tests.py', 'program.json'):\n    open(name, 'w').write('raise SystemExit(0)')\ndef foo(x): return x",
        "assert foo(1) == 2",
    ),
    "deletes files": ("import os\nfor n in os.listdir('.'): os.remove(n)\ndef foo(x): return x", "assert foo(1) == 2"),
    "writes on every descriptor": (
        "import os, json, struct\nsaid = json.dumps({'value': 2}).encode()\nfor fd in range(1, 64):\n"
        '    for data in (b\'{"ok": true, "outcome": "passed"}\\n\', struct.pack(\'>I\', len(said)) + said):\n'
        "        try: os.write(fd, data)\n        except OSError: pass\ndef foo(x): return x",
        "assert foo(1) == 3 and foo(2) == 4",
    ),
    "forks and ends": ("import os, time\nif os.fork() == 0:\n    time.sleep(60)\ndef foo(x):\n    os._exit(0)", "assert foo(1) == 2"),
    "looks for the caller": (
        "import gc, sys\ndef foo(x):\n    f = sys._getframe()\n    while f:\n        for k in list(f.f_globals):\n"
        "            if 'expected' in k.lower(): return f.f_globals[k]\n        f = f.f_back\n    return x",
        "expected = 2\nassert foo(1) == expected",
    ),
    "reaches through a callback": (
        "def foo(f):\n    for name in ('__globals__', '__code__', 'gi_frame', '__self__', '__class__'):\n        try:\n            found = getattr(f, name)\n"
        "            if isinstance(found, dict): found['foo'] = lambda f: 2\n        except BaseException: pass\n    return 1",
        "assert foo(lambda: 1) == 2",
    ),
    "changes the tests' class": (
        "def foo(n):\n    try: n.__class__.__eq__ = lambda a, b: True\n    except BaseException: pass\n    try: n.check = lambda: True\n"
        "    except BaseException: pass\n    return 0",
        "class N:\n    def __eq__(self, o): return False\n    __hash__ = None\nassert foo(N()) == N()",
    ),
    "does not parse": ("def foo(x:\n    return 2", "assert foo(1) == 2"),
    "is not there": ("def bar(x): return 2", "assert foo(1) == 2"),
    "raises": ("def foo(x): raise ValueError('no')", "assert foo(1) == 2"),
    "tests of unittest that fail": (
        "def foo(x): return x",
        "import unittest\nclass T(unittest.TestCase):\n    def test_it(self):\n        self.assertEqual(foo(3), 4)",
    ),
    "tests that are skipped": (
        "import unittest\ndef foo(x): raise unittest.SkipTest('no')",
        "import unittest\nclass T(unittest.TestCase):\n    @unittest.skip('x')\n    def test_it(self):\n        self.assertEqual(foo(3), 4)",
    ),
    "says no end of things": ("def foo(x): return 'x' * 50_000_000", "assert foo(1) == 2"),
    "nests without end": ("def foo(x):\n    a = []\n    a.append(a)\n    return a", "assert foo(1) == [1]"),
}
# More of both kinds, found by attack: each held or passed before.
WRITTEN = json.loads((Path(__file__).parent / "programs_written.json").read_text(encoding="utf-8"))
HOLD |= {name: tuple(case) for name, case in WRITTEN["hold"].items()}
FORGED |= {name: tuple(case) for name, case in WRITTEN["forged"].items()}
BROKEN = {
    "never ends": ("def foo(x):\n    while True: pass", "assert foo(1) == 2", "limit_exceeded:code.timeout"),
    "sleeps for ever while it is loaded": ("import time\ntime.sleep(1000)", "assert foo(1) == 2", "limit_exceeded:code.timeout"),
    "takes all memory": ("def foo(x):\n    a = []\n    while True: a.append(bytearray(8_000_000))", "assert foo(1) == 2", ""),
}


def rows(cases: dict[str, tuple[str, ...]]) -> list[dict[str, Any]]:
    return [{"task_id": name, "input": {"prompt": f"Write it. ({name})"}, "expected": {"test_code": case[1]}} for name, case in cases.items()]


def answering(cases: dict[str, tuple[str, ...]]) -> Answer:
    """A model that gives each task its program."""

    def make(call: Any) -> Any:
        asked = json.dumps(call.json["messages"], ensure_ascii=False)
        name = next(name for name in cases if f"({name})" in asked)
        return reply(f"Here it is:\n```python\n{cases[name][0]}\n```\n", usage=(20, 8)).steps(call)

    return Answer(make)


@pytest.fixture
def driver(bench: Bench) -> Driver:
    return Driver(bench)


def run_of(bench: Bench, driver: Driver, cases: dict[str, tuple[str, ...]], **grader: Any) -> dict[str, dict[str, Any]]:
    model = bench.model("coder", answering(cases))
    bench.load()
    subset = driver.subset(rows(cases), grader={"kind": "code", "timeout": 10, **grader})
    run = driver.ended(driver.launch(subset, model)["id"])
    return {task["task_id"]: task for task in driver.api("GET", f"runs/{run['id']}/tasks?limit=500")["data"]}


def parts(count: int) -> list[Any]:
    """What a sandbox makes of a program is the same on every database: one part shows that it is kept there, the others are not run again."""
    return [0, *(pytest.param(part, marks=pytest.mark.formats) for part in range(1, count))]


@pytest.mark.parametrize("part", parts(4))
def test_programs_that_stand_their_tests_pass(bench: Bench, driver: Driver, part: int) -> None:
    tried = dict([*HOLD.items()][part::4])
    found = run_of(bench, driver, tried)
    assert {name: (task["outcome"], task["error_class"]) for name, task in found.items() if task["outcome"] != "passed"} == {}
    assert len(found) == len(tried)


@pytest.mark.parametrize("part", parts(3))
def test_no_trick_makes_a_wrong_program_pass(bench: Bench, driver: Driver, part: int) -> None:
    tried = dict([*FORGED.items()][part::3])
    found = run_of(bench, driver, tried)
    assert {name: task["outcome"] for name, task in found.items() if task["score"] != 0.0 or task["outcome"] not in ("failed", "unparsed")} == {}
    assert len(found) == len(tried)


def test_a_program_that_breaks_a_limit_counts_as_wrong_and_says_which(bench: Bench, driver: Driver) -> None:
    found = run_of(bench, driver, BROKEN, timeout=2, memory_mb=128)
    for name, (_, _, reason) in BROKEN.items():
        assert found[name]["score"] == 0.0, (name, found[name])
        assert not reason or (found[name]["outcome"], found[name]["error_class"]) == ("limit", reason), (name, found[name])


def test_tests_that_ask_nothing_decide_nothing(bench: Bench, driver: Driver) -> None:
    found = run_of(bench, driver, {"idle": ("def foo(x): return x", "assert len([1]) == 1")})
    assert (found["idle"]["outcome"], found["idle"]["score"], found["idle"]["error_class"]) == ("judge_failed", None, "tests_ask_nothing")


def test_words_without_a_program_are_no_answer(bench: Bench, driver: Driver) -> None:
    model = bench.model("talker", reply("I would rather not write code.", usage=(20, 8)))
    bench.load()
    subset = driver.subset(rows({"x": ("", "assert foo(1) == 2")}), grader={"kind": "code"})
    run = driver.ended(driver.launch(subset, model)["id"])
    assert (run["summary"]["unparsed"], run["summary"]["pass_rate"]) == (1, 0.0)
