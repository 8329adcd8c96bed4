"""Limits DNS lookups.

The machine's resolver may take any time over a name, and each lookup holds a thread. So names are in classes, as lanes
are: names that were found before never wait behind names that were not found, or that nobody has looked up yet. An
answer is used for seconds only. Every dialled address is checked each time, but a name that moves must be followed.
"""

from enum import IntEnum

BUDGET_S = 5.0  # how long a request waits for its name
FOUND_S = 5.0
NOT_FOUND_S = 5.0  # likewise for a lookup that did not return within its budget
GIVEN_UP_S = 30.0  # a lookup that has not returned by then is given up


class LookupResult(IntEnum):
    """What is known about a name."""

    FOUND = 0
    UNTRIED = 1
    FAILING = 2  # the last lookup found nothing, or took too long


AT_ONCE = {LookupResult.FOUND: 64, LookupResult.UNTRIED: 128, LookupResult.FAILING: 32}
