"""How much may the next commit take?

As much as is waiting, up to what a statement should hold: others wait for it, and they are to wait for one commit at
most. But accepting and delivering share one event loop, and accepting costs less: a worker that has fallen behind would
accept ever more, read all of it back from the store, and deliver less for it. Until it has caught up it accepts less
than it delivers.
"""

MOST = 500  # events
MOST_DELIVERIES = 1_000  # 20 ms on either store; an event with more of them has a commit of its own
MOST_BYTES = 4 * 1024 * 1024
REQUEST_DELIVERIES = 100_000  # that one request may ask for, before filters
LEAST = 100  # whoever publishes little never notices
_PART = 0.75  # of what was delivered meanwhile: the rest is what it catches up by


def at_once(*, is_behind: bool, delivered: int) -> int:
    """Events, where so many were delivered since the commit before."""
    if not is_behind:
        return MOST
    return min(MOST, max(LEAST, int(delivered * _PART)))


def share(events: int, accounts: int) -> int:
    """Deliveries of a commit with so many events that each of the accounts adds in one turn, or else one event."""
    return max(1, min(events, MOST_DELIVERIES) // max(1, accounts))
