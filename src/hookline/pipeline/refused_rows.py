"""Writes a batch of which the store refuses something, without what it refuses.

The batch is halved until what is refused stands alone: of 2,000 rows with one at fault that costs two statements for
each of eleven halvings, not 2,000.
"""

from collections.abc import Awaitable, Callable, Sequence
from typing import TypeVar

from hookline.errors import HooklineError, RowRefused, StoreUnavailable

T = TypeVar("T")
R = TypeVar("R")
Write = Callable[[Sequence[T]], Awaitable[list[R]]]


async def is_row_at_fault(error: Exception, write: Write[T, R]) -> bool:
    """Is something in the batch refused, and not whatever is written? Where the error does not say, it is tried."""
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
    """Write all that the store takes; each that it refuses is handed to `set_aside`. What they answered, in order."""
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
