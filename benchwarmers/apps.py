from django.apps import AppConfig


class BenchwarmersConfig(AppConfig):
    name = "benchwarmers"
    default_auto_field = "django.db.models.BigAutoField"
