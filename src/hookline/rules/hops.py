"""Detects events that loop.

Every request says in `hookline-hops` how many times a hookline sent its event on. A program that publishes because of a
webhook passes the number along. A chain that is too long is refused: it would never end.
"""

import re

from hookline.errors import Invalid

HEADER = "hookline-hops"

_NUMBER = re.compile(rb"[0-9]{1,9}")


def read(value: bytes) -> int:
    """The number in a request's header."""
    if not _NUMBER.fullmatch(value):
        raise Invalid(f"The header {HEADER} is a whole number, as it came with the webhook.")
    return int(value)


def checked(hops: int, *, most: int) -> int:
    """The hop count of an event that may be published; `Invalid` with `loop_detected` if it has gone too far."""
    if not isinstance(hops, int) or hops < 0:
        raise Invalid("hops is a whole number, as it came with the webhook.", pointer="/hops")
    if hops > most:
        raise Invalid(
            f"This event was sent on {hops:,} times already ({HEADER}); at most {most:,} are allowed. "
            "Something publishes again what it receives, in a circle.",
            code="loop_detected",
        )
    return hops
