"""Decides when a client takes too long, over the body of its request or over reading its answer.

A fixed limit would cut off slow lines, and a limit between two bytes would let a client hold a connection for ever with a
byte now and then. So a client has some time, and more for what it really moved.
"""

GRACE_S = 20.0
BYTES_PER_S = 16 << 10  # slower than any line that somebody publishes over


def is_too_slow(seconds: float, *, moved_bytes: int) -> bool:
    """Whether a client that moved so many bytes in this time is too slow."""
    return seconds > GRACE_S + moved_bytes / BYTES_PER_S
