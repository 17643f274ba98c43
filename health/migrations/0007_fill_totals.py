"""Sums the ledger that an earlier version wrote, a day at a time, so that its months are in lists and budgets too."""

from datetime import UTC, datetime, time, timedelta
from zoneinfo import ZoneInfo

from django.conf import settings
from django.db import migrations, transaction
from django.db.models import Count, Max, Min, Q, Sum

NAMES = ("model", "endpoint", "purpose", "collection", "judge", "team", "key_id", "key_name")
SUMMED = ("input_tokens", "output_tokens", "cache_read_tokens", "cache_write_tokens", "reasoning_tokens", "latency_ms", "cost_pusd")
MEASURES = ("calls", "failed", "estimated", "unpriced", *SUMMED)
GOOD = ("ok", "truncated", "cancelled")


def fill(apps, schema_editor):
    attempts = apps.get_model("health", "Attempt").objects.using(schema_editor.connection.alias)
    days = apps.get_model("health", "DayTotal").objects.using(schema_editor.connection.alias)
    months = apps.get_model("health", "MonthTotal").objects.using(schema_editor.connection.alias)
    zone = ZoneInfo(settings.BENCH_TIME_ZONE)
    ends = attempts.aggregate(first=Min("started_at"), last=Max("started_at"))
    if ends["first"] is None:
        return
    day, last = ends["first"].astimezone(zone).date(), ends["last"].astimezone(zone).date()
    while day <= last:
        start = datetime.combine(day, time(), zone).astimezone(UTC)
        end = datetime.combine(day + timedelta(days=1), time(), zone).astimezone(UTC)
        rows = (
            attempts.filter(started_at__gte=start, started_at__lt=end)
            .order_by()
            .values("status", *NAMES)
            .annotate(
                of_calls=Count("id"),
                of_failed=Count("id", filter=~Q(status__in=GOOD)),
                of_estimated=Count("id", filter=Q(estimated=True)),
                of_unpriced=Count("id", filter=Q(cost_pusd=None)),
                **{f"of_{name}": Sum(name) for name in SUMMED},
            )
        )
        with transaction.atomic(using=schema_editor.connection.alias):
            days.filter(day=day).delete()
            days.bulk_create(
                [
                    days.model(
                        day=day,
                        status=row["status"],
                        **{name: row[name] for name in NAMES if name != "key_id"},
                        key_id=row["key_id"] or 0,
                        **{name: int(row[f"of_{name}"] or 0) for name in MEASURES},
                    )
                    for row in rows
                ],
                batch_size=500,
            )
        day += timedelta(days=1)
    with transaction.atomic(using=schema_editor.connection.alias):
        months.all().delete()
        summed = {}
        for total in days.order_by().iterator(chunk_size=2000):
            key = (f"{total.day:%Y-%m}", *(getattr(total, name) for name in NAMES))
            held = summed.setdefault(key, [0] * len(MEASURES))
            for place, name in enumerate(MEASURES):
                held[place] += getattr(total, name)
        months.bulk_create(
            [months.model(month=key[0], **dict(zip(NAMES, key[1:])), **dict(zip(MEASURES, held))) for key, held in summed.items()], batch_size=500
        )


class Migration(migrations.Migration):
    # A day at a time: one transaction over a large ledger would keep everybody else waiting.
    atomic = False
    dependencies = [("health", "0006_totals")]
    operations = [migrations.RunPython(fill, migrations.RunPython.noop)]
