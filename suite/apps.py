from django.apps import AppConfig


class SuiteConfig(AppConfig):
    name = "suite"
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        from health import ledger
        from suite.running import recording

        ledger.register(recording.SAMPLES, recording.commit_samples)
        ledger.register(recording.NOTES, recording.commit_notes)
        ledger.register(recording.ENDS, recording.commit_ends)
