"""What ships loses less than chance and than following the best so far, whatever the history; and the command that shows it."""

from __future__ import annotations

import json
from datetime import timedelta
from io import StringIO
from pathlib import Path
from xml.etree import ElementTree

import pytest
from django.core.management import CommandError, call_command

from panels import picking, replay, simulate
from panels.models import Verdict
from tests.panels.conftest import NOW, make_panel

SEEDS, PANELS, MODELS, SEATS = 6, 2000, 8, 2


def played(scenario: str, policy: str, seats: int = SEATS) -> simulate.Played:
    made = [simulate.SCENARIOS[scenario](seed, PANELS, MODELS) for seed in range(SEEDS)]
    return simulate.mean([simulate.play(history, policy, seats, seed) for seed, history in enumerate(made)])


@pytest.mark.parametrize("scenario", list(simulate.SCENARIOS))
def test_what_ships_loses_less_than_chance_and_than_the_best_so_far_and_lets_everybody_play(scenario) -> None:
    ours = played(scenario, "record")
    assert ours.regret < played(scenario, "best so far").regret
    assert ours.regret < 0.6 * played(scenario, "random").regret
    assert ours.regret < played(scenario, "fixed").regret
    assert ours.longest_wait < picking.turn_within(MODELS, SEATS)


def test_an_oracle_loses_nothing_and_nobody_beats_it() -> None:
    assert played("drifting", "oracle").regret == 0
    curve = played("drifting", "record").curve
    assert len(curve) == simulate.POINTS
    assert list(curve) == sorted(curve)


def test_the_same_seed_plays_the_same_game() -> None:
    history = simulate.drifting(3, 300, 5)
    assert simulate.play(history, "record", 2, 3) == simulate.play(simulate.drifting(3, 300, 5), "record", 2, 3)
    assert simulate.play(history, "record", 2, 3) != simulate.play(history, "record", 2, 4)


# ------------------------------------------------------------------ the command


def run(*arguments: str) -> str:
    out = StringIO()
    call_command("simulate_bench", *arguments, stdout=out)
    return out.getvalue()


def test_the_command_tells_each_policys_regret_and_draws_it(tmp_path: Path) -> None:
    drawing = tmp_path / "regret.svg"
    told = run("--scenario", "drifting", "--scenario", "sparse", "--seeds", "2", "--panels", "200", "--models", "5", "--out", str(drawing))
    lines = [line.split("  ") for line in told.splitlines()]
    assert [line[1] for line in lines if len(line) > 3 and "policy" not in line[1]] == [*simulate.POLICIES] * 2
    assert "drifting: 200 panels, 2 of 5 models sit" in told
    assert "every model sits within 60 panels" in told
    root = ElementTree.parse(drawing).getroot()
    assert len(root.findall(".//{http://www.w3.org/2000/svg}polyline")) == 2 * len(simulate.POLICIES)


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["--seeds", "0"], "--seeds must be at least 1"),
        (["--panels", "5"], "--panels must be at least 100"),
        (["--half-life", "-1"], "--half-life at least 0"),
        (["--history", "/nowhere/at/all"], "cannot be read"),
        (["--scenario", "stationary", "--seeds", "1", "--panels", "100", "--out", "/nowhere/at/all.svg"], "cannot be written"),
    ],
)
def test_what_cannot_be_played_is_said_in_a_line(arguments, says) -> None:
    with pytest.raises(CommandError, match=says):
        run(*arguments)


@pytest.mark.django_db
def test_an_export_holds_no_texts_and_no_names_and_can_be_played(tmp_path: Path) -> None:
    for n in range(80):
        panel = make_panel({"model": "mercury", "called": False}, {"model": "venus", "called": False})
        for seat in panel.seats.all():
            useful = (n % 10 < 8) if seat.model == "mercury" else (n % 10 < 3)
            said = {"note": "a private note", "real": ["a private claim"], "false": []}
            Verdict.objects.create(call=seat.call, judge="ada", model=seat.model, collection="core", useful=useful, at=NOW + timedelta(hours=n), **said)
    file = tmp_path / "history.jsonl"
    assert "160 verdicts" in run("--export", str(file))
    text = file.read_text()
    assert "private" not in text
    assert "ada" not in text
    first, second = (json.loads(line) for line in text.splitlines()[:2])
    assert first == {"at": NOW.isoformat(), "panel": 1, "collection": "core", "model": "mercury", "judge": 1, "useful": True, "real": 1, "false": 0}
    assert second["panel"] == 1

    lines = replay.read(text.splitlines())
    history = replay.scenario(lines, "core", 1)
    assert history.models == ("mercury", "venus")
    assert len(history.truth) == 80
    assert history.truth[40][0] > 0.7 > 0.4 > history.truth[40][1]
    assert history.said[0, 0] is True
    told = run("--history", str(file), "--collection", "core", "--seats", "1", "--seeds", "2")
    assert "history of core: 80 panels, 1 of 2 models sit" in told
    with pytest.raises(CommandError, match=r"Say which --collection of the history\. There are: core"):
        run("--history", str(file))


def test_a_model_that_came_later_is_there_from_its_first_verdict_on() -> None:
    def line(n: int, model: str, useful: bool) -> str:
        at = (NOW + timedelta(days=n)).isoformat()
        return json.dumps({"at": at, "panel": n, "collection": "core", "model": model, "judge": 1, "useful": useful, "real": 0, "false": 0})

    texts = [line(n, "old", n < 40) for n in range(80)] + [line(n, "new", True) for n in range(50, 80)]
    history = replay.scenario(replay.read(texts), "core", 1)
    assert [history.truth[t][1] is None for t in (0, 49, 50, 79)] == [True, True, False, False]
    assert history.truth[5][0] > 0.8 > 0.2 > history.truth[75][0], "a model that changed is seen to change"


VERDICT = '{"at": "2026-01-01T00:00:00+00:00", "panel": 1, "collection": "c", "model": "m", "judge": 1, "useful": true, "real": 0, "false": 0}'
BROKEN = [
    (line, "Line 1 is no verdict")
    for line in (
        *(VERDICT.replace('"panel": 1', f'"panel": {odd}') for odd in ("1e400", "NaN", "-Infinity", "null", '"x"', "{}", "1" * 5000)),
        *(VERDICT.replace("2026-01-01T", odd) for odd in ("0000-01-01T", "99999-01-01T", "2026-13-01T", "T")),
        VERDICT.replace("true", '"yes"'),
        "[" * 100_000,
        '{"at": ' * 100_000,
        VERDICT[:-5],
    )
]


@pytest.mark.parametrize(
    ("text", "says"),
    [("no json", "Line 1 is no verdict"), ('{"at": "2026-01-01T00:00:00"}', "Line 1 is no verdict"), ("[]", "Line 1"), ("\n\n{}", "Line 3"), *BROKEN],
)
def test_a_line_that_is_no_verdict_is_named(text, says) -> None:
    with pytest.raises(replay.HistoryError, match=says):
        replay.read(text.splitlines())


def test_a_history_that_is_too_short_says_so() -> None:
    with pytest.raises(replay.HistoryError, match="holds 0 judged panels of core; 50"):
        replay.scenario([], "core", 1)
