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
from suite.review import baselines, fetching, gathering, keeping, packing, packs, rebench, repository, tasks
from suite.review.repository import ReviewError

OWNER = "local"
# What is kept together: how the subset's slug ends, what it is called, its rows.
Sets = Sequence[tuple[str, str, list[dict[str, Any]]]]


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
        rebench = verbs.add_parser("rebench", help="Import SWE-rebench-V2 rows: real faults of public repositories, each with the fixed code.")
        rebench.add_argument("file", nargs="?", type=Path, help="Rows as JSON or JSONL. Without it they are fetched.")
        rebench.add_argument("--count", type=int, default=100, help="Pairs to take (100).")
        rebench.add_argument("--rows", type=int, default=2000, help="Rows to look at where they are fetched (2000).")
        rebench.add_argument("--sources", type=Path, help="A folder <owner>__<name>/<commit>/<path> to read files from, instead of fetching them.")
        rebench.add_argument("--licences", type=Path, help='A JSON object {"owner/name": "MIT"}, instead of asking for each.')
        rebench.add_argument("--rows-at", default=fetching.ROWS, help=f"The dataset server ({fetching.ROWS}).")
        rebench.add_argument("--files-at", default=fetching.FILES, help=f"Where files are fetched ({fetching.FILES}).")
        rebench.add_argument("--licences-at", default=fetching.LICENCES, help=f"Where licences are asked for ({fetching.LICENCES}).")
        rebench.add_argument("--seed", type=int, default=1)
        rebench.add_argument("--name", default="swe", help="What the benchmark is called after rebench- (swe).")
        self.add_keeping(rebench)
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
        self.add_keeping(parser)

    def add_keeping(self, parser: ArgumentParser) -> None:
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
        sets = [("planted", "planted faults", found.planted), ("real", "real faults", found.real)]
        self.settle(options, place.name, found.commit.id, found.told, sets, keeping.REVIEW, "review_line")

    def claims(self, options: Mapping[str, Any]) -> None:
        place = repository.find(settings.HOME, options["repo"])
        commit = repository.commit_of(place.folder, options["commit"])
        self.stdout.write(f"{place.name} at {commit.id[:12]} ({commit.date:%Y-%m-%d}), from {place.folder}.")
        found = gathering.claim(place, commit, self.say, count=max(2, options["count"]), seed=options["seed"])
        self.settle(options, place.name, found.commit.id, found.told, [("", "claims", found.claimed)], keeping.CLAIM, "claim")

    # ------------------------------------------------------------------ out of a dataset

    def rebench(self, options: Mapping[str, Any]) -> None:
        is_named = (options["rows_at"], options["files_at"], options["licences_at"]) != (fetching.ROWS, fetching.FILES, fetching.LICENCES)
        rows_at, files_at, licences_at = (str(options[name]).rstrip("/") for name in ("rows_at", "files_at", "licences_at"))
        fetcher = fetching.Fetcher(settings.HOME / "cache" / "rebench", rows_at, files_at, licences_at, is_named)
        known = self.licences(options["licences"])
        if options["file"] is None or options["sources"] is None:
            hosts = fetcher.hosts(options["file"] is None)
            self.stdout.write(f"Asks {', '.join(hosts)} for {'rows, ' if options['file'] is None else ''}files and licences. Nothing of yours is sent.")
            if not options["yes"] and not self.agreed("Ask them?"):
                self.stdout.write("Nothing was asked.")
                return
        read_file = rebench.from_folder(options["sources"]) if options["sources"] is not None else fetcher.file
        read_licence = (lambda repo: known.get(repo)) if options["sources"] is not None else (lambda repo: known.get(repo) or fetcher.licence(repo))
        rows = rebench.read_rows(options["file"]) if options["file"] is not None else fetcher.rows(options["rows"])
        go = rebench.Import(read_file, read_licence)
        blind, told = rebench.pairs(go, rows, options["count"])
        mark = tasks.canary(f"rebench {options['name']} {options['seed']}")
        sets = [
            ("blind", "real faults, the code alone", tasks.rows_of(blind, mark, options["seed"])),
            ("issue", "real faults, with what a user reported", tasks.rows_of(told, mark, options["seed"])),
        ]
        self.settle(options, options["name"], "SWE-rebench-V2", go.told, sets, keeping.REVIEW, "review_line")

    def licences(self, path: Path | None) -> dict[str, str]:
        if path is None:
            return {}
        try:
            found = json.loads(path.read_bytes())
        except (OSError, ValueError) as error:
            raise CommandError(f"{path} cannot be read: {error}") from None
        if not isinstance(found, dict) or not all(isinstance(value, str) for value in found.values()):
            raise CommandError(f'{path} must be a JSON object such as {{"owner/name": "MIT"}}.')
        return found

    # ------------------------------------------------------------------ telling and keeping

    def say(self, line: str) -> None:
        self.stdout.write(line)
        self.stdout.flush()

    def settle(self, options: Mapping[str, Any], of: str, state: str, told: Mapping[str, int], sets: Sets, name: str, kind: str) -> None:
        """Tells what was found and where it would be kept, then keeps it. Shape: `of` whose tasks they are, `state` from which state of it."""
        self.tell(told, sets, kind)
        if not any(rows for _, _, rows in sets):
            raise CommandError("Nothing was found that holds up. Name tests and packages of the repository in config/repos.json, or take --unverified.")
        out: Path | None = options["out"]
        if out is not None:
            out.write_text("".join([f"{json.dumps(row)}\n" for _, _, rows in sets for row in rows]), encoding="utf-8")
            self.stdout.write(f"Wrote {sum(len(rows) for _, _, rows in sets)} rows to {out}.")
            return
        title = f"{name}-{of}"
        self.stdout.write(
            f"They would be kept in this server's database, in the benchmark {title} of {options['owner']}, which nobody else sees until one of its runs is\n"
            "shared. Nothing is sent now. A run sends the code above, function by function, to the endpoint of the model that it tests, and nowhere else."
        )
        if options["dry_run"]:
            self.stdout.write("Nothing was kept (--dry-run).")
            return
        if not options["yes"] and not self.agreed("Keep them?"):
            self.stdout.write("Nothing was kept.")
            return
        parent = keeping.benchmark(name, title, options["owner"])
        for part, words, rows in sets:
            if rows:
                slug = keeping.slug_of(title, part)
                subset, added = keeping.keep(parent, slug, f"{of}: {words}", f"From {state}.", kind, rows, options["owner"], rolling=True)
                self.stdout.write(f"{subset.pk}  {title}/{slug}: {added} new rows, {len(rows) - added} were there.")

    def agreed(self, question: str) -> bool:
        if not sys.stdin.isatty():
            raise CommandError(f"{question} Say --yes.")
        return input(f"{question} [y/N] ").strip().lower() in ("y", "yes")

    def tell(self, counted: Mapping[str, int], sets: Sets, kind: str) -> None:
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
        if counted:
            ordered = sorted(counted.items(), key=lambda item: -item[1])
            self.stdout.write(f"Looked at: {', '.join(f'{count} {why}' for why, count in ordered)}.")

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
