"""Writes a batch without the rows that the store refuses.

The batch is halved until a refused row is alone: for one bad row in 2,000 that costs two statements for each of eleven
halvings, not 2,000.
"""

from collections.abc import Awaitable, Callable, Sequence
from typing import TypeVar

from hookline.errors import HooklineError, RowRefused, StoreUnavailable

T = TypeVar("T")
R = TypeVar("R")
Write = Callable[[Sequence[T]], Awaitable[list[R]]]


async def is_row_at_fault(error: Exception, write: Write[T, R]) -> bool:
    """Whether the store refuses a row of the batch rather than every write; if the error is unclear, it is tried."""
    if isinstance(error, RowRefused) or not isinstance(error, HooklineError):
        return True
    if isinstance(error, StoreUnavailable):
        return False
    try:
        await write([])
    except HooklineError:
        return False
    return True


async def write_apart(
    items: Sequence[T], write: Write[T, R], set_aside: Callable[[T, Exception], Awaitable[list[R]]]
) -> list[R]:
    """Write all that the store accepts; each refused one is given to `set_aside`. Their answers, in order."""
    try:
        return await write(items)
    except Exception as error:
        if not await is_row_at_fault(error, write):
            raise
        if len(items) == 1:
            return await set_aside(items[0], error)
    middle = len(items) // 2
    first = await write_apart(items[:middle], write, set_aside)
    return first + await write_apart(items[middle:], write, set_aside)
