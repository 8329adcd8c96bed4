"""Limits what the next commit takes.

A commit takes everything that waits, up to what a statement should hold: later publishes wait for one commit at most.
But accepting and delivering share one event loop, and accepting costs less. A lane whose answers wait for the loop
would be given more and more events, read them back from the store, and deliver fewer. Events for such a lane wait, for
a limited time, until it has room. A lane that waits for its receiver, a limit or a circuit delays no publish.
"""

from collections.abc import Sequence

MOST = 500  # events
MOST_DELIVERIES = 500  # about 20 ms on either store; an event with more deliveries has a commit of its own
MOST_BYTES = 4 * 1024 * 1024
REQUEST_DELIVERIES = 100_000  # that one request may ask for, before filters

PATIENCE = 0.5  # seconds that a publish waits at most for room in its lanes
_TURNS = 3.0  # of the loop: an answer within so many turns waited for the loop, not for its receiver
_LOOKED_AT = 3  # of the last answers: a single late one means nothing
_PART = 0.75  # a lane with more in the store than in memory may be given this part of what it sends


def share(events: int, accounts: int) -> int:
    """How many deliveries each account adds per turn to a commit of so many events; always at least one event."""
    return max(1, min(events, MOST_DELIVERIES) // max(1, accounts))


def waits_for_the_loop(durations: Sequence[float], *, turn: float) -> bool:
    """Whether a lane's answers wait for the loop, given their last durations and how long a turn of the loop takes."""
    looked_at = min(_LOOKED_AT, len(durations))
    if not looked_at or not turn:
        return False
    return min([durations[-n] for n in range(1, looked_at + 1)]) <= _TURNS * turn


def earned(sent: int) -> float:
    """How many events a lane that is behind may be given after it has sent so many."""
    return sent * _PART
