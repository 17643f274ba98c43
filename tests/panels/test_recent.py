"""What the API says a collection's panels came to lately, and a model's prices by date."""

from __future__ import annotations

from datetime import timedelta
from decimal import Decimal

import pytest
from django.utils import timezone

from catalog.models import Price
from health.models import Attempt
from panels.models import Panel
from tests.panels.conftest import Api, make_collection, make_model, make_panel, ok

pytestmark = pytest.mark.django_db


def test_a_collection_shows_what_its_newest_panels_cost_and_took(operator: Api) -> None:
    make_model("mercury")
    make_collection("core", ("mercury",))
    make_collection("quiet", ("mercury",))
    now = timezone.now()
    for n in range(25):
        row = make_panel({"model": "mercury"}, collection="core")
        Panel.objects.filter(pk=row.pk).update(asked_at=now - timedelta(days=2 * n), seconds=2.0, status="complete")
        Attempt.objects.filter(panel=row.pk).update(cost_pusd=2_000_000 if n < 20 else 9_000_000_000, purpose="panel")
    recent = ok(operator.get("collections/core"))["recent"]
    assert recent == {"days": 30, "panels": 15, "of": 20, "cost_usd": "0.000002", "seconds": 2.0}
    shown = {one["name"]: one["recent"] for one in ok(operator.get("collections"))["data"]}
    assert shown == {"core": recent, "quiet": {"days": 30, "panels": 0, "of": 0, "cost_usd": None, "seconds": None}}


def test_a_panel_with_a_call_of_unknown_price_is_left_out_of_the_mean(operator: Api) -> None:
    make_model("mercury")
    make_collection("core", ("mercury",))
    for cost in (4_000_000, None):
        row = make_panel({"model": "mercury"}, collection="core")
        Panel.objects.filter(pk=row.pk).update(status="complete")
        Attempt.objects.filter(panel=row.pk).update(cost_pusd=cost, purpose="panel")
    assert ok(operator.get("collections/core"))["recent"]["cost_usd"] == "0.000004"


def test_a_model_shows_its_prices_by_date(operator: Api) -> None:
    row = make_model("mercury")
    today = timezone.now().date()
    for days, amount in ((40, "1"), (3, "0.5")):
        Price.objects.create(model=row, since=today - timedelta(days=days), input_usd_per_mtok=Decimal(amount), output_usd_per_mtok=Decimal(amount) * 3)
    found = [
        (one["since"], one["input_usd_per_mtok"], one["output_usd_per_mtok"], one["cache_read_usd_per_mtok"])
        for one in ok(operator.get("models/mercury"))["prices"]
    ]
    assert found == [((today - timedelta(days=3)).isoformat(), "0.5", "1.5", None), ((today - timedelta(days=40)).isoformat(), "1", "3", None)]
