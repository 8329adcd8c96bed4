"""Makes ids.

An id is 128 bits in the shape of a UUIDv7: 48 bits of milliseconds, then a counter, then random bits. Ids made later
sort later (on one clock), and index pages fill from one side. An event's id ends in 20 zero bits. Its deliveries' ids
are that id plus their ordinal, so that one primary key lists them.
"""

import re
from functools import lru_cache
from random import Random
from struct import Struct
from typing import NamedTuple

from hookline.clock import Clock
from hookline.errors import NotFound
from hookline.model import (
    AlertId,
    AttemptId,
    AuditId,
    DeliveryId,
    EndpointId,
    EventId,
    JobId,
    KeyId,
    WorkerId,
)

ORDINAL_BITS = 20
MAX_FANOUT = 1 << ORDINAL_BITS

PREFIXES = {
    "row": "evt_",  # of an outbox: the id that its event has, or would have
    "event": "evt_",
    "endpoint": "ep_",
    "delivery": "dlv_",
    "attempt": "att_",
    "worker": "wrk_",
    "replay": "rpl_",
    "discard": "dsc_",
    "key": "key_",
    "alert": "alr_",
    "audit": "aud_",
}

LEAST_PREFIX = 8  # characters after `ep_`, `evt_` …: they say the second in which the id was made

_ORDINAL_MASK = MAX_FANOUT - 1
_HALVES = Struct(">QQ")
_VARIANT = 0b10 << 62  # RFC 9562; the version, 7, is in the other half
_CHANCE = (1 << 62) - 1
_EVENT_CHANCE = _CHANCE & ~_ORDINAL_MASK
_ALPHABET = "0123456789abcdefghijklmnopqrstuv"  # base32hex: text sorts as the bytes do
_PAIRS = [a + b for a in _ALPHABET[:8] for b in _ALPHABET]
_TRIPLES = [a + b + c for a in _ALPHABET for b in _ALPHABET for c in _ALPHABET]
_DIGITS = 26
_TEXT = re.compile(r"[0-7][0-9a-v]{25}\Z")
_BEGINNING = re.compile(r"([a-z]+_)([0-7][0-9a-v]{0,25})\Z")
_NOUNS = {prefix: noun for noun, prefix in PREFIXES.items()}


class Ids:
    """Makes ids that sort in the order they were made."""

    def __init__(self, clock: Clock, rng: Random) -> None:
        self._clock = clock
        self._rng = rng
        self._ms = 0
        self._count = 0

    def event(self) -> EventId:
        """A new event's id, with room for its deliveries' ordinals."""
        return EventId(self._next(_EVENT_CHANCE))

    def endpoint(self) -> EndpointId:
        return EndpointId(self._next())

    def attempt(self) -> AttemptId:
        return AttemptId(self._next())

    def worker(self) -> WorkerId:
        return WorkerId(self._next())

    def job(self) -> JobId:
        return JobId(self._next())

    def key(self) -> KeyId:
        return KeyId(self._next())

    def audit(self) -> AuditId:
        return AuditId(self._next())

    def alert(self) -> AlertId:
        return AlertId(self._next())

    def _next(self, chance: int = _CHANCE) -> bytes:
        ms = int(self._clock.wall() * 1000)
        if ms > self._ms:
            self._ms, self._count = ms, 0
        else:
            self._count += 1  # the same millisecond, or the clock was set back
            if self._count > 0xFFF:
                self._ms, self._count = self._ms + 1, 0
        # In two halves: arithmetic on 128-bit numbers takes twice as long.
        return _HALVES.pack(
            self._ms << 16 | 0x7000 | self._count, _VARIANT | self._rng.getrandbits(62) & chance
        )


def delivery_of(event: EventId, ordinal: int) -> DeliveryId:
    """The id of the event's delivery at this place in the fan-out."""
    if not ordinal:
        return DeliveryId(event)
    return DeliveryId((int.from_bytes(event) | ordinal).to_bytes(16))


def event_of(delivery: DeliveryId | bytes) -> EventId:
    """The id of the event that a delivery belongs to."""
    if delivery[14:] == b"\0\0" and not delivery[13] & 15:
        return EventId(delivery)  # the first delivery has the event's own id
    return EventId((int.from_bytes(delivery) & ~_ORDINAL_MASK).to_bytes(16))


def first_at(moment: float) -> bytes:
    """The smallest id that can be made at this moment."""
    return (min(max(int(moment * 1_000), 0), (1 << 48) - 1) << 80).to_bytes(16)


@lru_cache(maxsize=8_192)  # an event's id is shown to its producer, and soon after to each receiver
def show(noun: str, id: bytes) -> str:
    """The id as people and programs outside see it: a prefix and 26 characters."""
    n, triples = int.from_bytes(id), _TRIPLES
    # Unrolled: every event's id is shown, and this takes a fifth of the time of a loop over its digits.
    return (
        f"{PREFIXES[noun]}{_PAIRS[n >> 120]}{triples[n >> 105 & 32767]}{triples[n >> 90 & 32767]}"
        f"{triples[n >> 75 & 32767]}{triples[n >> 60 & 32767]}{triples[n >> 45 & 32767]}"
        f"{triples[n >> 30 & 32767]}{triples[n >> 15 & 32767]}{triples[n & 32767]}"
    )


def read(noun: str, text: str) -> bytes:
    """The 16 bytes of an id's text; any other text is `NotFound`."""
    prefix = PREFIXES[noun]
    digits = text[len(prefix) :]
    if not text.startswith(prefix) or not _TEXT.match(digits):
        raise NotFound(noun, text[:100])
    return int(digits, 32).to_bytes(16)


class IdPrefix(NamedTuple):
    """The beginning of an id's text: the ids from `low` to `high` have it."""

    noun: str
    length: int  # characters after `ep_`, `evt_` …
    low: bytes
    high: bytes


def read_prefix(text: str) -> IdPrefix | None:
    """The ids whose text begins like this; None if no id's text does."""
    found = _BEGINNING.match(text)
    if found is None or found[1] not in _NOUNS:
        return None
    digits = found[2]
    low, high = (int(digits.ljust(_DIGITS, fill), 32).to_bytes(16) for fill in "0v")
    return IdPrefix(_NOUNS[found[1]], len(digits), low, high)
