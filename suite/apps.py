from django.apps import AppConfig


class SuiteConfig(AppConfig):
    name = "suite"
    default_auto_field = "django.db.models.BigAutoField"
