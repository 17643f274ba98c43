from django.apps import AppConfig


class HealthConfig(AppConfig):
    name = "health"
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        from health import jobs, sweep

        jobs.register("sweep", 60, sweep.sweep)
        jobs.register("drain", 30, sweep.drain)
