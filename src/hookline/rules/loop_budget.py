"""Limits how much is done on the event loop before others have their turn.

Work is counted, not timed, so that the same work is cut at the same places on every machine. A unit is one step of a
filter and takes 1 to 2 µs. A slice takes 2 to 3 ms. A turn of the loop holds one slice at most. A publish takes about
five turns.
"""

SLICE = 1_500  # units
DELIVERIES = 200  # handed on at once: about 20 ms if each of them is sent immediately

_ENDPOINTS_A_UNIT = 20  # looked up
_BYTES_A_UNIT = 200  # of a payload that is parsed
_SCHEMA_A_UNIT = 1_000  # bytes times weight
_SCHEMA_AT_ONCE = 1_000  # units; a larger check runs on a thread beside the loop


class LoopBudget:
    """The units that may still be taken in this turn of the loop."""

    __slots__ = ("left", "longest", "size")

    def __init__(self, size: int = SLICE) -> None:
        self.size = size
        self.left = size
        self.longest = 0  # the most units that were ever taken in one turn

    @property
    def is_spent(self) -> bool:
        return self.left <= 0

    def take(self, units: int) -> None:
        self.left -= units

    def begin(self) -> None:
        """Begin a new turn."""
        self.longest = max(self.longest, self.size - self.left)
        self.left = self.size


def of_endpoints(count: int) -> int:
    """Units for finding the endpoints that have a filter."""
    return 1 + count // _ENDPOINTS_A_UNIT


def of_payload(size: int) -> int:
    """Units for parsing a payload of so many bytes."""
    return 1 + size // _BYTES_A_UNIT


def of_schema(size: int, weight: int) -> int | None:
    """Units for checking a payload against a schema; None: too many for the loop."""
    units = 1 + size * weight // _SCHEMA_A_UNIT
    return units if units <= _SCHEMA_AT_ONCE else None
