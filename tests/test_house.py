"""The house's rules, held by walking the syntax trees: which room may import which, what stays in its one place, and that documents are complete.

An exemption names a file and says why. One that is no longer needed fails too.
"""

from __future__ import annotations

import ast
import re
import subprocess
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from pathlib import Path

import pytest
from django.apps import apps
from django.db.migrations.autodetector import MigrationAutodetector
from django.db.migrations.loader import MigrationLoader
from django.db.migrations.state import ProjectState

CHECKOUT = Path(__file__).resolve().parent.parent
ROOMS = ("wire", "access", "catalog", "health", "panels", "suite", "benchwarmers")
HTTP_CLIENTS = {"aiohttp", "requests", "httpx", "httpx2", "urllib3", "urllib.request", "http.client", "socket.create_connection", "pycurl"}
NO_CLIENTS = ("urllib.request.getproxies", "urllib.request.proxy_bypass")


@cache
def tree(path: str) -> ast.Module:
    return ast.parse((CHECKOUT / path).read_text(encoding="utf-8"), path)


@cache
def modules() -> tuple[str, ...]:
    """Every module of the rooms, and manage.py."""
    found = [str(p.relative_to(CHECKOUT)) for room in ROOMS for p in sorted((CHECKOUT / room).rglob("*.py"))]
    return ("manage.py", *found)


def written() -> list[str]:
    """Modules that a person writes: all but migrations."""
    return [m for m in modules() if "/migrations/" not in m]


def room_of(path: str) -> str:
    return path.split("/")[0]


def imports(path: str) -> Iterator[tuple[int, str]]:
    """Every module that a file imports, wherever in it: line and dotted name; for `from a import b` both a and a.b."""
    package = path.removesuffix(".py").split("/")[:-1]
    for node in ast.walk(tree(path)):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield node.lineno, alias.name
        elif isinstance(node, ast.ImportFrom):
            start = package[: len(package) - node.level + 1] if node.level else []
            module = ".".join([*start, *([node.module] if node.module else [])])
            yield node.lineno, module
            for alias in node.names:
                yield node.lineno, f"{module}.{alias.name}"


def dotted(node: ast.AST) -> str:
    """`a.b.c` of an attribute access, "" for anything else."""
    if isinstance(node, ast.Name):
        return node.id
    if isinstance(node, ast.Attribute) and (inner := dotted(node.value)):
        return f"{inner}.{node.attr}"
    return ""


def uses(path: str, *names: str) -> Iterator[tuple[int, str]]:
    """Where a file says one of these dotted names, or imports it by its last part."""
    for node in ast.walk(tree(path)):
        if isinstance(node, ast.Attribute | ast.Name) and dotted(node) in names:
            yield node.lineno, dotted(node)
    for line, name in imports(path):
        if name in names:
            yield line, name


def hold(found: Mapping[str, list[str]], exempt: Mapping[str, str], rule: str) -> None:
    """Fails with every breach outside the exemptions, and with every exemption that nothing needs."""
    breaches = [f"  {path}: {what}" for path, where in found.items() if path not in exempt for what in where]
    assert not breaches, f"{rule}\n" + "\n".join(breaches)
    idle = [path for path in exempt if not found.get(path)]
    assert not idle, f"no longer needed as exemptions from {rule!r}: {idle}"


def search(look: Callable[[str], Iterator[tuple[int, str]]], paths: list[str] | None = None) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for path in paths if paths is not None else written():
        if where := sorted(set(look(path))):
            found[path] = [f"line {line}: {what}" for line, what in where]
    return found


# ------------------------------------------------------------------ rooms


def test_imports_go_one_way() -> None:
    def rightwards(path: str) -> Iterator[tuple[int, str]]:
        own = ROOMS.index(room_of(path))
        for line, name in imports(path):
            if (room := name.split(".")[0]) in ROOMS and ROOMS.index(room) > own:
                yield line, f"{room_of(path)} imports {name}"

    hold(search(rightwards, [m for m in written() if m != "manage.py"]), {}, "A room imports only rooms to its left.")


def test_migrations_import_nothing_of_ours() -> None:
    def ours(path: str) -> Iterator[tuple[int, str]]:
        for line, name in imports(path):
            if name.split(".")[0] in ROOMS:
                yield line, name

    exempt = {"catalog/migrations/0001_initial.py": "choices found by walking a folder are a callable, which Django writes down by its name"}
    hold(search(ours, [m for m in modules() if "/migrations/" in m]), exempt, "A migration must still run when the code has moved on.")


def test_formats_know_neither_django_nor_the_world() -> None:
    world = {"django", "rest_framework", "os", "socket", "pathlib", "asyncio", "sqlite3", "subprocess", "logging", "random", "time"} | HTTP_CLIENTS

    def outside(path: str) -> Iterator[tuple[int, str]]:
        for line, name in imports(path):
            if name in world or name.split(".")[0] in world:
                yield line, name
        yield from uses(path, "open")

    hold(search(outside, [m for m in written() if room_of(m) == "wire"]), {}, "wire is pure: no Django, no settings, no I/O.")


def test_foreign_keys_point_left() -> None:
    wrong = [
        f"{model._meta.label}.{field.name} → {field.related_model._meta.label}"
        for model in apps.get_models()
        if model._meta.app_label in ROOMS
        for field in model._meta.get_fields()
        if field.is_relation and field.concrete and field.related_model is not None
        if (other := field.related_model._meta.app_label) in ROOMS and ROOMS.index(other) > ROOMS.index(model._meta.app_label)
    ]
    assert not wrong


def test_rows_of_another_room_are_not_queried() -> None:
    def foreign(path: str) -> Iterator[tuple[int, str]]:
        borrowed = set()
        for node in ast.walk(tree(path)):
            if isinstance(node, ast.ImportFrom) and node.module and (room := node.module.split(".")[0]) in ROOMS and room != room_of(path):
                for alias in node.names:
                    if node.module == f"{room}.models" or alias.name == "models":
                        borrowed.add(alias.asname or alias.name)
            elif isinstance(node, ast.Import):
                borrowed |= {a.asname or a.name for a in node.names if a.name.endswith(".models") and room_of(a.name.replace(".", "/")) != room_of(path)}
        for node in ast.walk(tree(path)):
            if isinstance(node, ast.Attribute) and node.attr in ("objects", "_default_manager", "_base_manager"):
                name = dotted(node.value)
                if name in borrowed or any(name.startswith(f"{b}.") for b in borrowed):
                    yield node.lineno, f"{name}.{node.attr}"
            if isinstance(node, ast.Call) and dotted(node.func).endswith("apps.get_model"):
                yield node.lineno, "apps.get_model"

    exempt = {
        "panels/rosterfile.py": "a roster file is one transaction over rows of both rooms: all of it or nothing",
    }
    hold(search(foreign), exempt, "Functions and frozen values cross between rooms, rows and querysets do not.")


def test_no_signals_tie_rooms_together() -> None:
    def signals(path: str) -> Iterator[tuple[int, str]]:
        for line, name in imports(path):
            if name.startswith(("django.dispatch", "django.db.models.signals", "django.core.signals", "django.contrib.auth.signals")):
                yield line, name

    exempt: dict[str, str] = {}
    hold(search(signals), exempt, "What happens next stands where it happens, not in a receiver elsewhere.")


def test_only_its_own_file_knows_a_dialect_or_a_provider_by_name() -> None:
    from catalog import providers
    from wire import dialects

    names = {d.name for d in dialects.every()} | {p.kind for p in providers.every()}
    homes = ("wire/dialects/", "catalog/providers/")

    def compared(path: str) -> Iterator[tuple[int, str]]:
        if path.startswith(homes) and not path.endswith("__init__.py"):
            return
        for node in ast.walk(tree(path)):
            sides = [node.left, *node.comparators] if isinstance(node, ast.Compare) else [node.value] if isinstance(node, ast.MatchValue) else []
            for side in sides:
                for inner in ast.walk(side):
                    if isinstance(inner, ast.Constant) and isinstance(inner.value, str) and inner.value in names:
                        yield node.lineno, f"compares with {inner.value!r}"

    hold(search(compared), {}, "Adding a dialect or a provider is adding one file.")


# ------------------------------------------------------------------ greps that stay empty


def test_http_clients_stay_behind_their_doors() -> None:
    def clients(path: str) -> Iterator[tuple[int, str]]:
        for line, name in imports(path):
            if name.startswith(NO_CLIENTS) or (name == "urllib.request" and any(n.startswith(NO_CLIENTS) for _, n in imports(path))):
                continue  # reads the environment's proxies, sends nothing
            if name in HTTP_CLIENTS or name.split(".")[0] in HTTP_CLIENTS or name.startswith(("urllib.request.", "http.client.")):
                yield line, name

    exempt = {
        "catalog/upstream.py": "the door for model calls",
        "catalog/web.py": "the door for everything else",
        "suite/running/proxy.py": "answers sandboxes on a socket, and sends nothing",
    }
    hold(search(clients), {k: v for k, v in exempt.items() if (CHECKOUT / k).exists()}, "One door for model calls, one for all other traffic.")


def test_the_environment_is_read_in_settings_only() -> None:
    def environment(path: str) -> Iterator[tuple[int, str]]:
        yield from uses(path, "os.environ", "os.getenv", "os.environb", "os.putenv")

    exempt = {
        "benchwarmers/settings.py": "reads every setting",
        "manage.py": "says which settings module is meant",
        "benchwarmers/wsgi.py": "says which settings module is meant",
        "benchwarmers/asgi.py": "says which settings module is meant",
        "suite/sandbox/kit/run_task.py": "runs in the sandbox, whose environment is what it is handed",
        "suite/sandbox/kit/run_repo_tests.py": "runs in the sandbox, whose environment is what it is handed",
        "suite/sandbox/kit/run_calls.py": "runs in the sandbox, whose environment is what it is handed",
        "suite/sandbox/kit/run_candidate.py": "runs in the sandbox, whose environment is what it is handed",
        "suite/sandbox/kit/run_tests.py": "runs in the sandbox, whose environment is what it is handed",
    }
    hold(search(environment), {k: v for k, v in exempt.items() if (CHECKOUT / k).exists()}, "A deployment is described in one place.")


def test_requests_stay_in_views() -> None:
    def requests(path: str) -> Iterator[tuple[int, str]]:
        parts = Path(path).with_suffix("").parts
        if {"admin", "views", "pages", "middleware"} & set(parts) or path in ("access/auth.py", "benchwarmers/asgi.py"):
            return
        for line, name in imports(path):
            if name.split(".")[-1] in ("HttpRequest", "WSGIRequest", "ASGIRequest"):
                yield line, name

    exempt = {
        "access/signin.py": "the sign-in link's one view stands beside its rule",
        "suite/api/streaming.py": "a view: DRF's own are sync, and a stream must not hold a thread",
    }
    hold(search(requests), exempt, "A rule takes values, not a request.")


def test_nobody_sleeps_but_the_supervisor() -> None:
    def sleeps(path: str) -> Iterator[tuple[int, str]]:
        yield from uses(path, "time.sleep")

    exempt = {"benchwarmers/supervisor.py": "watches processes"}
    found = search(sleeps)
    hold(found, {k: v for k, v in exempt.items() if k in found}, "Waiting is for an event or a deadline.")


def test_pure_rules_are_told_the_time() -> None:
    def clocks(path: str) -> Iterator[tuple[int, str]]:
        worldly = any(name.split(".")[0] in ("django", "rest_framework") or ".models." in f"{name}." for _, name in imports(path))
        flows = any(isinstance(node, ast.AsyncFunctionDef) for node in ast.walk(tree(path)))
        if room_of(path) == "wire" or not (worldly or flows):
            yield from uses(path, "timezone.now", "datetime.now", "datetime.datetime.now", "datetime.utcnow", "date.today", "datetime.date.today")

    exempt = {"panels/outcome.py": "a skipped seat's wait is reckoned from the clock; to go once it is told the time"}
    hold(search(clocks), exempt, "A rule that looks at the clock cannot be tried for another day.")


# ------------------------------------------------------------------ size and words


def test_modules_have_no_empty_names() -> None:
    wrong = [m for m in written() if Path(m).stem in ("utils", "util", "helpers", "helper", "manager", "managers", "base", "common", "misc")]
    assert not wrong


def test_modules_stay_one_idea_long() -> None:
    """A wire format is one file for both directions, which takes more than other ideas do."""
    argued: dict[str, str] = {}
    most = {m: 800 if m.startswith("wire/dialects/") else 500 for m in written()}
    long = {m: [f"{n} lines"] for m in most if (n := len((CHECKOUT / m).read_text(encoding="utf-8").splitlines())) > most[m]}
    hold(long, argued, "A module is one idea: 300 lines or so, and argued for above 500.")


def test_every_module_says_what_it_is() -> None:
    silent = [m for m in written() if tree(m).body and Path(m).name != "apps.py" and not ast.get_docstring(tree(m))]
    assert not silent


def test_every_model_says_what_one_row_is() -> None:
    silent = [
        model._meta.label
        for model in apps.get_models()
        if model._meta.app_label in ROOMS and not model._meta.auto_created
        if not (doc := model.__doc__ or "") or doc.startswith(f"{model.__name__}(")
    ]
    assert not silent


def text_files() -> list[Path]:
    try:
        listed = subprocess.run(["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"], cwd=CHECKOUT, capture_output=True, check=True).stdout
    except (OSError, subprocess.CalledProcessError):
        return [CHECKOUT / m for m in modules()]
    return [path for name in listed.decode().split("\0") if name and (path := CHECKOUT / name).is_file()]


def test_no_file_names_a_machine_it_was_written_on() -> None:
    machine = re.compile(rb"(?<![\w.~$}-])/(?:home/[a-z]|Users/[A-Za-z]|root/|work/|workspace/|mnt/c/|tmp/[\w.-])")
    exempt = ("Dockerfile", "compose.yaml", ".github", "deploy")  # their paths are a container's
    wrong = [
        f"{path.relative_to(CHECKOUT)}: {found[0].decode()}…"
        for path in text_files()
        if not str(path.relative_to(CHECKOUT)).startswith(exempt) and path.suffix not in (".png", ".ico", ".woff2")
        if (found := machine.search(path.read_bytes()))
    ]
    assert not wrong


# ------------------------------------------------------------------ migrations


def test_migrations_are_in_step_with_the_models() -> None:
    loader = MigrationLoader(None)
    changes = MigrationAutodetector(loader.project_state(), ProjectState.from_apps(apps)).changes(graph=loader.graph)
    assert not {app: [str(op) for m in found for op in m.operations] for app, found in changes.items() if app in ROOMS}


@pytest.mark.parametrize("room", ROOMS)
def test_every_room_is_there(room: str) -> None:
    assert (CHECKOUT / room / "__init__.py").exists()
