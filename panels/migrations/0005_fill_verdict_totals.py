"""Sums the verdicts that an earlier version kept, so that their records are read without them."""

import re
import unicodedata
from collections import defaultdict
from itertools import combinations

from django.db import migrations

WHOLE = 5_354_228_880
MEASURES = ("judged", "said", "useful", "wrong", "real", "false")
WORD = re.compile(r"[^\W_]+(?:[.,'][^\W_]+)*")
LITTLE = {"a", "an", "and", "are", "as", "at", "be", "by", "for", "from", "in", "is", "it", "its", "of", "on", "or", "that", "the", "this", "to", "was"}
NOT = {"not", "no", "never", "without", "cannot", "isn't", "aren't", "doesn't", "don't", "can't", "won't", "wasn't"}


def fill(apps, schema_editor):
    alias = schema_editor.connection.alias
    verdicts, seats, totals, judges, panels = (
        apps.get_model("panels", name).objects.using(alias) for name in ("Verdict", "Seat", "VerdictTotal", "VerdictJudge", "JudgedPanel")
    )
    by_call, by_judge, said = defaultdict(list), defaultdict(int), defaultdict(list)
    names = ("id", "call", "judge", "collection", "model", "useful", "real", "false", "at")
    for pk, call, judge, collection, model, useful, real, false, at in verdicts.filter(current=True).order_by("id").values_list(*names).iterator(chunk_size=2000):
        by_call[collection, model, call].append((int(at.timestamp() // 86_400), useful, len(real), len(false)))
        by_judge[collection, model, judge] += 1
        said[call].append((pk, collection, model, false))
    summed = defaultdict(lambda: [0] * len(MEASURES))
    for (collection, model, _), together in by_call.items():
        share = round(WHOLE / len(together))
        saying = sum(useful is not None for _, useful, _, _ in together)
        of_said = round(WHOLE / saying) if saying else 0
        for day, useful, real, false in together:
            one = (share, of_said * (useful is not None), of_said * bool(useful), share * (false > 0), share * real, share * false)
            held = summed[collection, model, day]
            for place, value in enumerate(one):
                held[place] += value
    totals.bulk_create([totals.model(collection=c, model=m, day=d, **dict(zip(MEASURES, sums))) for (c, m, d), sums in summed.items()], batch_size=500)
    judges.bulk_create([judges.model(collection=c, model=m, judge=j, calls=calls) for (c, m, j), calls in by_judge.items()], batch_size=500)
    of_panel, calls = defaultdict(list), list(said)
    for start in range(0, len(calls), 5000):
        for call, panel in seats.filter(call__in=calls[start : start + 5000]).values_list("call", "panel_id"):
            of_panel[panel] += said[call]
    made = []
    for panel, rows in of_panel.items():
        rows.sort(key=lambda row: row[0])
        claims = {}
        for _, _, model, false in rows:
            claims.setdefault(model, []).extend(words_of(claim) for claim in false)
        wrong = sorted(model for model, found in claims.items() if found)
        shared = [[one, other] for one, other in combinations(wrong, 2) if any(same(x, y) for x in claims[one] for y in claims[other])]
        flags = {model: int(bool(claims[model])) for model in sorted(claims)}
        made.append(panels.model(panel=panel, collection=rows[-1][1], verdict=rows[-1][0], models_judged=len(flags), wrong=flags, shared=shared))
    panels.bulk_create(made, batch_size=500)


def words_of(claim):
    text = unicodedata.normalize("NFKC", claim).casefold().replace("’", "'")
    found = set()
    for word in WORD.findall(text):
        if word.isascii():
            found |= {word} - LITTLE
        elif len(word) > 2 and any(unicodedata.east_asian_width(c) in "WF" or "\u0e00" <= c <= "\u0eff" for c in word):
            found |= {word[i : i + 2] for i in range(len(word) - 1)}
        else:
            found.add(word)
    return frozenset(found or {text.strip()})


def same(one, other):
    numbers, others = {w for w in one if w[0].isdigit()}, {w for w in other if w[0].isdigit()}
    if (numbers and others and numbers.isdisjoint(others)) or one.isdisjoint(NOT) != other.isdisjoint(NOT):
        return False
    return len(one & other) > 0.5 * len(one | other)


class Migration(migrations.Migration):
    dependencies = [("panels", "0004_verdict_totals")]
    operations = [migrations.RunPython(fill, migrations.RunPython.noop)]
