"""Rotating secrets, and what the doctor finds."""

from __future__ import annotations

import json

from tests.benchwarmers.deployment import Deployment
from tests.live import SECRET

NEW = "new-secret-0123456789abcdef"


def findings(deployment: Deployment, **more: str) -> dict[str, dict[str, str]]:
    done = deployment.manage("doctor", "--json", **more)
    return {found["name"]: found for found in json.loads(done.said)}


def test_after_a_rotation_the_new_secret_alone_reads_everything(deployment: Deployment) -> None:
    deployment.ready()
    done = deployment.manage("rotate_secrets", BENCHWARMERS_SECRET_KEYS=f"{NEW},{SECRET}")
    assert done.code == 0, done.said
    assert "1 endpoint key" in done.said
    after = findings(deployment, BENCHWARMERS_SECRET_KEYS=NEW)
    assert (after["secrets"]["verdict"], after["endpoint sealed"]["verdict"]) == ("ok", "ok")
    assert findings(deployment)["secrets"]["verdict"] == "fail"


def test_a_rotation_with_the_wrong_secrets_changes_nothing(deployment: Deployment) -> None:
    deployment.ready()
    done = deployment.manage("rotate_secrets", BENCHWARMERS_SECRET_KEYS=NEW)
    assert done.code != 0
    assert "Nothing was changed" in done.said
    assert findings(deployment)["endpoint sealed"]["verdict"] == "ok"


def test_a_healthy_deployment_has_no_failure(deployment: Deployment) -> None:
    deployment.ready()
    done = deployment.manage("doctor")
    assert done.code == 0, done.said
    assert "FAIL" not in done.said


def test_the_doctor_fails_with_a_hint_and_shows_no_key(deployment: Deployment) -> None:
    deployment.ready()
    (deployment.home / "operator.key").chmod(0o644)
    key = (deployment.home / "operator.key").read_text().strip()
    done = deployment.manage("doctor", BENCH_HOST="0.0.0.0", REDIS_URL="redis://127.0.0.1:1/0")
    assert done.code == 1
    assert "chmod 600" in done.said
    assert "BENCHWARMERS_ADMIN_TOKEN" in done.said
    assert "REDIS_URL" in done.said
    assert key not in done.said
    assert SECRET not in done.said


def test_the_doctor_of_an_unreachable_database_says_so(deployment: Deployment) -> None:
    deployment.ready()
    found = findings(deployment, DATABASE_URL="postgresql://nobody@127.0.0.1:1/none")
    assert found["database"]["verdict"] == "fail"
    assert "DATABASE_URL" in found["database"]["hint"]
