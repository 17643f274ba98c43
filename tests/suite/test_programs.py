"""Programs as models write them: where in an answer they stand, and which of several is meant."""

from __future__ import annotations

import pytest

from suite.grading import programs
from suite.grading.contract import Output, Program, RowError
from suite.grading.kinds.code import KIND

F = "def f(x):\n    return x\n"
G = "def g(x):\n    return f(x)\n"

ANSWERS: list[tuple[str, str, str | None]] = [
    ("a fence", f"Here:\n```python\n{F}```\nDone.", F),
    ("a fence without a language", f"```\n{F}```", F),
    ("tildes", f"~~~python\n{F}~~~", F),
    ("a fence in a list, indented", "1. So:\n\n   ```python\n   def f(x):\n       return x\n   ```\n", F),
    ("a fence in a quotation", "> ```python\n> def f(x):\n>     return x\n> ```\n", F),
    ("backticks inside tildes", "~~~python\ndef f(x):\n    '''\n    ```\n    no end\n    ```\n    '''\n    return x\n~~~", None),
    ("a longer fence around a shorter one", "````python\ndef f(x):\n    s = '''\n```\n'''\n    return x\n````", None),
    ("no fence", f"{F}", F),
    ("no fence, words around", f"Sure, this does it:\n\n{F}\nIt gives x back.", F),
    ("the last version holds", f"```python\ndef f(x):\n    return 0\n```\nNo, better:\n```python\n{F}```", F),
    ("an example afterwards is none", f"```python\n{F}```\nUse it so:\n```python\nprint(f(1))\n```", F),
    ("another language beside it", f"```bash\npip install x\n```\n```python\n{F}```\n```json\n{{}}\n```", F),
    ("cut off in a block", f"```python\n{F}", F),
    ("a whole block before a cut one", f"```python\n{F}```\nand\n```python\ndef f(", F),
    ("carriage returns", "```python\r\ndef f(x):\r\n    return x\r\n```\r\n", F),
    ("a language with attributes", f'```python title="a.py"\n{F}```', F),
    ("a fence's sign in a line of code", '```python\ndef f(x):\n    """```"""\n    return x\n```', 'def f(x):\n    """```"""\n    return x\n'),
]


@pytest.mark.parametrize(("_", "text", "code"), ANSWERS, ids=[a[0] for a in ANSWERS])
def test_the_program_of_an_answer(_: str, text: str, code: str | None) -> None:
    found = programs.program(text, {"f"})
    assert found is not None
    space: dict[str, object] = {}
    exec(found, space)
    assert space["f"](7) == 7  # type: ignore[operator]
    if code is not None:
        assert found.strip() == code.strip()


def test_a_program_in_pieces_is_put_together() -> None:
    text = f"First:\n```python\n{F}```\nThen:\n```python\n{G}```\n"
    assert programs.program(text, {"f", "g"}) == f"{F}\n{G}"
    assert programs.program(text, {"g"}) == G


@pytest.mark.parametrize("text", ["", "I cannot do that.", "```json\n{}\n```", "The function f takes x.", "```bash\nls\n```", "Paris"])
def test_no_program_is_none(text: str) -> None:
    assert programs.program(text) is None


@pytest.mark.parametrize(
    "text", ["-" * 300_000 + "1", "(" * 100_000, "f" + "()" * 100_000, "```\n" * 20_000, "def f(:\n" * 5_000, "x = 1\n" * 20_000 + "(", "a\x00b = 1"]
)
def test_a_hostile_text_is_read_in_bounded_time(text: str) -> None:
    import time

    began = time.process_time()
    programs.program(text)
    assert time.process_time() - began < 20


def test_the_body_alone_goes_on_from_its_prompt() -> None:
    prompt = 'def f(x):\n    """Gives x."""\n'
    for body in ("    return x\n", "return x\n", "```python\n    return x\n```", prompt + "    return x\n"):
        found = KIND.program(Output(body), {"prompt": prompt}, {"test_code": "def check(candidate):\n    assert candidate(1) == 1", "entry_point": "f"})
        assert isinstance(found, Program), body
        space: dict[str, object] = {}
        exec(found.code, space)
        assert space["f"](5) == 5, body  # type: ignore[operator]


ROWS: list[tuple[object, object, str]] = [
    ({}, {"test_code": "assert f(1)"}, "/input/prompt"),
    ({"prompt": "?"}, {}, "/expected/test_code"),
    ({"prompt": "?"}, {"test_code": "assert f("}, "/expected/test_code"),
    ({"prompt": "?"}, {"test_code": "x = 1"}, "/expected/test_code"),
    ({"prompt": "?"}, {"test_code": "def check(candidate):\n    assert candidate(1) == 2"}, "/expected/entry_point"),
    ({"prompt": "?"}, {"test_code": "assert f(1)", "entry_point": "a b"}, "/expected/entry_point"),
    ({"prompt": "?"}, {"test_code": "(" * 5000}, "/expected/test_code"),
]


@pytest.mark.parametrize(("row_input", "expected", "pointer"), ROWS)
def test_tests_that_cannot_test_are_refused(row_input: object, expected: object, pointer: str) -> None:
    with pytest.raises(RowError) as refused:
        KIND.check(row_input, expected)
    assert refused.value.pointer == pointer


@pytest.mark.parametrize("grader", [{"timeout": 0}, {"timeout": True}, {"timeout": float("nan")}, {"timeout": 10**9}, {"memory_mb": 1}, {"memory_mb": "many"}])
def test_limits_that_are_none_are_refused(grader: dict[str, object]) -> None:
    with pytest.raises(RowError):
        KIND.look_at({"kind": "code", **grader})
