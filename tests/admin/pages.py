"""Every page that the admin has for a seeded bench, with the least role that may open it."""

from __future__ import annotations

from django.contrib.admin.utils import quote
from django.urls import reverse

from access.models import AuditEntry, Key, User
from catalog.models import Endpoint, Model
from health.models import Attempt, Batch
from panels.models import Collection, Panel, Verdict

ROLES = ("viewer", "judge", "operator", "admin")


def lists() -> dict[str, str]:
    return {
        reverse("admin:index"): "viewer",
        reverse("admin:catalog_endpoint_changelist"): "viewer",
        reverse("admin:catalog_model_changelist"): "viewer",
        reverse("admin:catalog_offer_changelist"): "viewer",
        reverse("admin:catalog_source_changelist"): "viewer",
        reverse("admin:panels_collection_changelist"): "viewer",
        reverse("admin:panels_panel_changelist"): "judge",
        reverse("admin:health_attempt_changelist"): "viewer",
        reverse("admin:health_batch_changelist"): "viewer",
        reverse("admin:health_schedule_changelist"): "viewer",
        reverse("admin:health_schedule_change", args=["probe"]): "viewer",
        reverse("admin:access_preference_changelist"): "viewer",
        reverse("admin:suite_backend_changelist"): "viewer",
        reverse("admin:suite_grant_changelist"): "viewer",
        reverse("admin:suite_teamsetting_changelist"): "viewer",
        reverse("admin:panels_verdict_changelist"): "viewer",
        reverse("admin:panels_verdict_records_page"): "viewer",
        reverse("admin:catalog_signin_changelist"): "admin",
        reverse("admin:catalog_signin_start"): "admin",
        reverse("admin:access_key_changelist"): "viewer",
        reverse("admin:access_user_changelist"): "admin",
        reverse("admin:access_auditentry_changelist"): "admin",
    }


def of_rows() -> dict[str, str]:
    """Pages of single rows, and forms."""
    endpoint, model, collection = Endpoint.objects.first(), Model.objects.filter(status="active").first(), Collection.objects.first()
    retired, key, user = Model.objects.filter(status="retired").first(), Key.objects.first(), User.objects.get(username="viewer")
    panel = Panel.objects.filter(judge="operator").first()
    found = {
        reverse("admin:catalog_endpoint_change", args=[endpoint.pk]): "viewer",
        reverse("admin:catalog_endpoint_add"): "operator",
        reverse("admin:suite_backend_add"): "admin",
        reverse("admin:suite_grant_add"): "admin",
        reverse("admin:catalog_endpoint_serves", args=[endpoint.pk]): "operator",
        reverse("admin:catalog_endpoint_rotate", args=[endpoint.pk]): "operator",
        reverse("admin:catalog_endpoint_delete", args=[endpoint.pk]): "operator",
        reverse("admin:catalog_model_change", args=[model.pk]): "viewer",
        reverse("admin:catalog_model_add"): "operator",
        reverse("admin:catalog_model_retire", args=[model.pk]): "operator",
        reverse("admin:catalog_model_restore", args=[retired.pk]): "operator",
        reverse("admin:panels_collection_change", args=[collection.pk]): "viewer",
        reverse("admin:panels_collection_add"): "operator",
        reverse("admin:panels_collection_ask_it", args=[collection.pk]): "viewer",
        reverse("admin:panels_collection_record_page", args=[collection.pk]): "viewer",
        reverse("admin:panels_collection_clone", args=[collection.pk]): "operator",
        reverse("admin:panels_panel_change", args=[quote(panel.pk)]): "operator",
        reverse("admin:health_attempt_change", args=[quote(Attempt.objects.first().pk)]): "viewer",
        reverse("admin:panels_verdict_change", args=[Verdict.objects.first().pk]): "viewer",
        reverse("admin:panels_verdict_add"): "judge",
        reverse("admin:access_key_change", args=[key.pk]): "viewer",
        reverse("admin:access_key_add"): "admin",
        reverse("admin:access_key_revoke", args=[key.pk]): "admin",
        reverse("admin:access_user_change", args=[user.pk]): "admin",
        reverse("admin:access_user_add"): "admin",
        reverse("admin:access_user_sign_in_link", args=[user.pk]): "admin",
        reverse("admin:auth_user_password_change", args=[user.pk]): "admin",
    }
    if batch := Batch.objects.first():
        found[reverse("admin:health_batch_change", args=[quote(batch.pk)])] = "viewer"
    if entry := AuditEntry.objects.first():
        found[reverse("admin:access_auditentry_change", args=[entry.pk])] = "admin"
    return found
