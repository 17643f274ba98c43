"""`manage.py simulate_bench`: plays the ways to pick members against each other, and shows what each loses."""

from __future__ import annotations

import sys
from argparse import ArgumentParser
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from panels import picking, regret_chart, replay, simulate
from panels.simulate import Played, Scenario


class Command(BaseCommand):
    help = "Plays picking by record against fixed, random, best-so-far and an oracle, on made-up or recorded verdicts. Changes nothing."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--scenario", action="append", choices=list(simulate.SCENARIOS), help="One of the made-up histories; may stand several times. All.")
        parser.add_argument("--seeds", type=int, default=10, help="How many times each is played, with other luck (10).")
        parser.add_argument("--panels", type=int, default=simulate.PANELS, help="Panels a history has (2000).")
        parser.add_argument("--per-day", type=int, default=simulate.PER_DAY, help="Panels a day (10): verdicts age by days.")
        parser.add_argument("--models", type=int, default=simulate.MODELS, help="Members of the collection (8).")
        parser.add_argument("--seats", type=int, default=simulate.SEATS, help="How many of them sit (2).")
        parser.add_argument("--half-life", type=float, default=simulate.HALF_LIFE_DAYS, help="Days after which a verdict weighs half (60); 0: never.")
        parser.add_argument("--history", metavar="FILE", help="Play on an export's verdicts instead of made-up ones.")
        parser.add_argument("--collection", help="Which collection of the history; needed with --history.")
        parser.add_argument("--out", metavar="FILE", help="Draw the regret as SVG into this file.")
        parser.add_argument(
            "--export", metavar="FILE", help="Write this server's verdicts, without texts and names of people, as JSON lines (-: stdout), and end."
        )

    def handle(self, *args: Any, **options: Any) -> None:
        if options["export"]:
            self.export(options["export"])
            return
        for name in ("seeds", "panels", "models", "seats", "per_day"):
            if options[name] < 1:
                raise CommandError(f"--{name.replace('_', '-')} must be at least 1, not {options[name]}.")
        if options["panels"] < simulate.POINTS or options["half_life"] < 0:
            raise CommandError(f"--panels must be at least {simulate.POINTS}, --half-life at least 0.")
        drawn = []
        for made in self.histories(options):
            played = [
                simulate.mean([simulate.play(s, policy, options["seats"], n, options["half_life"]) for n, s in enumerate(made)]) for policy in simulate.POLICIES
            ]
            self.table(made[0], played, options["seats"])
            drawn.append((made[0].name, len(made[0].truth), played))
        if options["out"]:
            self.write(options["out"], regret_chart.chart(drawn))
            self.stdout.write(f"Drawn in {options['out']}.")

    def histories(self, options: dict[str, Any]) -> list[list[Scenario]]:
        """Each history once a seed; a recorded one is the same each time, and the luck another."""
        seeds = range(options["seeds"])
        if not options["history"]:
            names = options["scenario"] or list(simulate.SCENARIOS)
            return [[simulate.SCENARIOS[name](seed, options["panels"], options["models"], options["per_day"]) for seed in seeds] for name in names]
        try:
            text = sys.stdin.read() if options["history"] == "-" else Path(options["history"]).read_text(encoding="utf-8")
            lines = replay.read(text.splitlines())
            named = options["collection"]
            if named is None:
                there = ", ".join(sorted({line.collection or '""' for line in lines})) or "none"
                raise CommandError(f"Say which --collection of the history. There are: {there}.")
            return [[replay.scenario(lines, named, options["seats"])] * options["seeds"]]
        except OSError as error:
            raise CommandError(f"{options['history']} cannot be read: {error.strerror}.") from None
        except UnicodeDecodeError:
            raise CommandError(f"{options['history']} is not UTF-8.") from None
        except replay.HistoryError as error:
            raise CommandError(str(error)) from None

    def table(self, scenario: Scenario, played: Sequence[Played], seats: int) -> None:
        panels, models = len(scenario.truth), len(scenario.models)
        self.stdout.write(f"{scenario.name}: {panels} panels, {min(seats, models)} of {models} models sit")
        self.stdout.write(f"  {'policy':<14}{'regret':>10}{'a panel':>10}{'longest wait':>15}")
        for one in played:
            self.stdout.write(f"  {one.policy:<14}{one.regret:>10.1f}{one.regret / panels:>10.3f}{one.longest_wait:>15}")
        self.stdout.write(f"  With record every model sits within {picking.turn_within(models, min(seats, models))} panels.\n")

    def export(self, file: str) -> None:
        if file == "-":
            for line in replay.written():
                self.stdout.write(line)
            return
        try:
            with Path(file).open("w", encoding="utf-8") as out:
                count = 0
                for line in replay.written():
                    out.write(line + "\n")
                    count += 1
        except OSError as error:
            raise CommandError(f"{file} cannot be written: {error.strerror}.") from None
        self.stdout.write(f"{count} verdicts in {file}, without texts and names of people.")

    def write(self, file: str, text: str) -> None:
        try:
            Path(file).write_text(text, encoding="utf-8")
        except OSError as error:
            raise CommandError(f"{file} cannot be written: {error.strerror}.") from None
