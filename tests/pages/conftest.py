"""The pages' tests stand on the admin's: the same seeded bench, the same clients by role, the same browser."""

from __future__ import annotations

from tests.admin.conftest import admin, as_role, collected_static_files, hostile_bench, open_page, operator, quick_passwords, small_bench, trail

__all__ = ["admin", "as_role", "collected_static_files", "hostile_bench", "open_page", "operator", "quick_passwords", "small_bench", "trail"]
