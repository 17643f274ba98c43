"""`manage.py suite seed|claims|rebench|load|packs|pack`: review tasks out of code, and the packs that come with the server."""

from __future__ import annotations

import json
import sys
from argparse import ArgumentParser
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError

from suite.api.problems import Problem
from suite.review import baselines, gathering, keeping, packing, packs, repository
from suite.review.gathering import Gathered
from suite.review.repository import ReviewError

OWNER = "local"


class Command(BaseCommand):
    help = "Makes review tasks out of repositories, SWE-rebench-V2 rows or the packs that come with the server. Asks no model, and sends nothing."

    def add_arguments(self, parser: ArgumentParser) -> None:
        verbs = parser.add_subparsers(dest="verb", required=True)
        seed = verbs.add_parser("seed", help="Plant faults in a repository's functions, each with a clean control, and take real ones out of its history.")
        self.add_repository(seed)
        seed.add_argument("--count", type=int, default=20, help="Faults to plant (20).")
        seed.add_argument("--real", type=int, default=10, help="Real faults to look for in the history (10).")
        seed.add_argument("--commits", default="", help="Commits that are known to be fixes, with commas between, instead of those whose messages say so.")
        seed.add_argument("--unverified", action="store_true", help="Take also faults that neither a test nor a call shows.")
        claims = verbs.add_parser("claims", help="Make true and false statements about a repository's functions, each proved.")
        self.add_repository(claims)
        claims.add_argument("--count", type=int, default=40, help="Claims to make (40), half of them false.")
        load = verbs.add_parser("load", help="Load a pack that comes with the server. Nothing is asked of a model by that.")
        load.add_argument("pack", nargs="?", default=packs.STARTER)
        load.add_argument("--passes", action="store_true", help="Let onboarding in full and the weekly schedule run it from now on.")
        load.add_argument("--no-passes", action="store_true", help="Let them run it no longer.")
        verbs.add_parser("packs", help="List the packs and what answers that know nothing earn of them.")
        pack = verbs.add_parser("pack", help="Write a pack's files out of rows that seed and claims wrote with --out.")
        pack.add_argument("folder", type=Path)
        pack.add_argument("files", nargs="+", type=Path, help="JSONL files.")
        pack.add_argument("--title", default="")
        pack.add_argument("--note", action="append", default=[], help="How it was made, a sentence each.")

    def add_repository(self, parser: ArgumentParser) -> None:
        parser.add_argument("--repo", required=True, help="A name in the data folder's config/repos.json, or a path below one of its roots.")
        parser.add_argument("--commit", default="HEAD", help="The commit to read (HEAD). What is not committed is not looked at.")
        parser.add_argument("--seed", type=int, default=1, help="The number that all chance is drawn from (1).")
        parser.add_argument("--owner", default=OWNER, help=f"Whose the benchmark is ({OWNER}, which is the operator key's).")
        parser.add_argument("--out", type=Path, help="Write rows to this file as JSONL instead of keeping them.")
        parser.add_argument("--dry-run", action="store_true", help="Say what would be kept, and keep nothing.")
        parser.add_argument("--yes", action="store_true", help="Do not ask before keeping.")

    def handle(self, *args: Any, **options: Any) -> None:
        try:
            getattr(self, options["verb"])(options)
        except (ReviewError, Problem) as error:
            raise CommandError(str(error)) from None

    # ------------------------------------------------------------------ out of a repository

    def seed(self, options: Mapping[str, Any]) -> None:
        place = repository.find(settings.HOME, options["repo"])
        commit = repository.commit_of(place.folder, options["commit"])
        self.stdout.write(f"{place.name} at {commit.id[:12]} ({commit.date:%Y-%m-%d}), from {place.folder}.")
        known = [name.strip() for name in options["commits"].split(",") if name.strip()]
        found = gathering.seed(
            place, commit, self.say, planted=max(0, options["count"]), real=max(0, options["real"]), seed=options["seed"],
            take_unverified=options["unverified"], commits=known,
        )  # fmt: skip
        self.settle(options, found, [("planted", "planted faults", found.planted), ("real", "real faults", found.real)], keeping.REVIEW, "review_line")

    def claims(self, options: Mapping[str, Any]) -> None:
        place = repository.find(settings.HOME, options["repo"])
        commit = repository.commit_of(place.folder, options["commit"])
        self.stdout.write(f"{place.name} at {commit.id[:12]} ({commit.date:%Y-%m-%d}), from {place.folder}.")
        found = gathering.claim(place, commit, self.say, count=max(2, options["count"]), seed=options["seed"])
        self.settle(options, found, [("", "claims", found.claimed)], keeping.CLAIM, "claim")

    def say(self, line: str) -> None:
        self.stdout.write(line)
        self.stdout.flush()

    def settle(self, options: Mapping[str, Any], found: Gathered, sets: Sequence[tuple[str, str, list[dict[str, Any]]]], name: str, kind: str) -> None:
        """Tells what was found and where it would be kept, then keeps it."""
        self.tell(found, sets, kind)
        if not any(rows for _, _, rows in sets):
            raise CommandError("Nothing was found that holds up. Name tests and packages of the repository in config/repos.json, or take --unverified.")
        out: Path | None = options["out"]
        if out is not None:
            out.write_text("".join([f"{json.dumps(row)}\n" for _, _, rows in sets for row in rows]), encoding="utf-8")
            self.stdout.write(f"Wrote {sum(len(rows) for _, _, rows in sets)} rows to {out}.")
            return
        title = f"{name}-{found.place.name}"
        self.stdout.write(
            f"They would be kept in this server's database, in the benchmark {title} of {options['owner']}, which nobody else sees until one of its runs is\n"
            "shared. Nothing is sent now. A run sends the code above, function by function, to the endpoint of the model that it tests, and nowhere else."
        )
        if options["dry_run"]:
            self.stdout.write("Nothing was kept (--dry-run).")
            return
        if not options["yes"] and not self.agreed():
            self.stdout.write("Nothing was kept.")
            return
        parent = keeping.benchmark(name, title, options["owner"])
        for part, words, rows in sets:
            if rows:
                slug = keeping.slug_of(title, part)
                subset, added = keeping.keep(
                    parent, slug, f"{found.place.name}: {words}", f"From {found.commit.id}.", kind, rows, options["owner"], rolling=True
                )
                self.stdout.write(f"{subset.pk}  {title}/{slug}: {added} new rows, {len(rows) - added} were there.")

    def agreed(self) -> bool:
        if not sys.stdin.isatty():
            raise CommandError("Say --yes to keep them, or --dry-run or --out.")
        return input("Keep them? [y/N] ").strip().lower() in ("y", "yes")

    def tell(self, found: Gathered, sets: Sequence[tuple[str, str, list[dict[str, Any]]]], kind: str) -> None:
        for _, words, rows in sets:
            for row in sorted(rows, key=lambda r: (r["source"].get("path", ""), r["task_id"])):
                if kind == "claim" or row["expected"]["lines"]:
                    source = row["source"]
                    self.stdout.write(f"  {source.get('span') or source['path']}  {source['operator']}, shown by {source['verified']}")
            self.stdout.write(f"{len(rows)} rows of {words}.")
            if rows:
                figures = baselines.of_claims(rows) if kind == "claim" else baselines.of_review(rows)
                self.stdout.write(f"  What answers that know nothing earn: {shown(figures)}")
                for objection in baselines.objections(figures):
                    self.stdout.write(self.style.WARNING(f"  Note: {objection}."))
        if found.told:
            self.stdout.write(f"Looked at: {', '.join(f'{count} {why}' for why, count in found.told.most_common())}.")

    # ------------------------------------------------------------------ packs

    def load(self, options: Mapping[str, Any]) -> None:
        if options["passes"] and options["no_passes"]:
            raise CommandError("--passes and --no-passes exclude each other.")
        passes = True if options["passes"] else False if options["no_passes"] else None
        for subset in packs.load(options["pack"], "command line", passes):
            runs = "onboarding in full and the weekly schedule run it" if subset.recipe.get("passes") else "nothing runs it by itself"
            self.stdout.write(f"{subset.pk}  {subset.benchmark.name}/{subset.slug}: version {subset.version}; {runs}.")

    def packs(self, options: Mapping[str, Any]) -> None:
        for pack in packs.every().values():
            self.stdout.write(f"{pack.name}: {pack.manifest['title']}")
            for file, told in pack.files.items():
                self.stdout.write(f"  {told['benchmark']}/{told['slug']}  {told['rows']} rows of {told['kind']} ({file})")
                self.stdout.write(f"    {shown(told['validation'])}")

    def pack(self, options: Mapping[str, Any]) -> None:
        for line in packing.write(options["folder"], options["files"], options["title"], options["note"]):
            self.stdout.write(line)


def shown(figures: Mapping[str, Any]) -> str:
    """Writes figures in one line."""
    parts = []
    for name, value in figures.items():
        if isinstance(value, Mapping):
            parts.append(f"{name} {' / '.join(str(one) for one in value.values())}")
        else:
            parts.append(f"{name} {value}")
    return ", ".join(parts)
