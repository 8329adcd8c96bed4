"""Decides when a server process that died is started again.

The first restart is immediate. While the process keeps dying the pauses grow: if something kills it at every start,
such as an unreachable database, trying faster does not help.
"""

SHORTEST = 0.1  # seconds
LONGEST = 30.0
STEADY = 60.0  # seconds; a process that lived this long was healthy, and its death counts as the first again


def deaths_in_a_row(before: int, *, lived: float) -> int:
    """The number of deaths in a row including this one, of a process that lived for so many seconds."""
    return 1 if lived >= STEADY else before + 1


def pause_after(deaths: int) -> float:
    """Seconds to wait before the next start, after so many deaths in a row."""
    return min(LONGEST, SHORTEST * 2.0 ** min(deaths - 1, 16))
