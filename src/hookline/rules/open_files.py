"""Shares out the files that a process may have open.

The sender gets what is left after a reserve for the API's clients, the store, lookups and files. The reserve is half of
a small limit, 1,024 of a larger one and an eighth of a large one. A server without a descriptor for a client resets that
client's publishes.
"""

RESERVED = 1_024
MOST_CLIENTS = 10_000  # unless more are asked for: each connection takes memory, too


def most_connections(allowed: int | None) -> int | None:
    """How many connections to receivers may be open, idle ones included; None: any number."""
    return None if allowed is None else max(1, allowed - _reserve(allowed))


def slots_within(wanted: int, allowed: int | None) -> int:
    """How many requests may be under way: as many as were asked for, if each can have its connection."""
    most = most_connections(allowed)
    return wanted if most is None else min(wanted, most)


def most_clients(wanted: int | None, allowed: int | None) -> int:
    """How many connections of clients may be open: three quarters of the reserve, or less if so many were asked for."""
    if allowed is None:
        return MOST_CLIENTS if wanted is None else wanted
    most = max(1, _reserve(allowed) * 3 // 4)
    return min(most, MOST_CLIENTS if wanted is None else wanted)


def _reserve(allowed: int) -> int:
    return min(max(RESERVED, allowed // 8), allowed // 2)
