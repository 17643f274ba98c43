"""Scorers as code, addressed by their bytes and by what the sandbox offers them. Looked at before they are kept; run only in a sandbox."""

from __future__ import annotations

import ast
from typing import Any

from django.utils import timezone

from access.caller import Caller
from suite import canonical, ids
from suite.api.problems import Unprocessable, Wrong
from suite.models import Benchmark, Impl, Subset
from suite.sandbox import box

LANGUAGES = ("python",)
MOST_BYTES = 1024 * 1024
METHODS = ("extract", "solve", "score")


def create(
    caller: Caller, code: str, language: str, label: str, description: str, benchmark: Benchmark | None, subset: Subset | None, from_run: str = ""
) -> tuple[Impl, bool]:
    """Keeps a scorer; the same bytes of one author for one subset are one impl. Shape: the impl, and whether it is new. Errors: Unprocessable."""
    look_at(code, language)
    dependencies = box.offered()
    content = {"language": language, "code": code, "dependencies": dependencies}
    now = timezone.now()
    fields: dict[str, Any] = {
        **content,
        "label": label,
        "description": description,
        "benchmark": benchmark,
        "subset": subset,
        "from_run": from_run,
        "owner": caller.owner,
        "team": caller.team,
        "created_at": now,
        "updated_at": now,
    }
    digest = canonical.digest(content)
    there = Impl.objects.filter(digest=digest).first()
    if there is not None and not is_meant(there, caller, subset):
        # Somebody else's, or another subset's: it would be hidden from its author, or would grade nothing of this one.
        digest = canonical.digest({**content, "owner": caller.team or caller.owner, "subset": subset.pk if subset else None})
    impl, is_new = Impl.objects.get_or_create(digest=digest, defaults={"id": ids.content_id("imp", digest), **fields})
    if impl.deleted_at is not None or (subset is not None and impl.subset_id is None):
        impl.deleted_at, impl.subset, impl.benchmark = None, impl.subset or subset, impl.benchmark or benchmark
        impl.save(update_fields=["deleted_at", "subset", "benchmark"])
    return impl, is_new


def is_meant(impl: Impl, caller: Caller, subset: Subset | None) -> bool:
    """Whether an impl of the same bytes is the one that a caller brings: theirs or their team's, for this subset or for none so far."""
    is_theirs = impl.owner == caller.owner or bool(impl.team and impl.team == caller.team)
    return is_theirs and (subset is None or impl.subset_id in (None, subset.pk))


def look_at(code: str, language: str) -> None:
    """Looks at a scorer without running it: that it parses, and defines one Task with its three methods. Errors: Unprocessable naming the line."""
    if language not in LANGUAGES:
        raise Unprocessable("language_unknown", f"An impl is written in {', '.join(LANGUAGES)}.", [Wrong("/language", "language_unknown", "is none of them.")])
    if len(code.encode("utf-8", "surrogatepass")) > MOST_BYTES:
        raise Unprocessable("invalid_impl", "The code is larger than 1 MiB.", [Wrong("/code", "too_long", "is larger than 1 MiB.")])
    try:
        tree = ast.parse(code)
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        line = getattr(error, "lineno", None)
        raise Unprocessable(
            "invalid_impl",
            f"The code does not parse{f' (line {line})' if line else ''}: {error}"[:500],
            [Wrong("/code", "syntax_error", str(error)[:300])],
            line=line,
        ) from None
    classes = [node for node in tree.body if isinstance(node, ast.ClassDef) and any(name_of(base) == "BenchTask" for base in node.bases)]
    if len(classes) != 1:
        raise Unprocessable(
            "invalid_impl",
            f"The code must define one subclass of BenchTask, and has {len(classes)}.",
            [Wrong("/code", "task_class", "Define class Task(BenchTask).")],
        )
    has = {node.name for node in classes[0].body if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)}
    if missing := [name for name in METHODS if name not in has]:
        raise Unprocessable(
            "invalid_impl", f"The class {classes[0].name} lacks {', '.join(missing)}.", [Wrong("/code", "missing_method", name) for name in missing]
        )


def name_of(base: ast.expr) -> str:
    return base.attr if isinstance(base, ast.Attribute) else base.id if isinstance(base, ast.Name) else ""
