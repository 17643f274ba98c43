"""Sums the ledger that an earlier version wrote, a day at a time, so that its months are in lists and budgets too."""

from datetime import UTC, datetime, time, timedelta
from zoneinfo import ZoneInfo

from django.conf import settings
from django.db import migrations, transaction
from django.db.models import Count, Max, Min, Q, Sum

PARTS = {
    "model": "model",
    "endpoint": "endpoint",
    "key": "key_name",
    "key_id": "key_id",
    "collection": "collection",
    "purpose": "purpose",
    "judge": "judge",
    "team": "team",
}
SUMMED = ("input_tokens", "output_tokens", "cache_read_tokens", "cache_write_tokens", "reasoning_tokens", "latency_ms", "cost_pusd")
MEASURES = ("calls", "failed", "estimated", "unpriced", *SUMMED)
GOOD = ("ok", "truncated", "cancelled")


def fill(apps, schema_editor):
    alias = schema_editor.connection.alias
    attempts, days, parts = (apps.get_model("health", name).objects.using(alias) for name in ("Attempt", "DayTotal", "PartTotal"))
    zone = ZoneInfo(settings.BENCH_TIME_ZONE)
    ends = attempts.aggregate(first=Min("started_at"), last=Max("started_at"))
    if ends["first"] is None:
        return
    day, last = ends["first"].astimezone(zone).date(), ends["last"].astimezone(zone).date()
    of_months = {}
    while day <= last:
        start = datetime.combine(day, time(), zone).astimezone(UTC)
        end = datetime.combine(day + timedelta(days=1), time(), zone).astimezone(UTC)
        rows = (
            attempts.filter(started_at__gte=start, started_at__lt=end)
            .order_by()
            .values("status", *PARTS.values())
            .annotate(
                of_calls=Count("id"),
                of_failed=Count("id", filter=~Q(status__in=GOOD)),
                of_estimated=Count("id", filter=Q(estimated=True)),
                of_unpriced=Count("id", filter=Q(cost_pusd=None)),
                **{f"of_{name}": Sum(name) for name in SUMMED},
            )
        )
        of_day, of_parts = {}, {}
        for row in rows:
            sums = [int(row[f"of_{name}"] or 0) for name in MEASURES]
            add(of_day, (row["endpoint"], row["model"], row["status"]), sums)
            for part, column in PARTS.items():
                if part != "key_id" or row[column]:
                    add(of_parts, (part, str(row[column])), sums)
        for key, sums in of_parts.items():
            add(of_months, (f"{day:%Y-%m}", *key), sums)
        with transaction.atomic(using=alias):
            days.filter(day=day).delete()
            parts.filter(grain="day", period=f"{day}").delete()
            days.bulk_create(
                [days.model(day=day, endpoint=key[0], model=key[1], status=key[2], **dict(zip(MEASURES, sums))) for key, sums in of_day.items()],
                batch_size=500,
            )
            parts.bulk_create(
                [parts.model(grain="day", period=f"{day}", part=key[0], name=key[1], **dict(zip(MEASURES, sums))) for key, sums in of_parts.items()],
                batch_size=500,
            )
        day += timedelta(days=1)
    with transaction.atomic(using=alias):
        parts.filter(grain="month").delete()
        parts.bulk_create(
            [parts.model(grain="month", period=key[0], part=key[1], name=key[2], **dict(zip(MEASURES, sums))) for key, sums in of_months.items()],
            batch_size=500,
        )


def add(found, key, sums):
    held = found.get(key)
    found[key] = [a + b for a, b in zip(held, sums)] if held else sums


class Migration(migrations.Migration):
    # A day at a time: one transaction over a large ledger would keep everybody else waiting.
    atomic = False
    dependencies = [("health", "0004_roster_version_again")]
    operations = [migrations.RunPython(fill, migrations.RunPython.noop)]
