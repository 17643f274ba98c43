"""How the admin looks: its title, colours and sidebar. Data only; the pages themselves are the rooms' `admin` modules."""

from __future__ import annotations

from typing import Any

from django.templatetags.static import static
from django.urls import reverse_lazy


def may(permission: str) -> Any:
    """A sidebar entry shows to those who may open its page."""
    return lambda request: request.user.has_perm(permission)


def entry(title: str, icon: str, page: str, permission: str) -> dict[str, Any]:
    return {"title": title, "icon": icon, "link": reverse_lazy(f"admin:{page}_changelist"), "permission": may(permission)}


UNFOLD: dict[str, Any] = {
    "SITE_TITLE": "Benchwarmers",
    "SITE_HEADER": "Benchwarmers",
    "SITE_SUBHEADER": "Ask the whole bench",
    "SITE_SYMBOL": "groups",
    "SITE_URL": None,
    "SITE_FAVICONS": [{"rel": "icon", "type": "image/svg+xml", "href": lambda request: static("benchwarmers/icon.svg")}],
    "SHOW_HISTORY": True,
    "SHOW_VIEW_ON_SITE": False,
    "SHOW_BACK_BUTTON": True,
    "BORDER_RADIUS": "6px",
    "DASHBOARD_CALLBACK": "panels.admin.dashboard.dashboard",
    "STYLES": [lambda request: static("benchwarmers/admin.css")],
    "SCRIPTS": [lambda request: static("benchwarmers/admin.js")],
    "COLORS": {
        "primary": {
            "50": "oklch(97.4% .015 180)",
            "100": "oklch(94.2% .04 180)",
            "200": "oklch(88.5% .075 181)",
            "300": "oklch(81% .105 182)",
            "400": "oklch(72.5% .115 183)",
            "500": "oklch(63% .108 184)",
            "600": "oklch(51.5% .09 186)",
            "700": "oklch(44% .076 188)",
            "800": "oklch(37.5% .062 190)",
            "900": "oklch(33% .05 192)",
            "950": "oklch(24% .04 194)",
        },
    },
    "SIDEBAR": {
        "show_search": False,
        "show_all_applications": False,
        "navigation": [
            {
                "items": [{"title": "Overview", "icon": "space_dashboard", "link": reverse_lazy("admin:index")}],
            },
            {
                "title": "Bench",
                "separator": True,
                "items": [
                    entry("Endpoints", "dns", "catalog_endpoint", "catalog.view_endpoint"),
                    entry("Models", "deployed_code", "catalog_model", "catalog.view_model"),
                    entry("Discover", "travel_explore", "catalog_offer", "catalog.view_offer"),
                    entry("Sources", "menu_book", "catalog_source", "catalog.view_source"),
                    entry("Collections", "groups", "panels_collection", "panels.view_collection"),
                ],
            },
            {
                "title": "Upkeep",
                "separator": True,
                "items": [
                    entry("Onboarding", "playlist_add_check", "health_batch", "health.view_batch"),
                    entry("Schedules", "schedule", "health_schedule", "health.view_schedule"),
                    entry("Backends", "memory", "suite_backend", "suite.view_backend"),
                    entry("Settings", "tune", "access_preference", "access.view_preference"),
                    entry("Team settings", "room_preferences", "suite_teamsetting", "suite.view_teamsetting"),
                ],
            },
            {
                "title": "Record",
                "separator": True,
                "items": [
                    {**entry("Panels", "forum", "panels_panel", ""), "permission": "panels.admin.asked.may_see_panels"},
                    entry("Calls", "receipt_long", "health_attempt", "health.view_attempt"),
                    entry("Budgets", "savings", "access_budget", "access.view_budget"),
                    entry("Grants", "account_balance_wallet", "suite_grant", "suite.view_grant"),
                    entry("Alerts", "notifications", "health_alert", "health.view_alert"),
                    entry("Probes", "stethoscope", "health_probe", "health.view_probe"),
                    entry("Verdicts", "gavel", "panels_verdict", "panels.view_verdict"),
                ],
            },
            {
                "title": "People",
                "separator": True,
                "items": [
                    entry("Users", "person", "access_user", "access.view_user"),
                    entry("Keys", "key", "access_key", "access.view_key"),
                    entry("Sign-ins", "login", "catalog_signin", "access.change_key"),
                    entry("Audit trail", "history", "access_auditentry", "access.view_auditentry"),
                ],
            },
        ],
    },
}
