"""Logs: one JSON object a line on stderr. Never a query string, a body or a key."""

from __future__ import annotations

import json
import logging
from datetime import UTC, datetime

# What a LogRecord has of its own; all else came in through `extra` and belongs in the line.
OWN = frozenset(logging.makeLogRecord({}).__dict__) | {"message", "asctime", "request", "taskName"}


class JsonFormatter(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        line = {
            "at": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
            **{k: v for k, v in record.__dict__.items() if k not in OWN},
        }
        if record.exc_info:
            line["traceback"] = self.formatException(record.exc_info)
        return json.dumps(line, ensure_ascii=False, default=str)
