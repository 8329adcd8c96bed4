"""Writes the measurements of a batch of attempts as bytes, and reads them.

Six 16-bit words for each attempt, in the order of the batch: the place of its endpoint in the list of endpoints, then
keys (`latency_buckets`): response time, queue wait, end to end, first byte, answer. What only an attempt on a new
connection has follows as pairs of its position and a key.
"""

import struct
from collections.abc import Collection, Sequence

from hookline.model import EndpointId

WIDTH = 6
_HEAD = struct.Struct("<HHH")  # endpoints, attempts, pairs


def pack(endpoints: Collection[EndpointId], words: Sequence[int], pairs: Sequence[int]) -> bytes:
    """The bytes of a batch."""
    head = _HEAD.pack(len(endpoints), len(words) // WIDTH, len(pairs) // 2)
    numbers = struct.pack(f"<{len(words) + len(pairs)}H", *words, *pairs)
    return b"".join((head, *endpoints, numbers))


def unpack(samples: bytes) -> tuple[list[EndpointId], tuple[int, ...], tuple[int, ...]]:
    """The endpoints, words and pairs of a batch; ValueError if the bytes are not such."""
    try:
        endpoints, attempts, pairs = _HEAD.unpack_from(samples)
        start = _HEAD.size + 16 * endpoints
        numbers = struct.unpack(f"<{WIDTH * attempts + 2 * pairs}H", samples[start:])
    except struct.error as error:
        raise ValueError(str(error)) from None
    ids = [EndpointId(samples[place : place + 16]) for place in range(_HEAD.size, start, 16)]
    return ids, numbers[: WIDTH * attempts], numbers[WIDTH * attempts :]


def keys_by_endpoint(
    endpoints: Sequence[EndpointId],
    words: Sequence[int],
    pairs: Sequence[int],
    *,
    skipped: Collection[int] = (),
) -> dict[EndpointId, list[int]]:
    """The keys of the attempts that are not skipped, by endpoint."""
    keys: list[list[int]] = [[] for _ in endpoints]
    word = iter(words)
    attempts = zip(word, word, word, word, word, word, strict=True)
    if not skipped:
        for place, response, wait, whole, first_byte, answer in attempts:
            keys[place] += (response, wait, whole, first_byte, answer)
    else:
        for position, (place, *found) in enumerate(attempts):
            if position not in skipped:
                keys[place] += found
    pair = iter(pairs)
    for position, key in zip(pair, pair, strict=True):
        if position not in skipped:
            keys[words[position * WIDTH]].append(key)
    return dict(zip(endpoints, keys, strict=True))
