from django.apps import AppConfig


class SuiteConfig(AppConfig):
    name = "suite"
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        from access import budgets, preferences
        from health import jobs, ledger, onboarding_stages
        from health import scheduled as schedule
        from panels import records
        from panels.pages import seats
        from panels.pages.frame import Entry, add_to_menu
        from suite.billing import accounts, controls
        from suite.models import Answer, Event, Run, Sample
        from suite.registry import scores, selfchecking
        from suite.running import passes, recording, retention

        ledger.register(recording.SAMPLES, recording.commit_samples, Sample)
        ledger.register(recording.ANSWERS, recording.commit_answers, Answer)
        ledger.register(recording.NOTES, recording.commit_notes, Event)
        ledger.register(recording.HALTS, recording.commit_halts, Run)
        ledger.register(recording.ENDS, recording.commit_ends, Run)
        jobs.register("selfcheck", 7 * 86400, selfchecking.run)
        jobs.register("suite_retention", 3600, retention.run)
        jobs.register("suite_allowances", 60, controls.run)
        budgets.on_grants(accounts.limits)
        records.register_scores(scores.of)
        schedule.fill_suite(passes.scheduled, passes.is_set_up)
        onboarding_stages.fill_suite(passes.onboarded)
        add_to_menu(
            before="Spend",
            entries=[
                Entry("Overview", "sparkles", "pages:suite", "runs:read", "Suite"),
                Entry("Runs", "play", "pages:runs", "runs:read"),
                Entry("Benchmarks", "star", "pages:registry", "registry:read"),
                Entry("Budget", "wallet", "pages:money", "billing:read"),
            ],
        )
        preferences.register(passes.STARTER, False, preferences.truth, passes.STARTER_TELLS)
        seats.offer_tasks("/v1/subsets:from-verdict")
