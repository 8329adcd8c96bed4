"""What is too old to be kept, and how much of it goes at once?"""

import msgspec

from hookline.model import LONG_AGO

DAY = 86_400.0

TOLD_S = 7 * DAY  # how long changes are kept, which every process has read within a second

STEP_S = 0.05  # how long a step may take before the next one is smaller
FIRST_STEP, LEAST_STEP = 100, 10  # deliveries


class Keep(msgspec.Struct, frozen=True, kw_only=True):
    """How long what is finished is kept, in seconds; None: for ever."""

    done: float | None  # delivered or cancelled
    dead: float | None


class CutOffs(msgspec.Struct, frozen=True):
    """What finished before these moments can go."""

    done: float
    dead: float


def keep_from_days(*, delivered: int, dead: int) -> Keep:
    """As the settings say it: 0 days are for ever."""
    return Keep(done=delivered * DAY or None, dead=dead * DAY or None)


def cut_offs(keep: Keep, *, now: float) -> CutOffs:
    """What is kept for ever was finished before no moment at all."""
    return CutOffs(
        LONG_AGO if keep.done is None else now - keep.done,
        LONG_AGO if keep.dead is None else now - keep.dead,
    )


def next_step(step: int, *, took: float, most: int) -> int:
    """How many deliveries go in the next transaction, after one of `step` that took so many seconds.

    Whoever publishes or settles meanwhile waits behind a step, so that its time decides and not its size: a slow disk
    or a busy machine gets smaller ones.
    """
    if took > STEP_S:
        return max(LEAST_STEP, step // 2)
    return min(most, step + step // 4) if took < STEP_S / 2 else step


def smaller_step(step: int) -> int | None:
    """How many to try after there was no room to take away so many; None: not even for one.

    Writing down that something goes takes room too, for as long as it takes.
    """
    return step // 2 or None
