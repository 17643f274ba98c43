"""Lists that the server gives in pages, as sequences that fetch what is looked at."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, overload

from benchwright.objects import Object, id_of

Fetch = Callable[[str], Object]


class Rows(Sequence[Object]):
    """All rows of a list. `rows[:5]` and a loop that ends early fetch only the pages that they need; `len` and an index from the end fetch all."""

    def __init__(self, first: Object, fetch: Fetch) -> None:
        self._rows: list[Object] = list(first["data"])
        self._next: str | None = first.get("next")
        self._fetch = fetch

    def _more(self) -> bool:
        if not self._next:
            return False
        page = self._fetch(self._next)
        following = page.get("next")
        # A server that names the same page again would be asked for ever.
        self._next = following if following != self._next else None
        self._rows += page["data"]
        return True

    def _upto(self, count: int | None) -> None:
        while (count is None or len(self._rows) < count) and self._more():
            pass

    def __iter__(self) -> Iterator[Object]:
        at = 0
        while at < len(self._rows) or self._more():
            if at < len(self._rows):
                yield self._rows[at]
                at += 1

    def __len__(self) -> int:
        self._upto(None)
        return len(self._rows)

    def __bool__(self) -> bool:
        self._upto(1)
        return bool(self._rows)

    @overload
    def __getitem__(self, index: int) -> Object: ...

    @overload
    def __getitem__(self, index: slice) -> list[Object]: ...

    def __getitem__(self, index: int | slice) -> Object | list[Object]:
        if isinstance(index, slice):
            ends = (index.start, index.stop)
            is_bounded = index.stop is not None and all(end is None or end >= 0 for end in ends) and (index.step is None or index.step > 0)
            self._upto(index.stop if is_bounded else None)
        else:
            self._upto(index + 1 if index >= 0 else None)
        return self._rows[index]

    def __repr__(self) -> str:
        return f"<{len(self._rows)} rows{' and more' if self._next else ''}>"


class Page:
    """A list. `data` holds all its rows and fetches page by page; `page` is the first page alone, `next` the token of the second, None where there is none."""

    def __init__(self, first: Object, fetch: Fetch) -> None:
        self.raw = first
        self.page: list[Object] = first["data"]
        self.next: str | None = first.get("next")
        self.data = Rows(first, fetch)

    @property
    def has_more(self) -> bool:
        return bool(self.next)

    def __iter__(self) -> Iterator[Object]:
        return iter(self.data)

    def __len__(self) -> int:
        return len(self.data)

    def __bool__(self) -> bool:
        return bool(self.data)

    def __getitem__(self, index: Any) -> Any:
        return self.data[index]

    def __repr__(self) -> str:
        return f"<Page of {self.data!r}>"


class TaskPage(Page):
    """A run's tasks: `summary` is of the whole run, `payload(id)` gives one task whole."""

    def __init__(self, first: Object, fetch: Fetch, payload: Callable[[str], Object]) -> None:
        super().__init__(first, fetch)
        self.summary: Object = first["summary"]
        self._payload = payload

    def payload(self, task: Any) -> Object:
        """Gives what was asked, what was expected and what came. Errors: NotFound."""
        return self._payload(id_of(task))
