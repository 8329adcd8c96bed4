"""How much may the next commit take, and for whom?

As much as is waiting, up to what a statement should hold: others wait for it, and they are to wait for one commit at
most. But accepting and delivering share one event loop, and accepting costs less. A lane whose answers wait for the loop
would be given ever more, have it read back from the store, and deliver less for it. Events for such a lane wait, for a
while, until it has room. A lane that waits for its receiver, a limit or a circuit holds nobody up.
"""

from collections.abc import Sequence

MOST = 500  # events
MOST_DELIVERIES = 500  # about 20 ms on either store; an event with more of them has a commit of its own
MOST_BYTES = 4 * 1024 * 1024
REQUEST_DELIVERIES = 100_000  # that one request may ask for, before filters

PATIENCE = 0.5  # seconds that a publish waits for room in its lanes at most
_TURNS = 3.0  # of the loop: an answer that is there within so many did not keep it waiting
_LOOKED_AT = 3  # of the last answers: one that came late means nothing
_PART = 0.75  # of what a lane sends that it may be given, while it has more in the store than in memory


def share(events: int, accounts: int) -> int:
    """Deliveries of a commit with so many events that each of the accounts adds in one turn, or else one event."""
    return max(1, min(events, MOST_DELIVERIES) // max(1, accounts))


def waits_for_the_loop(durations: Sequence[float], *, turn: float) -> bool:
    """Do a lane's answers, of which the last took so long, wait for a loop whose turns take so long?"""
    looked_at = min(_LOOKED_AT, len(durations))
    if not looked_at or not turn:
        return False
    return min([durations[-n] for n in range(1, looked_at + 1)]) <= _TURNS * turn


def earned(sent: int) -> float:
    """How many events a lane may be given that is behind and has sent so many."""
    return sent * _PART
