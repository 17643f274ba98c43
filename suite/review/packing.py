"""Writes a pack: rows that were seeded, looked at together before they may ship, and the manifest that tells how they were made."""

from __future__ import annotations

import hashlib
import json
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from suite.grading import every
from suite.review import baselines
from suite.review.repository import ReviewError

# Where rows go by their kind and origin: the file, the benchmark, what the subset is called.
PLACES: Mapping[tuple[str, str], tuple[str, str, str]] = {
    ("review_line", "planted"): ("planted.jsonl", "rebench", "Planted faults, each with a clean control"),
    ("review_line", "real"): ("real.jsonl", "rebench", "Real faults that were fixed, each with the fixed code"),
    ("claim", "claim"): ("claims.jsonl", "claim", "True and false statements about functions"),
}


def write(folder: Path, files: Sequence[Path], title: str, notes: Sequence[str]) -> Iterator[str]:
    """Writes the files of a pack and its manifest. Errors: ReviewError where the oracle fails, or an answer that knows nothing earns too much."""
    sets: dict[tuple[str, str], list[dict[str, Any]]] = defaultdict(list)
    for path in files:
        for line in path.read_text(encoding="utf-8").splitlines():
            if line.strip():
                row = json.loads(line)
                sets[("claim" if "claim" in row["input"] else "review_line", row["source"]["origin"])].append(row)
    if unknown := set(sets) - set(PLACES):
        raise ReviewError(f"Rows of {unknown} have no place in a pack.")
    folder.mkdir(parents=True, exist_ok=True)
    told: dict[str, Any] = {}
    objections = []
    for key, rows in sorted(sets.items(), key=lambda item: PLACES[item[0]][0]):
        kind, origin = key
        file, benchmark, words = PLACES[key]
        for row in rows:
            every()[kind].check(row["input"], row["expected"])
        figures = baselines.of_claims(rows) if kind == "claim" else baselines.of_review(rows)
        objections += [f"{file}: {said}" for said in baselines.objections(figures)]
        raw = "".join([f"{json.dumps(row, sort_keys=True)}\n" for row in rows]).encode()
        (folder / file).write_bytes(raw)
        told[file] = {
            "benchmark": benchmark,
            "slug": f"{benchmark}-{folder.name}{'' if kind == 'claim' else f'-{origin}'}",
            "title": words,
            "description": f"{words}. {' '.join(notes)}".strip()[:2000],
            "kind": kind,
            "rows": len(rows),
            "sha256": hashlib.sha256(raw).hexdigest(),
            "validation": figures,
            "operators": baselines.mix(rows, "operator"),
            "verified": baselines.mix(rows, "verified"),
            "commits": sorted({row["source"]["commit"] for row in rows}),
        }
        yield f"{folder / file}: {len(rows)} rows."
    if objections:
        raise ReviewError(f"The pack does not hold up: {'; '.join(objections)}.")
    manifest = {"title": title or folder.name, "made": list(notes), "files": told}
    (folder / "manifest.json").write_text(f"{json.dumps(manifest, indent=1, sort_keys=True)}\n", encoding="utf-8")
    yield f"{folder / 'manifest.json'}: the oracle earns all, and answers that know nothing little."
