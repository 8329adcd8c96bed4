"""Which names may be looked up at the same time, and for how long is an answer good?

The machine's resolver takes as long as it likes over a name, and each lookup holds a thread. So names come in
classes, as lanes do: those that were found before never wait behind those that were not, or that nobody has asked
for yet. An answer is good for seconds only: what is dialled is vetted each time, but a name that moves must be followed.
"""

from enum import IntEnum

BUDGET_S = 5.0  # that a request waits for its name
FOUND_S = 5.0
NOT_FOUND_S = 5.0  # likewise a lookup that did not come back within its budget
GIVEN_UP_S = 30.0  # after which a lookup that has not come back is not waited for any more


class LookupResult(IntEnum):
    """What is known of a name."""

    FOUND = 0
    UNTRIED = 1
    FAILING = 2  # the last lookup found nothing, or took too long


AT_ONCE = {LookupResult.FOUND: 64, LookupResult.UNTRIED: 128, LookupResult.FAILING: 32}
