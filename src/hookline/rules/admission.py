"""How many events may the next commit take?

As many as are waiting, up to what a statement should hold. But accepting and delivering share one event loop, and
accepting costs less: a worker that has fallen behind would accept ever more, read all of it back from the store, and
deliver less for it. Until it has caught up it accepts less than it delivers.
"""

MOST = 500
LEAST = 100  # whoever publishes little never notices
_PART = 0.75  # of what was delivered meanwhile: the rest is what it catches up by


def at_once(*, is_behind: bool, delivered: int) -> int:
    """Events, where so many were delivered since the commit before."""
    if not is_behind:
        return MOST
    return min(MOST, max(LEAST, int(delivered * _PART)))
