"""Who may call: users with one of four roles, gateway keys, one-time sign-in links, the audit trail, the roster's version."""

from __future__ import annotations

from typing import Any

from django.contrib.auth.models import AbstractUser
from django.db import models
from django.db.models import CheckConstraint, Q, UniqueConstraint


class Role(models.TextChoices):
    """What a user may do. Each role may do all that the ones before it may."""

    VIEWER = "viewer", "Viewer: reads"
    JUDGE = "judge", "Judge: asks and judges"
    OPERATOR = "operator", "Operator: changes the bench"
    ADMIN = "admin", "Admin: users, keys and secrets too"


class User(AbstractUser):
    """One person. Written by `init`, the admin and the sign-in command."""

    role = models.CharField(max_length=16, choices=Role.choices, default=Role.VIEWER, help_text="Each role may do all that the ones before it may.")
    team = models.CharField(max_length=200, blank=True, help_text="Whose budget their calls count against besides their own, for example platform.")

    class Meta:
        constraints = [CheckConstraint(condition=Q(role__in=["viewer", "judge", "operator", "admin"]), name="access_user_role_known")]

    def save(self, *args: Any, **kwargs: Any) -> None:
        # Everybody who may sign in may open the admin; what they see and do there is their role's.
        self.is_staff = True
        super().save(*args, **kwargs)


class Key(models.Model):
    """One gateway key or personal token. The secret itself is shown once and kept as a digest only. Written by the admin and `POST /bench/keys`."""

    name = models.CharField(max_length=200, help_text="What uses it, for example review-bot.")
    owner = models.CharField(max_length=200, blank=True, help_text="Whose it is: a user's name or any other. Verdicts by this key are the owner's.")
    team = models.CharField(max_length=200, blank=True, help_text="Whose budget its calls count against besides its own, for example platform.")
    digest = models.CharField(max_length=64, unique=True, editable=False)
    hint = models.CharField(max_length=24, editable=False, help_text="How the key begins, to tell keys apart.")
    scopes = models.JSONField(default=list, help_text='What it may do: "ask", "judge", "read", "operate", "admin".')
    collections = models.JSONField(null=True, blank=True, help_text='Collections it may ask, for example ["core"]. Empty and no models: all.')
    rpm = models.PositiveIntegerField(null=True, blank=True, help_text="Requests a minute; a panel is one. Empty: no limit.")
    tpm = models.PositiveBigIntegerField(null=True, blank=True, help_text="Tokens a minute, in and out, all seats together. Empty: no limit.")
    max_parallel = models.PositiveIntegerField(null=True, blank=True, help_text="Calls at once. Empty: no limit.")
    budget_usd = models.DecimalField(max_digits=14, decimal_places=6, null=True, blank=True, help_text="US dollars a calendar month. Empty: no limit.")
    keep_text = models.BooleanField(null=True, blank=True, help_text="Keep the texts of its direct calls too. Unknown: as the collection says.")
    expires_at = models.DateTimeField(null=True, blank=True)
    revoked_at = models.DateTimeField(null=True, blank=True)
    created_at = models.DateTimeField(auto_now_add=True)
    # Last, since the class body would otherwise see this field where it means the module.
    models = models.JSONField(
        null=True, blank=True, help_text='Aliases it may ask, or prefixes, for example ["fast", "meta/*"]. Empty and no collections: all.'
    )

    class Meta:
        ordering = ["-created_at", "-id"]
        constraints = [UniqueConstraint(fields=["name"], condition=Q(revoked_at__isnull=True), name="access_key_live_name_once")]

    def __str__(self) -> str:
        return f"{self.name} ({self.hint}…)"


class KeyUse(models.Model):
    """When a key was last used, at most one write a minute. Apart from the key, so that use does not move the roster's version."""

    key = models.OneToOneField(Key, on_delete=models.CASCADE, primary_key=True, related_name="use")
    last_used_at = models.DateTimeField()


class Budget(models.Model):
    """What an owner, a team or a collection may spend in a calendar month. A key's own budget stands on the key. Written by operators."""

    class Kind(models.TextChoices):
        OWNER = "owner", "Owner: all calls by one person's keys and sessions"
        TEAM = "team", "Team: all calls by the team's keys and people"
        COLLECTION = "collection", "Collection: all calls to it, whoever asks"

    kind = models.CharField(max_length=16, choices=Kind.choices)
    name = models.CharField(max_length=200, help_text="The owner's, team's or collection's name.")
    budget_usd = models.DecimalField(max_digits=14, decimal_places=6, help_text="US dollars a calendar month, for example 250.")
    alert_at = models.JSONField(default=list, blank=True, help_text="Percent of it at which an alert is raised, for example [50, 80, 100].")
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering = ["kind", "name"]
        constraints = [
            UniqueConstraint(fields=["kind", "name"], name="access_budget_once"),
            CheckConstraint(condition=Q(kind__in=["owner", "team", "collection"]), name="access_budget_kind_known"),
        ]

    def __str__(self) -> str:
        return f"{self.kind} {self.name}"


class Preference(models.Model):
    """One setting that was changed while the server runs; what nobody changed has no row. Written by `access.preferences`."""

    name = models.CharField(max_length=80, primary_key=True)
    value = models.JSONField()
    changed_at = models.DateTimeField(auto_now=True)
    changed_by = models.CharField(max_length=200)


class SignInLink(models.Model):
    """One link that signs a user in once, within ten minutes. Written by `serve` and `signin`."""

    digest = models.CharField(max_length=64, unique=True)
    user = models.ForeignKey(User, on_delete=models.CASCADE, related_name="+")
    expires_at = models.DateTimeField()
    used_at = models.DateTimeField(null=True)


class AuditEntry(models.Model):
    """One write that a person, a key or a command made. Written by `access.audit.record`; never changed."""

    at = models.DateTimeField(db_index=True)
    actor = models.CharField(max_length=200, help_text="User, key or command.")
    action = models.CharField(max_length=60, help_text="For example endpoint.change.")
    target = models.CharField(max_length=260, help_text="What was written.")
    changes = models.JSONField(default=dict, help_text="Field: [before, after]. Secrets appear as set or not set.")
    reason = models.CharField(max_length=500, blank=True)

    class Meta:
        ordering = ["-at", "-id"]
        verbose_name_plural = "audit trail"
        indexes = [models.Index(fields=["target", "-at"], name="access_auditentry_target")]

    def __str__(self) -> str:
        return f"{self.at:%Y-%m-%d %H:%M} {self.actor}: {self.action} {self.target}"


class RosterVersion(models.Model):
    """One row, moved by database triggers on every table that a request's plan reads (keys, endpoints, models, prices, collections, rests)."""

    version = models.BigIntegerField(default=1)


class CheckValue(models.Model):
    """One row: a known text encrypted with the server's secret, so that a server with the wrong secret refuses to start."""

    sealed = models.TextField()
