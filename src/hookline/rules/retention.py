"""Decides what is deleted when it is too old, in steps of what size."""

import msgspec

from hookline.model import LONG_AGO

DAY = 86_400.0

TOLD_S = 7 * DAY  # how long changes are kept; every process reads them within a second

STEP_S = 0.05  # how long a step may take before the next one is smaller
FIRST_STEP, LEAST_STEP = 100, 10  # deliveries


class Keep(msgspec.Struct, frozen=True, kw_only=True):
    """How long finished deliveries and the audit trail are kept, in seconds; None: forever."""

    done: float | None  # delivered or cancelled
    dead: float | None
    audit: float | None = None  # entries of the audit trail


class CutOffs(msgspec.Struct, frozen=True):
    """Deliveries that finished, and audit entries that were written, before these moments may be deleted."""

    done: float
    dead: float
    audit: float = LONG_AGO


def keep_from_days(*, delivered: int, dead: int, audit: int = 0) -> Keep:
    """Reads the settings: 0 days means forever."""
    return Keep(done=delivered * DAY or None, dead=dead * DAY or None, audit=audit * DAY or None)


def cut_offs(keep: Keep, *, now: float) -> CutOffs:
    """The cut-off moments; what is kept forever has one that nothing finished before."""
    return CutOffs(
        LONG_AGO if keep.done is None else now - keep.done,
        LONG_AGO if keep.dead is None else now - keep.dead,
        LONG_AGO if keep.audit is None else now - keep.audit,
    )


def next_step(step: int, *, took: float, most: int) -> int:
    """How many deliveries the next transaction deletes, after one of `step` that took so many seconds.

    Publishing and settling wait behind a step. So its time decides, not its size: a slow disk or a busy machine gets
    smaller steps.
    """
    if took > STEP_S:
        return max(LEAST_STEP, step // 2)
    return min(most, step + step // 4) if took < STEP_S / 2 else step


def smaller_step(step: int) -> int | None:
    """How many to try after the disk had no room to delete so many; None: there is no room even for one.

    A delete is written to a log first, so it needs room too for a while.
    """
    return step // 2 or None
