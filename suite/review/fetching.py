"""What an import of SWE-rebench-V2 fetches, and only when it is run: rows, one file for each, licences. What came once is kept in the data folder.

Source: https://huggingface.co/docs/dataset-viewer/rows, https://docs.github.com/rest/licenses/licenses
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlsplit

from catalog import web
from suite.review.rebench import rows_of
from suite.review.repository import LARGEST, ReviewError, text_of

ROWS = "https://datasets-server.huggingface.co"
FILES = "https://raw.githubusercontent.com"
LICENCES = "https://api.github.com"
DATASET = "nebius/SWE-rebench-V2"
PAGE = 100
ROWS_LIMIT = 64 * 1024 * 1024
TIMEOUT_S = 60.0


@dataclass(slots=True)
class Fetcher:
    """Shape: addresses without a slash at their end. `cache` keeps what came, by the digest of its address."""

    cache: Path
    rows_at: str = ROWS
    files_at: str = FILES
    licences_at: str = LICENCES
    is_named: bool = False  # addresses that somebody gave on the command line may be private ones

    def hosts(self, with_rows: bool) -> list[str]:
        """Lists the hosts that would be asked, for whoever decides whether to."""
        wanted = [*([self.rows_at] if with_rows else []), self.files_at, self.licences_at]
        return list(dict.fromkeys(urlsplit(one).netloc for one in wanted))

    def rows(self, most: int, first: int = 0) -> Iterator[Mapping[str, Any]]:
        """Gives rows of the dataset, page by page. Errors: ReviewError."""
        for offset in range(first, first + most, PAGE):
            address = (
                f"{self.rows_at}/rows?dataset={quote(DATASET, safe='')}&config=default&split=train&offset={offset}&length={min(PAGE, first + most - offset)}"
            )
            body = self.got(address, ROWS_LIMIT)
            if body is None:
                raise ReviewError(f"{urlsplit(address).netloc} gave no rows from {offset} on. Download the dataset and name its file instead.")
            try:
                found = list(rows_of(json.loads(body)))
            except ValueError:
                raise ReviewError(f"{urlsplit(address).netloc} did not answer with JSON.") from None
            yield from found
            if len(found) < min(PAGE, first + most - offset):
                return

    def file(self, repo: str, commit: str, path: str) -> str | None:
        body = self.got(f"{self.files_at}/{quote(repo)}/{commit}/{quote(path)}", LARGEST)
        return text_of(body) if body is not None else None

    def licence(self, repo: str) -> str | None:
        body = self.got(f"{self.licences_at}/repos/{quote(repo)}/license", LARGEST)
        try:
            found = json.loads(body) if body is not None else None
        except ValueError:
            return None
        licence = found.get("license") if isinstance(found, Mapping) else None
        name = licence.get("spdx_id") if isinstance(licence, Mapping) else None
        return name if isinstance(name, str) and name != "NOASSERTION" else None

    def got(self, address: str, limit: int) -> bytes | None:
        """Gets one address, or what it answered before. None for what is not there."""
        kept = self.cache / hashlib.sha256(address.encode()).hexdigest()
        if kept.is_file():
            return kept.read_bytes()
        try:
            answer = web.fetch(address, {"Accept": "*/*"}, named=self.is_named, limit_bytes=limit, timeout_s=TIMEOUT_S)
        except web.WebError as error:
            raise ReviewError(f"{urlsplit(address).netloc}: {error.message}") from None
        if answer.status in (403, 429):
            raise ReviewError(f"{urlsplit(address).netloc} asks to be left alone (status {answer.status}). What was fetched is kept: run it again later.")
        if answer.status != 200:
            return None
        self.cache.mkdir(parents=True, exist_ok=True)
        draft = kept.with_suffix(".part")
        draft.write_bytes(answer.body)
        draft.replace(kept)
        return answer.body
