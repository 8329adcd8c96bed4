"""Decides how an outbox is, by what was noted when it was last read."""

from enum import StrEnum

OWN = "own"  # the name of the outbox in hookline's own database
NOTED_WITHIN = 180.0  # seconds: it is noted every minute, so an older note is of an outbox that is not read
# What is in the errors of an outbox (store/…/outbox).
_MISSING = ("There is no table", "no such table")
_FORBIDDEN = ("The outbox may not be", "readonly database")


class OutboxState(StrEnum):
    """Whether it can be read."""

    OK = "ok"
    AWAY = "away"  # its database does not answer
    MISSING = "missing"  # there is no table
    FORBIDDEN = "forbidden"  # a right is missing
    UNREAD = "unread"  # nobody reads it: not yet, or not any more


def state_of(trouble: str | None, *, looked_at: float | None, now: float) -> OutboxState:
    """Whether it can be read."""
    if trouble is None:
        is_read = looked_at is not None and not is_stale(looked_at, now=now)
        return OutboxState.OK if is_read else OutboxState.UNREAD
    if any(each in trouble for each in _MISSING):
        return OutboxState.MISSING
    return OutboxState.FORBIDDEN if any(each in trouble for each in _FORBIDDEN) else OutboxState.AWAY


def is_stale(looked_at: float | None, *, now: float) -> bool:
    """Whether nobody reads it any more."""
    return looked_at is not None and now - looked_at > NOTED_WITHIN


def why_unread(source: str, *, silence: str) -> str:
    """What to tell of one that nobody reads any more; `silence`: for how long, in words."""
    if source == OWN:
        return f"not read for {silence}: no worker moves its rows; `hookline doctor` says more"
    return f"not read for {silence}: not in HOOKLINE_OUTBOX any more? `hookline outbox forget {source}`"


def late_since(
    *, looked_at: float | None, oldest_at: float | None, known_since: float, is_unread: bool, now: float
) -> float | None:
    """Since when its rows wait, or it is not read (`is_unread`); None: it is read, and nothing waited at the last look."""
    if looked_at is None:
        return known_since
    if is_unread:
        return looked_at if oldest_at is None else min(looked_at, oldest_at)
    # What waited then may be moved by now: it is as late as it was at that time.
    return None if oldest_at is None else now - (looked_at - oldest_at)


def outbox_name(source: str) -> str:
    """An outbox as people know it, after "the outbox"."""
    return "of hookline's own database" if source == OWN else source
