"""A run's report as one file of HTML that needs nothing else: no script, no picture or font from anywhere, every text of a model or an author escaped."""

from __future__ import annotations

from django.template.loader import render_to_string

from suite.grading.outcomes import SCORED
from suite.models import Run
from suite.reporting import telling
from suite.reporting.telling import OUTCOMES

# Whatever got in, nothing of it runs or is fetched.
POLICY = "sandbox; default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'; frame-ancestors 'self'"


def written(run: Run) -> bytes:
    """Writes the report of a run as it stands."""
    told = telling.of(run)
    told["breakdowns"] = (("By kind of task", told["kinds"] if len(told["kinds"]) > 1 else []), ("By cluster", told["clusters"]))
    told["counted"] = ", ".join(str(outcome) for outcome in OUTCOMES if outcome in SCORED)
    return render_to_string("suite/report.html", told).encode("utf-8", "backslashreplace")
