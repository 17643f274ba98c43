"""Review tasks out of a repository: planted and real faults with their controls, and claims, all proved in the sandbox."""

from __future__ import annotations

import ast
import difflib
import json
from collections import defaultdict
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command

from suite.models import Benchmark, Row, Subset
from suite.review.functions import dedented
from suite.sandbox import box
from tests.suite import repositories

needs_sandbox = pytest.mark.skipif(bool(box.trouble()), reason=f"no sandbox here: {box.trouble()}")


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A data folder whose config/repos.json names a little repository."""
    folder = tmp_path_factory.mktemp("home")
    repositories.shop(folder / "code" / "shop")
    (folder / "config").mkdir()
    told = {"roots": [str(folder / "code")], "repos": {"shop": {"path": str(folder / "code" / "shop"), "tests": ["tests"], "licence": "MIT"}}}
    (folder / "config" / "repos.json").write_text(json.dumps(told))
    return folder


def suite(*arguments: str) -> str:
    out = StringIO()
    call_command("suite", *arguments, stdout=out)
    return out.getvalue()


def rows_in(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


@pytest.fixture(scope="module")
def seeded(home: Path) -> list[dict[str, Any]]:
    """What one go at the little repository gives."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("django.conf.settings.HOME", home)
        suite("seed", "--repo", "shop", "--count", "3", "--real", "2", "--seed", "5", "--out", str(home / "rows.jsonl"))
    return rows_in(home / "rows.jsonl")


def pairs_of(rows: list[dict[str, Any]]) -> dict[str, dict[bool, dict[str, Any]]]:
    found: dict[str, dict[bool, dict[str, Any]]] = defaultdict(dict)
    for row in rows:
        found[row["source"]["pair"]][bool(row["expected"]["lines"])] = row
    return found


@needs_sandbox
def test_each_planted_fault_is_one_line_with_a_clean_control_that_is_proved(seeded: list[dict[str, Any]]) -> None:
    planted = [row for row in seeded if row["source"]["origin"] == "planted"]
    assert len(planted) >= 4
    for both in pairs_of(planted).values():
        assert set(both) == {True, False}
        faulty, clean = both[True], both[False]
        wrong = faulty["input"]["code"].split("\n")
        assert ast.parse(dedented(faulty["input"]["code"]))
        assert ast.parse(dedented(clean["input"]["code"]))
        assert len(wrong) == len(clean["input"]["code"].split("\n"))
        (line,) = faulty["expected"]["lines"]
        original = [text for text in repositories.PRICES.split("\n") if text.strip()]
        odd = [text for text in wrong if text.strip() and text not in original]
        assert odd in ([], [wrong[line - 1]]), "all but the faulty line stands in the file as it is"
        assert faulty["source"]["verified"] in ("tests", "run")
        assert faulty["source"]["licence"] == "MIT"
        assert len(faulty["source"]["commit"]) == 40
        assert faulty["source"]["seed"] == "5"


@needs_sandbox
def test_halves_of_a_pair_stand_apart_under_ids_that_tell_nothing(seeded: list[dict[str, Any]]) -> None:
    planted = [row for row in seeded if row["source"]["origin"] == "planted"]
    places = defaultdict(list)
    for i, row in enumerate(planted):
        places[row["source"]["pair"]].append(i)
        assert not {"bug", "faulty", "clean", "control"} & set(row["task_id"].split("-"))
    assert {later - first for first, later in places.values()} == {len(places)}
    assert len({row["input"]["canary"] for row in planted}) == 1
    assert set(planted[0]["input"]) == {"code", "canary"}, "what is asked is the code alone"


@needs_sandbox
def test_a_fix_in_the_history_becomes_a_pair_that_its_own_test_proves(seeded: list[dict[str, Any]]) -> None:
    (both,) = pairs_of([row for row in seeded if row["source"]["origin"] == "real"]).values()
    assert both[True]["source"]["verified"] == "tests"
    wrong, right = both[True]["input"]["code"].split("\n"), both[False]["input"]["code"].split("\n")
    changed = [line for line in difflib.unified_diff(right, wrong, n=0, lineterm="") if line[:1] in "+-" and line[:3] not in ("+++", "---")]
    assert changed == ["-        spared = spared + cut", "+        spared = cut"]
    assert wrong[both[True]["expected"]["lines"][0] - 1].strip() == "spared = cut"


@needs_sandbox
def test_claims_are_half_true_and_hold_of_the_code(home: Path, settings: Any) -> None:
    settings.HOME = home
    suite("claims", "--repo", "shop", "--count", "2", "--seed", "3", "--out", str(home / "claims.jsonl"))
    rows = rows_in(home / "claims.jsonl")
    assert sorted(row["expected"]["value"] for row in rows) == [False, True]
    names: dict[str, Any] = {}
    exec(repositories.PRICES, names)  # the little repository's own code
    for row in rows:
        if row["source"]["operator"] == "returns":
            call, _, answer = row["input"]["claim"].strip("`.").partition("` returns `")
            assert (repr(eval(call, names)) == answer) == row["expected"]["value"]


@needs_sandbox
@pytest.mark.django_db
def test_seeding_says_what_it_would_keep_and_keeps_it_once(home: Path, settings: Any) -> None:
    settings.HOME = home
    asked = ("seed", "--repo", "shop", "--count", "1", "--real", "0", "--seed", "7")
    with pytest.raises(CommandError, match="--yes"):
        suite(*asked)
    told = suite(*asked, "--dry-run")
    assert "Nothing is sent now" in told
    assert not Benchmark.objects.exists()
    assert "2 new rows" in suite(*asked, "--yes")
    assert "0 new rows, 2 were there" in suite(*asked, "--yes")
    subset = Subset.objects.get()
    assert (subset.benchmark.name, subset.slug, subset.benchmark.owner, subset.benchmark.built_in) == ("rebench-shop", "rebench-shop-planted", "local", "")
    assert Row.objects.filter(subset=subset).count() == 2


REFUSED = [
    ("/etc", "no folder below one of its roots"),
    ("../shop", "no folder below one of its roots"),
    ("unknown", "no name of"),
    ("{code}/out", "no folder below one of its roots"),
    ("{code}/nothing", "is no folder"),
]


@pytest.mark.parametrize(("asked", "said"), REFUSED)
def test_only_what_the_config_allows_is_read(home: Path, settings: Any, asked: str, said: str) -> None:
    settings.HOME = home
    link = home / "code" / "out"
    if not link.is_symlink():
        link.symlink_to("/usr")
    with pytest.raises(CommandError, match=said):
        suite("seed", "--repo", asked.replace("{code}", str(home / "code")), "--dry-run")


WRONG = [
    ([], "must be an object"),
    ({"repos": {"a/b": "/x"}}, "letters, digits"),
    ({"repos": {"a": 3}}, "must be a folder"),
    ({"repos": {"a": {"path": "{code}/shop", "tests": ["../out"]}}}, "inside the repository"),
    ({"repos": {"a": {"path": "{code}/shop", "tests": ["-p evil"]}}}, "inside the repository"),
    ({"repos": {"a": {"path": "{code}/shop", "packages": "/nowhere"}}}, "packages of a"),
    ({"repos": {"a": {"path": "{code}/shop", "colour": "red"}}}, "has no field colour"),
    ({"roots": "/"}, "list of folders"),
]


@pytest.mark.parametrize(("told", "said"), WRONG)
def test_a_wrong_config_is_told_with_its_file(home: Path, tmp_path: Path, settings: Any, told: Any, said: str) -> None:
    settings.HOME = tmp_path
    (tmp_path / "config").mkdir()
    (tmp_path / "config" / "repos.json").write_text(json.dumps(told).replace("{code}", str(home / "code")))
    with pytest.raises(CommandError, match=said):
        suite("seed", "--repo", "a", "--dry-run")
