from django.apps import AppConfig


class HealthConfig(AppConfig):
    name = "health"
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        from access import budgets
        from health import alerts, jobs, learned, ledger, probing, resting, retention, rollups, scheduled, signin_watch, sweep
        from health import budgets as money
        from health.models import Alert, Allowance, Rest

        budgets.on_beginning(money.begin)
        jobs.register("budgets", 60, money.watch)
        ledger.register("alerts", alerts.commit_alerts, Alert)
        ledger.register("rests", resting.commit_rests, Rest)
        ledger.register("learned", learned.commit_learned)
        ledger.register("allowances", learned.commit_allowances, Allowance)
        jobs.register("sweep", 60, sweep.sweep)
        jobs.register("drain", 30, sweep.drain)
        jobs.register("totals", 60, rollups.sweep)
        jobs.register("limits", 3600, learned.forget_gone)
        jobs.register("signins", 600, signin_watch.watch)
        scheduled.register()
        retention.prepare()
        probing.register()
