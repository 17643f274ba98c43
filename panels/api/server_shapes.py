"""What this API takes and gives of the server and its client, for its OpenAPI description."""

from __future__ import annotations

from typing import Any

from rest_framework import serializers as s


class QueueStatus(s.Serializer[Any]):
    waiting = s.IntegerField(allow_null=True)
    oldest_s = s.FloatField(allow_null=True)
    workers = s.IntegerField()


class OutboxStatus(s.Serializer[Any]):
    files = s.IntegerField()
    bytes = s.IntegerField()
    rejected_bytes = s.IntegerField()


class Status(s.Serializer[Any]):
    version = s.CharField()
    url = s.CharField()
    mode = s.CharField(help_text="full or gateway.")
    database = s.CharField(help_text="sqlite or postgresql.")
    queue = QueueStatus()
    outbox = OutboxStatus()
    schedules = s.ListField(child=s.DictField())


class ClientInstall(s.Serializer[Any]):
    pipx = s.CharField()
    uv = s.CharField()
    pip = s.CharField(help_text="With the sum, which pip checks.")


class ClientOffered(s.Serializer[Any]):
    name = s.CharField()
    version = s.CharField()
    requires_python = s.CharField()
    file = s.CharField(help_text="The wheel's file name.")
    url = s.CharField(help_text="Where it is.")
    size = s.IntegerField(help_text="Bytes.")
    sha256 = s.CharField(help_text="Hex.")
    install = ClientInstall(help_text="A command for each installer.")
