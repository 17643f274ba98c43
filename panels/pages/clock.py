"""What day it is on this server's clock, by which days and months of usage and budgets begin."""

from __future__ import annotations

from datetime import date
from zoneinfo import ZoneInfo

from django.conf import settings
from django.utils import timezone


def zone() -> ZoneInfo:
    return ZoneInfo(settings.BENCH_TIME_ZONE)


def today() -> date:
    return timezone.now().astimezone(zone()).date()
