"""What is known of a model goes with it."""

from __future__ import annotations

import pytest
from django.utils import timezone

from catalog import editing
from catalog.models import Endpoint, Model
from health import probing
from health.models import ModelHealth, Rest


@pytest.mark.django_db
def test_a_new_model_under_an_old_name_is_as_unknown_as_any() -> None:
    endpoint = Endpoint.objects.create(name="local", kind="openai", base_url="http://127.0.0.1:9/v1")
    model = Model.objects.create(alias="m", endpoint=endpoint, served_name="m")
    now = timezone.now()
    for alias in ("m", "other", "lost"):
        ModelHealth.objects.create(model=alias, speed={"short": {}}, probe_form={"max": 1})
        Rest.objects.create(scope=f"model:{alias}", until=now, since=now, reason="")
    Model.objects.create(alias="other", endpoint=endpoint, served_name="o")
    editing.delete_model(model.alias, "ada")
    assert (
        set(ModelHealth.objects.values_list("pk", flat=True))
        == set(r.removeprefix("model:") for r in Rest.objects.values_list("scope", flat=True))
        == {"other", "lost"}
    )
    assert probing.forget_gone(now) == 1
    assert set(ModelHealth.objects.values_list("pk", flat=True)) == {"other"}
