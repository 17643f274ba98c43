"""A provider that stands in as itself: a real server on a free port of loopback, scripted per model, keeping what it received.

    fake.script("fast", reply("hi", usage=(11, 7)), status(429, headers={"retry-after": "7"}))

makes the model `fast` answer once and then refuse, for good: the last entry repeats. A model without a script answers ordinarily.
"""

from tests.fake.script import Answer, Call, Gate, garbage, hang, html, raw, reply, say, sse, status, whole
from tests.fake.server import FakeProvider, refusing_address

__all__ = ["Answer", "Call", "FakeProvider", "Gate", "garbage", "hang", "html", "raw", "refusing_address", "reply", "say", "sse", "status", "whole"]
