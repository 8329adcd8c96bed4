"""Shares out the files that a process may have open.

The sender gets what is left after a reserve for the API's clients, the store, lookups and files. The reserve is half of
a small limit and 1,024 of a large one. A server without a descriptor for a client resets that client's publishes.
"""

RESERVED = 1_024


def most_connections(allowed: int | None) -> int | None:
    """How many connections to receivers may be open, idle ones included; None: any number."""
    return None if allowed is None else max(1, allowed - min(RESERVED, allowed // 2))


def slots_within(wanted: int, allowed: int | None) -> int:
    """How many requests may be under way: as many as were asked for, if each can have its connection."""
    most = most_connections(allowed)
    return wanted if most is None else min(wanted, most)
