"""Counts durations in buckets of 2 %, and finds percentiles in the counts.

A duration is shown as the middle of its bucket, at most 1 % away from it. Counts of any minutes, endpoints and workers
add up, so a percentile is as exact over a week as over a minute. A key names what was measured (`LatencyKind`) and the bucket
in 16 bits; the answers of receivers are counted under keys of their own.
"""

import math
import zlib
from collections.abc import Iterator, Mapping
from enum import IntEnum

from hookline.model import ErrorKind

SHORTEST = 1e-4  # seconds; everything shorter is in the first bucket
LONGEST = 90 * 86_400.0  # seconds; everything longer is in the last one
PER_E = 1 / math.log(1.02)  # buckets for a factor of e
FIRST = -math.log(SHORTEST) * PER_E  # added to the logarithm: the shortest duration is in bucket 0
KIND_BITS = 11
BUCKETS = 1 << KIND_BITS
_MIDDLE = SHORTEST * 2.04 / 2.02  # as far from the lower end of a bucket as from the upper one, relatively


class LatencyKind(IntEnum):
    """What was measured; the value is stored."""

    RESPONSE = 0
    QUEUE_WAIT = 1
    END_TO_END = 2
    DNS = 3
    CONNECT = 4
    TLS = 5
    FIRST_BYTE = 6
    ANSWER = 7  # no duration: the status, or the error if there was no answer


FIRST_ANSWER = LatencyKind.ANSWER << KIND_BITS
FIRST_ERROR = FIRST_ANSWER + 1_024
NOTHING = FIRST_ANSWER + BUCKETS - 1  # in place of a key: it was not measured

# Stored numbers: they never change.
_ERRORS = {
    ErrorKind.DNS: 0,
    ErrorKind.BLOCKED_ADDRESS: 1,
    ErrorKind.CONNECT_TIMEOUT: 2,
    ErrorKind.CONNECT_REFUSED: 3,
    ErrorKind.CONNECT_FAILED: 4,
    ErrorKind.TLS: 5,
    ErrorKind.TIMEOUT: 6,
    ErrorKind.RESET: 7,
    ErrorKind.PROTOCOL: 8,
    ErrorKind.INTERNAL: 9,
    ErrorKind.HTTP_3XX: 10,
    ErrorKind.HTTP_4XX: 11,
    ErrorKind.HTTP_410: 12,
    ErrorKind.HTTP_429: 13,
    ErrorKind.HTTP_5XX: 14,
}
_ERROR_NAMES = {number: error.value for error, number in _ERRORS.items()}
_ACCEPTED = range(FIRST_ANSWER + 200, FIRST_ANSWER + 300)


def bucket_of(seconds: float) -> int:
    """The bucket that a duration is counted in, whatever a clock made of it."""
    if not seconds > SHORTEST:
        return 0
    return int(math.log(min(seconds, LONGEST)) * PER_E + FIRST)


def seconds_of(bucket: int) -> float:
    """The duration that stands for a bucket."""
    return float(_MIDDLE * 1.02**bucket)


def edge_near(seconds: float) -> tuple[int, float]:
    """The edge between two buckets that is nearest to a duration: the bucket above it, and where it is."""
    bucket = max(0, round(math.log(seconds) * PER_E + FIRST))
    return bucket, SHORTEST * 1.02**bucket


def answer_key(status: int | None, error: ErrorKind | None) -> int:
    """The key of a receiver's answer; an attempt with an error is never counted as accepted."""
    if status is None or not 0 < status < 1_000 or (error is not None and 200 <= status < 300):
        return FIRST_ERROR + _ERRORS[error or ErrorKind.INTERNAL]
    return FIRST_ANSWER + status


def percentile(counts: Mapping[int, int], percent: float) -> float | None:
    """The duration that so many percent of the samples do not exceed (nearest rank); None if there are no samples."""
    total = sum(counts.values())
    rank = max(1, math.ceil(total * percent / 100))
    for bucket in sorted(counts):
        rank -= counts[bucket]
        if rank <= 0:
            return seconds_of(bucket)
    return None


def total_seconds(counts: Mapping[int, int]) -> float:
    """The sum of all durations."""
    return sum(count * seconds_of(bucket) for bucket, count in counts.items())


def mean(counts: Mapping[int, int]) -> float | None:
    """The mean of all durations; None if there are no samples."""
    samples = sum(counts.values())
    return total_seconds(counts) / samples if samples else None


def of_kind(counts: Mapping[int, int], kind: LatencyKind) -> dict[int, int]:
    """The counts of one kind, by bucket."""
    first = kind << KIND_BITS
    return {key - first: count for key, count in counts.items() if first <= key < first + BUCKETS}


def accepted(counts: Mapping[int, int]) -> int:
    """How many attempts were accepted."""
    return sum(count for key, count in counts.items() if key in _ACCEPTED)


def by_answer(counts: Mapping[int, int]) -> dict[str, int]:
    """How many attempts got each status, or ended with each error without one."""
    found: dict[str, int] = {}
    for key in sorted(counts):
        if key >= FIRST_ERROR:
            found[_ERROR_NAMES.get(key - FIRST_ERROR, "unknown")] = counts[key]
        elif key >= FIRST_ANSWER:
            found[str(key - FIRST_ANSWER)] = counts[key]
    return found


def encode(counts: Mapping[int, int]) -> bytes:
    """Counts as bytes: for each key the distance to the one before, then its count, as varints."""
    data = bytearray()
    before = 0
    for key in sorted(counts):
        for number in (key - before, counts[key]):
            while number > 0x7F:
                data.append(number & 0x7F | 0x80)
                number >>= 7
            data.append(number)
        before = key
    return bytes(data)


def decode(data: bytes) -> dict[int, int]:
    """The counts that `encode` made bytes of; ValueError if they are no such bytes."""
    counts: dict[int, int] = {}
    add_encoded(counts, data)
    return counts


def add_encoded(counts: dict[int, int], data: bytes) -> None:
    """Add encoded counts to these."""
    key = 0
    numbers = iter(data) if data.isascii() else _numbers(data)
    for distance in numbers:
        key += distance
        count = next(numbers, None)
        if count is None:
            raise ValueError("A count is missing.")
        counts[key] = counts.get(key, 0) + count


def _numbers(data: bytes) -> Iterator[int]:
    number = shift = 0
    for byte in data:
        if byte > 0x7F:
            number |= (byte & 0x7F) << shift
            shift += 7
        elif shift:
            yield number | byte << shift
            number = shift = 0
        else:
            yield byte
    if shift:
        raise ValueError("A number is cut off.")


def compress(data: bytes) -> bytes:
    """Encoded counts of an hour, smaller."""
    return zlib.compress(data)


def decompress(data: bytes) -> bytes:
    """What was compressed; ValueError if it was not."""
    try:
        return zlib.decompress(data)
    except zlib.error as error:
        raise ValueError(str(error)) from None
