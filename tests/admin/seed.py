"""A bench with a past: endpoints, models, collections, panels, calls and verdicts, written straight into the database."""

from __future__ import annotations

import json
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal

from access import keys
from access.ids import new_id
from access.models import User
from catalog.endpoint_keys import set_key
from catalog.models import Endpoint, Model, Price
from health.models import Attempt, Batch, ModelUse, Onboarding, Rest
from panels.models import Collection, Member, Panel, Seat
from panels.verdicts import record_verdict

CANARY = "sk-canary-7f3a9b51c2d84e60"
HOSTILE = [
    "<img src=x onerror=alert(1)>",
    "</script><script>alert(2)</script>",
    "=cmd|' /C calc'!A0",
    "'\"><svg onload=alert(3)>",
    "{{ 7*7 }}{% debug %}",
    "نموذج عربي",
    "模型一号",
    "🦙🚀 llama",
    "very-long-" + "name-without-a-break" * 8,
]
NOW = datetime(2026, 11, 29, 16, 0, tzinfo=UTC)


def people() -> dict[str, User]:
    """One user of each role, named like it."""
    made = {}
    for role in ("viewer", "judge", "operator", "admin"):
        found = User.objects.filter(username=role).first()
        made[role] = found or User.objects.create_user(username=role, password="a-password-for-tests", role=role)
    return made


def endpoint(name: str, base_url: str = "http://127.0.0.1:9/v1", key: str = "", **more: object) -> Endpoint:
    row = Endpoint(name=name, base_url=base_url, **more)
    set_key(row, key)
    row.save()
    return row


def model(alias: str, at: Endpoint, **more: object) -> Model:
    row = Model.objects.create(alias=alias, endpoint=at, served_name=more.pop("served_name", f"served/{alias}")[:300], **more)
    Price.objects.create(model=row, since=date(2026, 1, 1), input_usd_per_mtok=Decimal("0.5"), output_usd_per_mtok=Decimal("1.5"))
    return row


def collection(name: str, members: list[Model], mergers: list[Model] | None = None, **more: object) -> Collection:
    row = Collection.objects.create(name=name, **more)
    for place, models in (("member", members), ("merger", mergers or [])):
        Member.objects.bulk_create(Member(collection=row, model=m, place=place, position=i) for i, m in enumerate(models))
    return row


def attempt(call: str, panel: str, model: Model, at: datetime, status: str = "ok", judge: str = "operator", **more: object) -> Attempt:
    return Attempt(
        id=new_id("att"),
        call=call,
        panel=panel,
        purpose="panel",
        seat="member",
        judge=judge,
        endpoint=model.endpoint.name,
        model=model.alias,
        served_name=model.served_name,
        started_at=at,
        latency_ms=1840,
        ttft_ms=310,
        status=status,
        input_tokens=812,
        output_tokens=240,
        cost_pusd=1_320_000_000,
        **more,
    )


def panel(
    of: Collection,
    models: list[Model],
    at: datetime,
    judge: str = "operator",
    texts: list[str | None] | None = None,
    prompt: str | None = "What is wrong here?",
) -> Panel:
    """A panel that was asked, its last seat rate-limited where there are more than two."""
    row = Panel.objects.create(
        id=new_id("pan"),
        asked_at=at,
        collection=of.name,
        mode="panel",
        status="complete" if len(models) < 3 else "degraded",
        judge=judge,
        prompt=None if prompt is None else json.dumps([{"role": "system", "content": "Be brief."}, {"role": "user", "content": prompt}]),
        seconds=7.9,
        seed=42,
        dialect="openai-chat",
    )
    attempts = []
    for position, one in enumerate(models):
        failed = len(models) > 2 and position == len(models) - 1
        text = None if texts is None or failed else texts[position % len(texts)]
        call = new_id("call")
        Seat.objects.create(
            call=call,
            panel=row,
            position=position,
            model=one.alias,
            seat="member" if position < 3 else "explorer",
            status="rate_limited" if failed else "ok",
            code="rate_limit_exceeded" if failed else "",
            message="Endpoint asks to be left alone for 30 s (429)." if failed else "",
            text=text,
            finish_reason="" if failed else "stop",
            seconds=1.84,
            ttft_seconds=0.31,
        )
        attempts.append(attempt(call, row.pk, one, at, "rate_limited" if failed else "ok", judge, collection=of.name))
        if failed:
            attempts[-1].http_status, attempts[-1].code, attempts[-1].cost_pusd = 429, "rate_limit_exceeded", 0
    Attempt.objects.bulk_create(attempts)
    return row


ANSWERS = [
    "The loop never ends when `limit` is 0: it compares after the increment.\n\n```python\nwhile count < limit:\n    count += 1\n```\n\nThe rest is fine.",
    "Three things:\n\n1. The file is opened and never closed.\n2. `except:` hides a KeyboardInterrupt.\n3. The total is a float; money should be a Decimal.",
    "I see no defect. The function reads well and the names are good.",
]


def newcomers(at: Endpoint, names: list[str]) -> None:
    """A batch that is half-way."""
    batch = Batch.objects.create(id="onb_seeded", endpoint=at.name, mode="full", by="operator", made_at=NOW)
    for number, name in enumerate(names):
        done = {
            "register": {"outcome": "ok", "said": f"Added as {name}."},
            "check": {"outcome": "failed" if number == 1 else "ok", "said": "It answered in 0.4 s."},
        }
        Onboarding.objects.create(
            batch=batch,
            position=number,
            endpoint=at.name,
            served_name=name,
            alias=name[:200],
            mode="full",
            state="failed" if number == 1 else "running",
            stage="check" if number == 1 else "speed",
            stages_done=done,
            log=[{"at": NOW.isoformat(), "said": f"register: added as {name}."}],
            message=f"The model {name} does not exist." if number == 1 else "",
            cost_pusd=1_300_000,
        )


def bench(count: int = 3, hostile: bool = False) -> None:
    """A whole bench of so many models. With 0 there is nothing but people."""
    people()
    if not count:
        return
    groq = endpoint("groq-eu", "https://api.groq.example/openai/v1", CANARY, limits={"requests": {"minute": 30, "day": 1000}, "tokens": {"minute": 60000}})
    local = endpoint("local", "http://127.0.0.1:9000/v1", limits={"parallel": 4})
    names = ["mercury", "slow-but-sure", "scout"] + [f"meta-llama/Llama-{i // 7 + 1}.{i % 7}-{8 * (i % 9 + 1)}B" for i in range(3, count)]
    if hostile:
        names[: len(HOSTILE)] = HOSTILE
    models = []
    for i, name in enumerate(names[: max(count, len(HOSTILE) if hostile else 0)]):
        listed = {"context_window": 8192 << (i % 6), "tools": i % 2 == 0, "vision": i % 5 == 0}
        models.append(
            model(
                name,
                groq if i % 3 else local,
                listed_facts=listed,
                listed_at=NOW - timedelta(days=2),
                facts={"output_limit": 8192} if i == 0 else {},
                ad_hoc=i % 17 == 16,
            )
        )
        ModelUse.objects.create(model=name, seats=7 * i + 3, last_seated_at=NOW - timedelta(hours=i)) if i % 4 != 3 else None
    if count > 2:
        Model.objects.filter(pk=models[2].pk).update(
            status="retired", status_reason="Answers in the wrong language.", status_at=NOW, status_evidence={"by": "operator", "seen": "call_01"}
        )
        Rest.objects.create(
            scope=f"model:{models[1].alias}", until=datetime.now(UTC) + timedelta(minutes=9), reason="429, asked to wait 600 s", since=datetime.now(UTC)
        )
    newcomers(local, HOSTILE[:3] if hostile else ["vendor/one", "vendor/two"])
    core = collection("core", models[: min(len(models), 5)], models[:1], description="Adversarial review of changes before they are merged")
    many = collection(
        HOSTILE[0][:60] if hostile else "design", models[: min(len(models), 12)], description=HOSTILE[1] if hostile else "Open questions of design", quorum=2
    )
    texts: list[str | None] = [*HOSTILE] if hostile else [*ANSWERS]
    now = datetime.now(UTC)
    asked = [
        panel(
            core if i % 3 else many,
            models[: min(len(models), 2 + i % 4)],
            now - timedelta(hours=3 * i, minutes=7),
            texts=texts,
            prompt=HOSTILE[i % 2] if hostile else "Review this function. What is wrong with it?",
        )
        for i in range(min(12, 4 * count))
    ]
    panel(core, models[:2], now - timedelta(days=100), texts=None, prompt=None)
    for i, row in enumerate(asked[3:]):
        for seat in row.seats.filter(status="ok"):
            record_verdict(
                "judge" if i % 2 else "operator",
                seat.call,
                i % 3 != 0,
                HOSTILE[0] if hostile else "Checked by running it.",
                ["The loop never ends"] if i % 3 else [],
                ["The file stays open"] if i % 4 == 0 else [],
                now - timedelta(hours=i),
            )
    keys.mint("review-bot", owner="operator", rpm=60, budget_usd="25", collections=["core"], actor="admin")
    keys.mint(HOSTILE[0] if hostile else "ci", actor="admin")
