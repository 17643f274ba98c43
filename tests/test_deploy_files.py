"""What the deployment files promise: one container on this machine alone, a team's parts beside it, no root, no secret inside."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import yaml

from benchwarmers import processes, settings
from health import errands

ROOT = Path(__file__).resolve().parent.parent
COMPOSE: dict[str, Any] = yaml.safe_load((ROOT / "compose.yaml").read_text(encoding="utf-8"))
SERVICES: dict[str, dict[str, Any]] = COMPOSE["services"]


def seconds(text: str) -> int:
    number, unit = re.fullmatch(r"(\d+)([sm])", text).groups()  # type: ignore[union-attr]
    return int(number) * {"s": 1, "m": 60}[unit]


def test_alone_it_is_one_container_on_this_machine() -> None:
    alone = {name: service for name, service in SERVICES.items() if not service.get("profiles")}
    assert list(alone) == ["bench"]
    bench = alone["bench"]
    assert bench["ports"] == ["127.0.0.1:8122:8122"]
    assert bench["volumes"] == ["data:/data"]
    assert bench["environment"]["BENCHWARMERS_HOME"] == "/data"
    assert all(needed["required"] is False for needed in bench["depends_on"].values())


def test_the_team_profile_adds_a_database_a_broker_and_a_proxy() -> None:
    team = {name for name, service in SERVICES.items() if service.get("profiles") == ["team"]}
    assert team == {"postgres", "redis", "caddy"}
    assert {name for name in SERVICES if SERVICES[name].get("ports")} == {"bench", "caddy"}, "nothing else is reached from outside"
    # Whom the server believes is the address that the proxy really has.
    address = SERVICES["caddy"]["networks"]["inside"]["ipv4_address"]
    assert address in SERVICES["bench"]["environment"]["BENCH_TRUSTED_PROXIES"]


def test_what_runs_code_is_a_service_of_its_own_and_the_server_stays_locked() -> None:
    sandbox, bench = SERVICES["sandbox"], SERVICES["bench"]
    assert (sandbox["profiles"], sandbox["command"], sandbox["image"]) == (["code"], ["scorers"], bench["image"])
    for service in (sandbox, bench):
        assert (service["read_only"], service["cap_drop"]) == (True, ["ALL"])
        assert "no-new-privileges:true" in service["security_opt"]
        assert not [mount for mount in service["volumes"] if "docker.sock" in mount], "whoever has that socket is root on the host"
        assert not service.get("privileged")
    assert bench["security_opt"] == ["no-new-privileges:true"], "the server keeps Docker's own profiles"
    assert not sandbox.get("ports")
    assert sandbox["mem_limit"]
    assert sandbox["pids_limit"]
    # What both work with is the same: one data folder, one database, the same secrets.
    shared = {"BENCHWARMERS_HOME", "BENCHWARMERS_SECRET_KEYS", "DATABASE_URL", "REDIS_URL"}
    assert {name: sandbox["environment"][name] for name in shared} == {name: bench["environment"][name] for name in shared}
    assert re.search(r"apt-get install .*bubblewrap", (ROOT / "Dockerfile").read_text(encoding="utf-8"))


def test_the_sandboxs_profile_allows_what_bubblewrap_needs_and_little_else() -> None:
    (path,) = [option.removeprefix("seccomp=") for option in SERVICES["sandbox"]["security_opt"] if option.startswith("seccomp=")]
    profile = json.loads((ROOT / path).read_text(encoding="utf-8"))
    denied = {name for rule in profile["syscalls"] for name in rule["names"]}
    assert {rule["action"] for rule in profile["syscalls"]} == {"SCMP_ACT_ERRNO"}
    assert not denied & {"clone", "clone3", "unshare", "mount", "umount2", "pivot_root", "sethostname", "prctl", "seccomp", "prlimit64", "setns"}
    assert denied >= {"bpf", "init_module", "finit_module", "kexec_load", "keyctl", "ptrace", "process_vm_readv", "io_uring_setup", "userfaultfd", "reboot"}


def test_the_unit_for_scorers_may_make_sandboxes() -> None:
    units = [(ROOT / "deploy" / name).read_text(encoding="utf-8") for name in ("benchwarmers.service", "benchwarmers-scorers.service")]
    for unit in units:
        assert "NoNewPrivileges=true" in unit
        assert "BENCHWARMERS_HOME=/var/lib/benchwarmers" in unit
    assert "manage.py scorers" in units[1]
    # Each of these hides something without which the kernel lets nobody mount a /proc, or make a control group.
    assert not re.search(r"^(?:ProtectKernelTunables|ProtectControlGroups|RestrictNamespaces|ProtectProc|PrivateDevices)=", units[1], re.M)


def test_answers_under_way_have_their_time_when_it_is_stopped() -> None:
    assert seconds(SERVICES["bench"]["stop_grace_period"]) >= 360 + processes.CLOSING_S + errands.CLOSE_S
    assert seconds(SERVICES["caddy"]["stop_grace_period"]) >= 360
    assert settings.GRACEFUL_TIMEOUT_S <= 360


def test_no_secret_stands_in_a_file_and_none_has_a_default() -> None:
    environment = SERVICES["bench"]["environment"]
    for name in ("BENCHWARMERS_ADMIN_TOKEN", "BENCHWARMERS_SECRET_KEYS"):
        assert environment[name].startswith(f"${{{name}:?"), "without it compose says so and starts nothing"
    for line in (ROOT / ".env.example").read_text(encoding="utf-8").splitlines():
        if re.match(r"#? ?\w*(TOKEN|SECRET|KEY|PASSWORD)\w*=", line):
            assert not line.split("=", 1)[1].split("(")[0].strip(), line
    assert ".env" in (ROOT / ".gitignore").read_text(encoding="utf-8").split()


def test_the_image_runs_without_root_and_says_how_it_is() -> None:
    last = (ROOT / "Dockerfile").read_text(encoding="utf-8").rpartition("\nFROM ")[2]
    assert re.search(r"^USER (?!root|0)\w+$", last, re.M)
    assert re.search(r"^HEALTHCHECK ", last, re.M)
    assert "pip install" not in last, "what builds it stays behind"
    copied = re.findall(r"^COPY (?!--from)(\S+) ", (ROOT / "Dockerfile").read_text(encoding="utf-8"), re.M)
    missing = [name for name in copied if not (ROOT / name).exists()]
    assert not missing
    # Every room is in the image, and what the builder sees is named one by one.
    rooms = {p.parent.name for p in ROOT.glob("*/__init__.py")} - {"tests", "bench"}
    assert rooms <= set(copied), rooms - set(copied)
    seen = (ROOT / ".dockerignore").read_text(encoding="utf-8").split()
    assert "*" in seen
    assert {f"!{name}" for name in copied if "/" not in name} <= set(seen)


def test_checks_run_on_both_systems_and_every_python() -> None:
    jobs = yaml.safe_load((ROOT / ".github/workflows/checks.yml").read_text(encoding="utf-8"))["jobs"]
    tried = {(job["runs-on"].split("-")[0], python) for job in jobs.values() for python in job.get("strategy", {}).get("matrix", {}).get("python", [])}
    assert tried == {(system, python) for system in ("ubuntu", "macos") for python in ("3.11", "3.12", "3.13")}
    assert (ROOT / ".ci/run").stat().st_mode & 0o111
