"""Bugs: hookline is operated in a way that it is not meant for.

hookline itself is not changed here: the rows that name these do it.
"""

from collections.abc import Callable


def take_over_sooner_than_a_stall_lasts() -> None:
    """The takeover time is set below the time that an event loop can stall: see studies/stalled.py."""


def leave_the_standby_behind() -> None:
    """Commits do not wait for the standby: see studies/failover.py."""


BUGS: dict[str, Callable[[], None]] = {
    "takeover-below-a-stall": take_over_sooner_than_a_stall_lasts,
    "standby-left-behind": leave_the_standby_behind,
}
