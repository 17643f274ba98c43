"""gunicorn's own messages in the form of all others. Imported by its master: nothing of Django here."""

from __future__ import annotations

from typing import Any

from gunicorn.glogging import Logger

from benchwarmers.logs import JsonFormatter


class ServerLogger(Logger):  # type: ignore[misc]
    def setup(self, cfg: Any) -> None:
        super().setup(cfg)
        for handler in self.error_log.handlers:
            handler.setFormatter(JsonFormatter())
