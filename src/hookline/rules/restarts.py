"""When is a server process that died started again?

At once the first time, and after ever longer pauses while it keeps dying: what kills it at every start, such as
a database that is away, is not helped by trying faster.
"""

SHORTEST = 0.1  # seconds
LONGEST = 30.0
STEADY = 60.0  # seconds; one that lived this long was well, and its death is the first again


def deaths_in_a_row(before: int, *, lived: float) -> int:
    """How many there are with this one, of a process that lived for so many seconds."""
    return 1 if lived >= STEADY else before + 1


def pause_after(deaths: int) -> float:
    """Seconds to wait before the next start, after so many deaths in a row."""
    return min(LONGEST, SHORTEST * 2.0 ** min(deaths - 1, 16))
