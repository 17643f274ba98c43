from django.apps import AppConfig


class PanelsConfig(AppConfig):
    name = "panels"
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        from access import preferences
        from health import jobs, ledger, retention
        from panels import comparison, history, memory, record, records, stored
        from panels.models import Comparison, Panel, Pin, Seat, StoredResponse

        preferences.register(records.HALF_LIFE, records.HALF_LIFE_DAYS, preferences.number(0, 3650), records.TELLS)
        ledger.register("panels", record.commit_panels, Panel)
        ledger.register("seats", record.commit_seats, Seat)
        ledger.register("lost", record.commit_lost)
        ledger.register("pins", memory.commit_pins, Pin)
        ledger.register("responses", stored.commit_responses, StoredResponse)
        ledger.register("comparisons", comparison.commit_comparisons, Comparison)
        jobs.register("pins", 3600, memory.forget_idle)
        jobs.register("responses", 3600, stored.forget_expired)
        jobs.register("texts", 3600, history.forget_old_texts)
        retention.register("texts", history.forget_old_texts)
