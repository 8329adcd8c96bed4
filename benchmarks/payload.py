"""Makes the bytes of event number n.

The generator makes them and the receiver makes them again: a delivered body is right when both are the same,
byte for byte, and it came to the endpoint the number belongs to.
"""

import os
import random
import zlib

SIZE_BYTES = 1024
ENDPOINTS = int(os.environ.get("BENCH_ENDPOINTS", "100"))  # from there, for all the processes of a run

_HEAD = b'{"seq":"%010d","at":"%020d'
_REST = b'%b","check":"%08x","pad":"%b"}'
_SEQ, _AT = slice(8, 18), slice(26, 46)
_PAD_BYTES = SIZE_BYTES - len(_REST % (_HEAD % (0, 0), 0, b""))
# Letters without a pattern, so that a byte lost or moved anywhere shows; ready-made, since both processes need
# one for every event.
_PADS = [
    bytes(random.Random(number).choices(b"abcdefghijklmnopqrstuvwxyz0123456789", k=_PAD_BYTES))
    for number in range(101)
]


def payload_of(seq: int, at: int) -> bytes:
    """The JSON text of event `seq`, published at `at` (nanoseconds of the machine's monotonic clock)."""
    head = _HEAD % (seq, at)
    return _REST % (head, zlib.crc32(head), _PADS[seq % 101])


def endpoint_of(seq: int) -> int:
    """The one endpoint that gets event `seq`."""
    return seq % ENDPOINTS


def event_type(endpoint: int) -> str:
    """The type that this endpoint, and no other, subscribes to."""
    return f"bench.{endpoint}"


def read(body: bytes) -> tuple[int, int] | None:
    """Number and publish time of a delivered body; None when it is not, to the byte, what was made for it."""
    try:
        seq, at = int(body[_SEQ]), int(body[_AT])
    except ValueError:
        return None
    return (seq, at) if body == payload_of(seq, at) else None
