"""How many tokens a request would be: the provider's own count where it has a way to, else an estimate that errs high. Never 0, never counted."""

from __future__ import annotations

import asyncio
import math

import orjson

from catalog import providers
from catalog.roster import Model
from panels.plan import Target
from panels.turn import Turn
from wire import dialects
from wire.errors import UpstreamError
from wire.estimate import request_tokens
from wire.jsontext import parse_upstream

WITHIN_S = 10.0
# A client that compacts its history by this number must do so rather too early than too late.
MARGIN = 1.2


async def count(turn: Turn, target: Target) -> None:
    """Answers in the dialect's own shape; `x-bench-count` says whether the number was counted or estimated."""
    models = [target.model] if target.model else [m for a in (target.collection.members if target.collection else ()) if (m := turn.snapshot.models.get(a))]
    tokens = None
    if models and models[0] and not models[0].retired:
        tokens = await counted(turn, models[0])
    how = "counted" if tokens else "estimated"
    total = tokens or max(1, math.ceil(request_tokens(turn.request) * MARGIN))
    await turn.out.whole(200, [*turn.headers(), ("x-bench-count", how)], turn.dialect.write_count(total))


async def counted(turn: Turn, model: Model) -> int | None:
    """What the provider counts. A provider that cannot is no fault of anybody's: nothing rests for it, nothing is recorded."""
    endpoint, provider = model.endpoint, providers.get(model.endpoint.kind)
    url = provider.count_url(endpoint.base_url, model.served_name)
    dialect = dialects.get(provider.dialect)
    outbound = dialect.write_count_request(turn.request, model.served_name, {**provider.demands, **endpoint.quirks, **model.quirks}) if url else None
    if not url or outbound is None:
        return None
    headers = {**outbound.headers, **provider.headers(endpoint.key), "content-type": "application/json", "user-agent": "benchwarmers"}
    try:
        async with asyncio.timeout(WITHIN_S):
            reply = await turn.gateway.upstream.post(url, headers, orjson.dumps(outbound.body), None)
            try:
                if reply.status != 200:
                    return None
                return dialect.read_count(parse_upstream(await reply.read(65_536)))
            finally:
                reply.close()
    except (TimeoutError, UpstreamError, ValueError):
        return None
