"""What a run of probes will cost, before it does: from what the same probe cost last time, else from tokens and the day's price."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from django.db.models import Max

from catalog.roster import Model
from health.costs import cost_pusd
from health.drift_prompts import PROMPTS
from health.models import Attempt, ModelHealth, Probe
from health.probe_calls import WORD, Question
from health.probe_forms import LIMITS, Form, remembered
from health.roll import roll
from health.speed import QUESTIONS
from wire.conversation import Usage
from wire.estimate import MESSAGE_TOKENS, text_tokens

KINDS = ("word", "perf", "drift")
ERRANDS = {"word": "probe", "perf": "perf", "drift": "drift"}
ASKED: dict[str, tuple[Question, ...]] = {"word": (WORD,), "perf": QUESTIONS, "drift": PROMPTS}
# Units: tokens that every call's frame takes at most providers.
FRAME = 6
# How much a model that thinks without end thinks over a small question.
THOUGHT = 300


@dataclass(frozen=True, slots=True)
class ModelEstimate:
    """What one model's part will cost. Units: `cost_pusd` trillionths of a US dollar; None where its price is unknown."""

    alias: str
    endpoint: str
    calls: int
    input_tokens: int
    output_tokens: int
    cost_pusd: int | None


@dataclass(frozen=True, slots=True)
class Estimate:
    """What a run will cost. Shape: `cost_pusd` sums the models whose price is known, `unpriced` counts the others; None where it is known of none."""

    kind: str
    models: tuple[ModelEstimate, ...]
    cost_pusd: int | None
    unpriced: int

    def cost_of(self, alias: str) -> int | None:
        return next((m.cost_pusd for m in self.models if m.alias == alias), None)


def estimate(kind: str, models: Sequence[Model] | None = None) -> Estimate:
    """Reckons what a run costs: of these models, or of all that take part. Errors: KeyError for an unknown kind."""
    questions = ASKED[kind]
    taken = roll().models if models is None else models
    aliases = [m.alias for m in taken]
    forms = dict(ModelHealth.objects.filter(pk__in=aliases).values_list("pk", "probe_form"))
    last = last_costs(questions, aliases)
    found = tuple(one_of(m, questions, forms.get(m.alias) or {}, last.get(m.alias)) for m in taken)
    known = [m.cost_pusd for m in found if m.cost_pusd is not None]
    return Estimate(kind, found, sum(known) if known or not found else None, len(found) - len(known))


def one_of(model: Model, questions: Sequence[Question], kept: dict[str, object], last: tuple[int, int] | None) -> ModelEstimate:
    reasons = model.facts.get("reasoning")
    form = remembered(kept, reasons if isinstance(reasons, bool) else None)
    tokens = last or (sum(text_tokens(q.text) + MESSAGE_TOKENS + FRAME for q in questions), sum(q.words_tokens + thought(form) for q in questions))
    cost = cost_pusd(Usage(input=tokens[0], output=tokens[1]), model.price_on(datetime.now(UTC).date()))
    return ModelEstimate(model.alias, model.endpoint.name, len(questions), tokens[0], tokens[1], cost)


def thought(form: Form) -> int:
    return THOUGHT if form.output_limit is None or form.output_limit > LIMITS[1] else 0


def last_costs(questions: Sequence[Question], aliases: Sequence[str]) -> dict[str, tuple[int, int]]:
    """The tokens that each question took when it was last answered, summed by model; only where every question was. Two queries."""
    newest = (
        Probe.objects.filter(model__in=list(aliases), kind__in=[q.kind for q in questions], outcome=Probe.Outcome.OK)
        .order_by()
        .values("model", "kind", "prompt")
        .annotate(id=Max("attempt"))  # ids sort by time
    )
    ids = {row["id"]: row["model"] for row in newest}
    found: dict[str, list[tuple[int, int]]] = {}
    for pk, went, came in Attempt.objects.filter(pk__in=list(ids)).values_list("pk", "input_tokens", "output_tokens"):
        found.setdefault(ids[pk], []).append((went, came))
    return {alias: (sum(w for w, _ in all_), sum(c for _, c in all_)) for alias, all_ in found.items() if len(all_) == len(questions)}
