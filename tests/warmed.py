"""What processes of `tests.warm` have loaded when they begin. Never to be imported by tests: it is set up as they are not."""
# ruff: noqa: E402 - the settings must know the rooms before anything of ours is imported

from __future__ import annotations

import os

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "benchwarmers.settings")

import django
from django.conf import settings

# Most of what a start costs is the admin, which nothing there needs.
settings.INSTALLED_APPS = ["django.contrib.auth", "django.contrib.contenttypes", "access", "catalog", "health", "panels", "suite"]
django.setup()

import tests.health.victim
import tests.suite.run_worker  # noqa: F401
