"""What this API takes and gives of collections and what their records say, for its OpenAPI description."""

from __future__ import annotations

from typing import Any

from rest_framework import serializers as s

from panels.api.shapes import usd


class Rate(s.Serializer[Any]):
    """A share and how sure it is: the posterior over Beta(1, 1), with its 95% interval."""

    yes = s.FloatField(help_text="Weights: verdicts age, and several judges of one call share its weight.")
    of = s.FloatField()
    mean = s.FloatField()
    low = s.FloatField()
    high = s.FloatField()
    counted_yes = s.FloatField(help_text="As `yes` before it aged; a fraction where several judged one call.")
    counted = s.FloatField(help_text="As `of` before it aged.")


class Record(s.Serializer[Any]):
    collection = s.CharField()
    model = s.CharField()
    judged = s.IntegerField(help_text="Calls.")
    weight = s.FloatField(help_text="What they weigh: a verdict of one half-life ago half.")
    judges = s.IntegerField()
    useful = Rate()
    confidently_wrong = Rate(help_text="Share of judged answers with at least one false claim.")
    real = s.FloatField()
    false = s.FloatField()


class CollectionAsked(s.Serializer[Any]):
    name = s.CharField(max_length=200, help_text="Needed to add one; it cannot be changed.")
    description = s.CharField(required=False, max_length=1000)
    shape = s.CharField(required=False, max_length=40)
    members = s.ListField(child=s.CharField(), required=False, help_text="Aliases in order; one may stand twice.")
    mergers = s.ListField(child=s.CharField(), required=False)
    picking = s.ChoiceField(choices=["fixed", "record"], required=False, help_text="Who takes a route turn, and who sits where not all do.")
    seats = s.IntegerField(required=False, allow_null=True, help_text="How many members sit in a panel; null: all.")
    explorers = s.IntegerField(required=False)
    timeout_s = s.IntegerField(required=False)
    first_token_timeout_s = s.IntegerField(required=False)
    idle_timeout_s = s.IntegerField(required=False)
    quorum = s.IntegerField(required=False, allow_null=True)
    grace_s = s.IntegerField(required=False)
    wait_max_s = s.IntegerField(required=False)
    failover_on_refusal = s.BooleanField(required=False)
    shadow_share = s.FloatField(required=False)
    keep_text = s.BooleanField(required=False, allow_null=True)
    merge_prompt = s.CharField(required=False, allow_null=True)


class Usefulness(s.Serializer[Any]):
    """The posterior's mean and 95% interval; verdicts age."""

    mean = s.FloatField()
    low = s.FloatField()
    high = s.FloatField()


class Wrongness(s.Serializer[Any]):
    """The same of answers that hold a false claim."""

    rate = s.FloatField()
    low = s.FloatField()
    high = s.FloatField()


class Claims(s.Serializer[Any]):
    real = s.FloatField()
    false = s.FloatField()


class Found(s.Serializer[Any]):
    """What verdicts say, summed up."""

    judged = s.IntegerField(help_text="Calls.")
    useful = s.FloatField(help_text="Of them, a fraction where judges differ.")
    usefulness = Usefulness(allow_null=True)
    claims = Claims()
    confidently_wrong = Wrongness(allow_null=True)


class Recent(s.Serializer[Any]):
    """Of panels and merged panels."""

    days = s.IntegerField()
    panels = s.IntegerField(help_text="How many were asked in so many days.")
    of = s.IntegerField(help_text="Of how many of its newest panels the means are, at most 20; in a list, of those among the newest 400 of all.")
    cost_usd = usd("A panel's mean, of those whose calls all had a price.")
    seconds = s.FloatField(allow_null=True, help_text="A panel's mean.")


class Collection(CollectionAsked):
    recent = Recent()
    record = Found(help_text="Of all answers in it together.")


class Suggestion(s.Serializer[Any]):
    kind = s.ChoiceField(choices=["promote", "bench"])
    model = s.CharField()
    than = s.CharField(help_text="Whom it was compared with.")
    probability = s.FloatField(help_text="That it is more useful (promote) or less (bench).")
    useful = Rate()
    useful_than = Rate()
    reason = s.CharField()


class ErrorPair(s.Serializer[Any]):
    one = s.CharField()
    other = s.CharField()
    panels = s.IntegerField(help_text="In which both were judged.")
    one_wrong = s.IntegerField(help_text="With at least one false claim.")
    other_wrong = s.IntegerField()
    both_wrong = s.IntegerField()
    expected = s.FloatField(help_text="The share with both wrong if they erred independently.")
    phi = s.FloatField(allow_null=True, help_text="The correlation of their errors; null where one was never or always wrong.")
    odds_ratio = s.FloatField(allow_null=True)
    odds_low = s.FloatField(allow_null=True)
    odds_high = s.FloatField(allow_null=True)
    shared = Rate(help_text="The share of panels in which both made the same false claim.")


class Independence(s.Serializer[Any]):
    seats = s.IntegerField()
    effective = s.FloatField(allow_null=True, help_text="How many independent seats they amount to; null where too little is judged.")
    low = s.FloatField(allow_null=True)
    high = s.FloatField(allow_null=True)
    correlation = s.FloatField(allow_null=True, help_text="Of errors, the mean over pairs.")
    panels = s.IntegerField(help_text="In which two members or more were judged.")
    needs = s.CharField(help_text="What is missing for a number; empty where nothing is.")
    pairs = ErrorPair(many=True)


class CollectionWithRecord(Collection):
    records = Record(many=True, help_text="By model.")
    scores = s.DictField(child=s.FloatField(), help_text="The suite's, from 0 to 1, by model: members and whoever has a record here.")
    half_life_days = s.FloatField(help_text="Days after which a verdict weighs half; 0: none ages.")
    suggestions = Suggestion(many=True)
    independence = Independence()
