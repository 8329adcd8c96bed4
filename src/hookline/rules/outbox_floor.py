"""Decides below which number no row of an outbox can appear any more.

Deleted rows stay in an index until nobody can see them: below a dump that runs for an hour LOOK walks over all of them.
A number is drawn just before its transaction gets an id. So once every transaction has ended that had begun when a
number was seen, all lower numbers are visible or never will be, however late they committed.
"""

import msgspec

SLOW_S = 0.005  # a LOOK that takes longer has something to walk over
DRAWN_S = 1.0  # longer than from drawing a number to getting a transaction's id
WHOLE_EVERY_S = 30.0  # without a floor, so that no mistake stays


class Floor(msgspec.Struct, frozen=True):
    """The floor, with the look from which the next one may follow. Times are of the monotonic clock."""

    value: int = 0  # no row with this number or a lower one is still to come
    top: int | None = None  # the highest number that was seen at that look
    high: int = 0  # no transaction from here on had begun then
    seen_at: float = 0.0
    whole_at: float = float("-inf")  # the last LOOK without floor


def asked(floor: Floor, *, now: float) -> int:
    """The floor of the next LOOK."""
    return 0 if now - floor.whole_at >= WHOLE_EVERY_S else floor.value


def after_look(
    floor: Floor,
    *,
    began: float,
    took: float,
    asked: int,
    low: int,
    high: int,
    first: int | None,
    top: int,
    slow_s: float = SLOW_S,
) -> Floor:
    """The floor after a LOOK by number.

    `low` and `high` are of its own snapshot: every transaction below `low` had ended. `first` is the lowest number that
    it found, `top` the highest that any LOOK found.
    """
    if not asked:
        floor = msgspec.structs.replace(floor, whole_at=began)
    if not high:
        return floor  # SQLite: numbers commit in order, and nothing dead is left in the index
    if floor.top is None:
        if took < slow_s and not floor.value:
            return floor
        return msgspec.structs.replace(floor, top=top, high=high, seen_at=began)
    if low < floor.high or began - floor.seen_at < DRAWN_S:
        return floor
    value = floor.top if first is None else min(floor.top, first - 1)
    return msgspec.structs.replace(floor, value=max(floor.value, value), top=top, high=high, seen_at=began)
