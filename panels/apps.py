from django.apps import AppConfig


class PanelsConfig(AppConfig):
    name = "panels"
    default_auto_field = "django.db.models.BigAutoField"
