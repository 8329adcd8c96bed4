"""What if hookline were run in a way that it is not meant for?

Nothing is changed in hookline here: the rows that name these see to it.
"""

from collections.abc import Callable


def take_over_sooner_than_a_stall_lasts() -> None:
    """The takeover time is set below what a busy event loop can take: see rows/stalled.py."""


def leave_the_standby_behind() -> None:
    """Commits do not wait for the standby: see rows/failover.py."""


BUGS: dict[str, Callable[[], None]] = {
    "takeover-below-a-stall": take_over_sooner_than_a_stall_lasts,
    "standby-left-behind": leave_the_standby_behind,
}
