"""The bench as a dry token meets it: everybody sits where they sit, and nobody is asked.

Every model lives at the dry provider and costs nothing, under a name that no list, record or limit knows, so that what is written down of such a call is
nobody's: not the model's days, not its rests, not its evidence.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import date
from decimal import Decimal

from access import budgets
from catalog.roster import Endpoint, Model, Price
from panels.snapshot import Snapshot

PURPOSE = "dry"
NAME = "dry"
NOTHING = Decimal(0)
FREE = (Price(date.min, NOTHING, NOTHING, NOTHING, NOTHING, NOTHING),)
HERE = Endpoint(0, NAME, NAME, "", "", {}, {})


def dried(snapshot: Snapshot) -> Snapshot:
    """Gives a snapshot whose models all answer dry."""
    return replace(snapshot, models={alias: dry(model) for alias, model in snapshot.models.items()}, rests={}, budgets=budgets.NONE)


def dry(model: Model) -> Model:
    return replace(model, id=0, alias=f"{NAME}:{model.alias}", endpoint=HERE, served_name=NAME, limits={}, quirks={}, prices=FREE, learned={})
