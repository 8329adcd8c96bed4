"""Reads lists from the server, page by page."""

from collections.abc import AsyncIterator
from typing import Generic, Protocol, TypeVar

from hookline.client import call as calls
from hookline.client.answers import Page
from hookline.client.call import ClientCall

PAGE = 100

T = TypeVar("T")


class AsyncSends(Protocol):
    """An object that makes calls."""

    async def send(self, call: ClientCall[T]) -> T:
        """Make a call, and try again where that is safe."""


class AsyncListing(Generic[T]):
    """A list on the server, newest first: iterate over all of it, or get one page."""

    def __init__(self, client: AsyncSends, path: str, item: type[T], **query: object) -> None:
        self._client = client
        self._path = path
        self._item = item
        self._query = query

    async def page(self, *, limit: int | None = None, cursor: str | None = None) -> Page[T]:
        """Get one page: the first, or the one that a `next_cursor` names."""
        return await self._client.send(
            calls.page(self._path, self._item, limit=limit, cursor=cursor, **self._query)
        )

    async def pages(self, *, limit: int = PAGE) -> AsyncIterator[Page[T]]:
        """The pages, each fetched when it is asked for."""
        page = await self.page(limit=limit)
        yield page
        while page.next_cursor is not None:
            page = await self.page(limit=limit, cursor=page.next_cursor)
            yield page

    async def __aiter__(self) -> AsyncIterator[T]:
        async for page in self.pages():
            for each in page.data:
                yield each
