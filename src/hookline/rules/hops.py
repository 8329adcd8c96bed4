"""Has an event gone round in a circle?

Every request says in `hookline-hops` how many times its event was sent on by a hookline. Whoever publishes again
because of it passes the number along, and a chain that is too long is refused: it would never end.
"""

import re

from hookline.errors import Invalid

HEADER = "hookline-hops"

_NUMBER = re.compile(rb"[0-9]{1,9}")


def read(value: bytes) -> int:
    """The number that a request came with."""
    if not _NUMBER.fullmatch(value):
        raise Invalid(f"The header {HEADER} is a whole number, as it came with the webhook.")
    return int(value)


def checked(hops: int, *, most: int) -> int:
    """The number of an event that may be published; `Invalid` with `loop_detected` for one that has gone too far."""
    if not isinstance(hops, int) or hops < 0:
        raise Invalid("hops is a whole number, as it came with the webhook.", pointer="/hops")
    if hops > most:
        raise Invalid(
            f"This event was sent on {hops:,} times already ({HEADER}); at most {most:,} are allowed. "
            "Something publishes again what it receives, in a circle.",
            code="loop_detected",
        )
    return hops
