"""Packs of review tasks that come with the server: files of rows, a manifest that says how they were made and what answers that know nothing earn.

Loading one makes its benchmarks, everybody's to read, tried as what is published is. Nothing is asked of a model by it.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from access import audit
from suite.models import Subset
from suite.registry import admission
from suite.review import keeping
from suite.review.repository import ReviewError
from suite.running import targets

FOLDER = Path(__file__).resolve().parent.parent / "packs"
OWNER = "server"
STARTER = "starter"


@dataclass(frozen=True, slots=True)
class Pack:
    """Shape: `manifest` as it stands in the pack's manifest.json."""

    name: str
    folder: Path
    manifest: Mapping[str, Any]

    @property
    def files(self) -> Mapping[str, Mapping[str, Any]]:
        found: Mapping[str, Mapping[str, Any]] = self.manifest["files"]
        return found

    def rows(self, file: str) -> list[dict[str, Any]]:
        """Reads one file's rows. Errors: ReviewError where it is not the file that the manifest tells of."""
        raw = (self.folder / file).read_bytes()
        if hashlib.sha256(raw).hexdigest() != self.files[file]["sha256"]:
            raise ReviewError(f"{file} of the pack {self.name} is not the file that its manifest tells of.")
        return [json.loads(line) for line in raw.splitlines() if line.strip()]


def every() -> dict[str, Pack]:
    """Lists the packs that come with this server."""
    found = {}
    for path in sorted(FOLDER.glob("*/manifest.json")):
        found[path.parent.name] = Pack(path.parent.name, path.parent, json.loads(path.read_bytes()))
    return found


def find(name: str) -> Pack:
    known = every()
    if name not in known:
        raise ReviewError(f"There is no pack {name[:80]}. There are: {', '.join(known) or 'none'}.")
    return known[name]


def loaded(pack: Pack) -> list[Subset]:
    """Lists the subsets that a pack made here."""
    slugs = [told["slug"] for told in pack.files.values()]
    return list(Subset.objects.filter(benchmark__built_in=pack.name, benchmark__deleted_at=None, slug__in=slugs, deleted_at=None).select_related("benchmark"))


def load(name: str, actor: str, passes: bool | None = None) -> list[Subset]:
    """Makes a pack's benchmarks where they are missing. `passes` says whether onboarding and the schedule run them; None leaves that. Errors: ReviewError."""
    pack = find(name)
    made = []
    for file, told in pack.files.items():
        parent = keeping.benchmark(told["benchmark"], told["benchmark"], OWNER, built_in=pack.name)
        subset, added = keeping.keep(
            parent, told["slug"], told["title"], told["description"], told["kind"], pack.rows(file), OWNER, rolling=False, passes=bool(passes)
        )
        if passes is not None:
            keeping.mark_passes(subset, passes)
        if added:
            audit.record(actor, "pack.load", f"{pack.name}/{told['slug']}", reason=f"{added} rows")
        impl = targets.builtin_impl(OWNER, "", subset)
        if admission.kept(subset, subset.version, impl) is None:
            admission.write(parent.pk, admission.tried(subset, subset.version, impl))
        made.append(subset)
    return made
