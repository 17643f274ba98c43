"""SWE-rebench-V2 rows as pairs: from a file with sources beside it, and from servers that stand in for the real ones."""

from __future__ import annotations

import http.server
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from io import StringIO
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

import pytest
from django.core.management import CommandError, call_command

from suite.models import Row, Subset
from suite.review import rebench

BEFORE = '''import os


def replaced(text, old, new):
    """Puts one word for another."""
    found = []
    for part in text.split(" "):
        if part == old:
            part.replace(old, new)
        found.append(part)
    joined = " ".join(found)
    return joined
'''
PATCH = """diff --git a/CHANGES.rst b/CHANGES.rst
--- a/CHANGES.rst
+++ b/CHANGES.rst
@@ -1,2 +1,3 @@
 Changes
+- mend it
 ---
diff --git a/lib/words.py b/lib/words.py
index 1111111..2222222 100644
--- a/lib/words.py
+++ b/lib/words.py
@@ -6,7 +6,7 @@ def replaced(text, old, new):
     found = []
     for part in text.split(" "):
         if part == old:
-            part.replace(old, new)
+            part = part.replace(old, new)
         found.append(part)
     joined = " ".join(found)
     return joined
"""
COMMIT = "a" * 40


def row(**more: Any) -> dict[str, Any]:
    found = {
        "instance_id": "owner__words-7",
        "repo": "Owner/words",
        "base_commit": COMMIT,
        "created_at": 1_700_000_000_000,
        "patch": PATCH,
        "test_patch": "",
        "problem_statement": "Nothing is replaced, see #1234.\r\n\r\nTraceback (most recent call last):\r\n"
        '  File "lib/words.py", line 9, in replaced\r\nValueError: no\r\n\r\nIt should be.',
        "language": "python",
        "license": "MIT",
        "FAIL_TO_PASS": ["test_a"],
        "install_config": "{}",
        "meta": {"llm_metadata": [{"code": "A", "pr_categories": ["minor_bug"], "detected_issues": {"B1": False}}]},
    }
    return {**found, **more}


def go(source: str | None = BEFORE, licence: str | None = None) -> rebench.Import:
    return rebench.Import(lambda repo, commit, path: source, lambda repo: licence)


def test_a_row_becomes_a_pair_whose_line_is_the_one_that_was_mended() -> None:
    (blind,), (told,) = rebench.pairs(go(), [row()], 10)
    assert blind.faulty.code.splitlines()[blind.faulty.lines[0] - 1].strip() == "part.replace(old, new)"
    assert blind.clean.code.splitlines()[blind.faulty.lines[0] - 1].strip() == "part = part.replace(old, new)"
    assert blind.clean.lines == ()
    assert (blind.source["licence"], blind.source["date"], blind.source["commit"], blind.cluster) == ("MIT", "2023-11-14", COMMIT, "Owner/words")
    assert told.faulty.issue == told.clean.issue == "Nothing is replaced, see <issue>.\n\nIt should be."


LEFT_OUT = [
    ("another language", row(language="go"), "not Python"),
    ("no permissive licence", row(license="GPL-3.0"), "licence"),
    ("no licence at all", row(license=None), "licence"),
    ("labels that bar it", row(meta={"llm_metadata": [{"code": "B2", "pr_categories": ["major_bug"]}]}), "labels"),
    ("issues that were detected", row(meta={"llm_metadata": [{"code": "C", "detected_issues": {"B5": True}}]}), "labels"),
    ("a feature", row(meta={"llm_metadata": [{"code": "A", "pr_categories": ["feature"]}]}), "no fix"),
    ("a repository that leads elsewhere", row(repo="../../etc"), "names no repository"),
    ("no commit", row(base_commit="main"), "names no repository"),
    ("two files", row(patch=PATCH + PATCH.replace("lib/words.py", "lib/more.py")), "more than one file"),
    ("a file in C", row(patch=PATCH.replace("CHANGES.rst", "lib/fast.c")), "more than one file"),
    ("lines only added", row(patch=PATCH.replace("-            part.replace(old, new)\n", "").replace("-6,7 +6,7", "-6,6 +6,7")), "adds lines only"),
    ("no patch", row(patch=None), "more than one file"),
    ("a patch that is cut off", row(patch=PATCH[:300]), "more than one file|adds lines|another"),
]


@pytest.mark.parametrize(("why", "given", "said"), LEFT_OUT, ids=[case[0] for case in LEFT_OUT])
def test_a_row_that_does_not_do_is_left_out_and_counted(why: str, given: dict[str, Any], said: str) -> None:
    import re

    one = go()
    assert rebench.pairs(one, [given], 10) == ([], [])
    (told,) = one.told
    assert re.search(said, told), told


@pytest.mark.parametrize("source", [None, BEFORE.replace("found = []", "found = list()"), "def f(:\n"])
def test_a_file_that_is_another_is_not_patched(source: str | None) -> None:
    assert rebench.pairs(go(source), [row()], 10) == ([], [])


@pytest.mark.parametrize("meta", [None, "{}", {}, {"llm_metadata": None}, {"llm_metadata": {"code": "A"}}, json.dumps({"llm_metadata": [{"code": "A"}]}), [1]])
def test_older_rows_with_fewer_labels_are_read(meta: Any) -> None:
    assert len(rebench.pairs(go(), [row(meta=meta, created_at="2020-05-01T10:00:00", language=None)], 10)[0]) == 1


def test_a_comment_that_came_with_the_fix_keeps_the_row_out() -> None:
    told = PATCH.replace("+            part = part", "+            # the result was thrown away\n+            part = part").replace("-6,7 +6,7", "-6,7 +6,8")
    one = go()
    assert rebench.pairs(one, [row(patch=told)], 10) == ([], [])
    assert "words beside" in next(iter(one.told))


FORMS = [
    json.dumps([row()]),
    json.dumps(row()),
    f"{json.dumps(row())}\n\n{json.dumps(row(instance_id='b'))}\n",
    json.dumps({"rows": [{"row_idx": 0, "row": row()}]}),
]


@pytest.mark.parametrize("form", FORMS)
def test_rows_are_read_in_each_form(tmp_path: Path, form: str) -> None:
    (tmp_path / "rows").write_text(form)
    assert next(iter(rebench.read_rows(tmp_path / "rows")))["repo"] == "Owner/words"


def run(*arguments: str) -> str:
    out = StringIO()
    call_command("suite", "rebench", *arguments, stdout=out)
    return out.getvalue()


@pytest.mark.django_db
def test_a_file_with_sources_beside_it_asks_nobody(tmp_path: Path, settings: Any) -> None:
    settings.HOME = tmp_path
    (tmp_path / "rows.jsonl").write_text(json.dumps(row()))
    place = tmp_path / "sources" / "Owner__words" / COMMIT / "lib"
    place.mkdir(parents=True)
    (place / "words.py").write_text(BEFORE)
    told = run(str(tmp_path / "rows.jsonl"), "--sources", str(tmp_path / "sources"), "--yes")
    assert "Asks" not in told
    assert {s.slug: s.version for s in Subset.objects.all()} == {"rebench-swe-blind": 1, "rebench-swe-issue": 1}
    assert Row.objects.filter(cluster="Owner/words").count() == 4


@contextmanager
def servers(rows: list[dict[str, Any]]) -> Iterator[tuple[str, list[str]]]:
    """A dataset server, a host of files and one of licences, in one."""
    asked: list[str] = []

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            asked.append(self.path)
            parts = urlsplit(self.path)
            if parts.path == "/rows":
                first, length = (int(parse_qs(parts.query)[name][0]) for name in ("offset", "length"))
                said: bytes | None = json.dumps({"rows": [{"row": one} for one in rows[first : first + length]]}).encode()
            elif parts.path.endswith("/license"):
                said = json.dumps({"license": {"spdx_id": "Apache-2.0"}}).encode()
            else:
                said = BEFORE.encode() if unquote(parts.path) == f"/Owner/words/{COMMIT}/lib/words.py" else None
            self.send_response(404 if said is None else 200)
            self.end_headers()
            self.wfile.write(said or b"")

        def log_message(self, *arguments: Any) -> None:
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}", asked
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def test_without_a_file_rows_are_fetched_once_and_hosts_are_named_before(tmp_path: Path, settings: Any) -> None:
    settings.HOME = tmp_path
    rows = [row(license=None), row(instance_id="gone", repo="Owner/other", license=None)]
    with servers(rows) as (address, asked):
        where = ("--rows-at", address, "--files-at", address, "--licences-at", address, "--rows", "5")
        with pytest.raises(CommandError, match="Ask them"):
            run(*where)
        assert asked == []
        told = run(*where, "--yes", "--out", str(tmp_path / "out.jsonl"))
        assert told.startswith(f"Asks {urlsplit(address).netloc} for rows, files and licences.")
        before = len(asked)
        run(*where, "--yes", "--out", str(tmp_path / "again.jsonl"))
        assert [path for path in asked[before:] if "other" not in path] == [], "what came once is kept"
    made = [json.loads(line) for line in (tmp_path / "out.jsonl").read_text().splitlines()]
    assert {one["source"]["licence"] for one in made} == {"Apache-2.0"}
    assert (tmp_path / "out.jsonl").read_text() == (tmp_path / "again.jsonl").read_text()
