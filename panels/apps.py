from django.apps import AppConfig


class PanelsConfig(AppConfig):
    name = "panels"
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        from health import ledger
        from panels import record

        ledger.register("panels", record.commit_panels)
        ledger.register("seats", record.commit_seats)
        ledger.register("lost", record.commit_lost)
