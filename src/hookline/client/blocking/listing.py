# Generated from client/aio by scripts/mirror_client.py: change that, and run it.
"""Reads lists from the server, page by page."""

from collections.abc import Iterator
from typing import Generic, Protocol, TypeVar

from hookline.client import call as calls
from hookline.client.answers import Page
from hookline.client.call import ClientCall

PAGE = 100

T = TypeVar("T")


class Sends(Protocol):
    """An object that makes calls."""

    def send(self, call: ClientCall[T]) -> T:
        """Make a call, and try again where that is safe."""


class Listing(Generic[T]):
    """A list on the server, newest first: iterate over all of it, or get one page."""

    def __init__(self, client: Sends, path: str, item: type[T], **query: object) -> None:
        self._client = client
        self._path = path
        self._item = item
        self._query = query

    def page(self, *, limit: int | None = None, cursor: str | None = None) -> Page[T]:
        """Get one page: the first, or the one that a `next_cursor` names."""
        return self._client.send(
            calls.page(self._path, self._item, limit=limit, cursor=cursor, **self._query)
        )

    def pages(self, *, limit: int = PAGE) -> Iterator[Page[T]]:
        """The pages, each fetched when it is asked for."""
        page = self.page(limit=limit)
        yield page
        while page.next_cursor is not None:
            page = self.page(limit=limit, cursor=page.next_cursor)
            yield page

    def __iter__(self) -> Iterator[T]:
        for page in self.pages():
            yield from page.data
