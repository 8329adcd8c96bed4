"""Packs what the owner of lanes knows about them and what no row says.

It travels with the owner's heartbeat, so that every process gives the same answer about a lane.
"""

from collections.abc import Iterable, Sequence

import msgspec

MOST_BYTES = (
    32 * 1024
)  # of one worker's status; a heartbeat with this much takes twice as long as one with nothing
TRUSTED_BEATS = 3.0  # heartbeats for which a status is believed
_LANE_BYTES = 36  # the most that a lane takes
_ID_BYTES = 16
_FRAME_BYTES = 32  # around both lists
# What hookline itself is not to blame for: deliveries that wait for one of these are not late.
HELD_BACK = frozenset({"circuit", "receiver", "rate", "due"})


class KnownLane(msgspec.Struct, frozen=True, array_like=True):
    """A lane, as its owner knows it."""

    endpoint_id: bytes
    waiting_for: str  # what keeps its deliveries from being sent now
    in_flight: int  # requests under way


class WorkerStatus(msgspec.Struct, frozen=True, array_like=True):
    """What a worker knows: the lanes that wait for more than a slot or are being sent to, and what is being sent."""

    lanes: tuple[KnownLane, ...] = ()
    under_way: bytes = b""  # the ids of deliveries, 16 bytes each
    is_cut: bool = False  # there was more than fits

    def deliveries(self) -> frozenset[bytes]:
        """The ids of the deliveries that are being sent."""
        ids = self.under_way
        return frozenset(ids[place : place + _ID_BYTES] for place in range(0, len(ids), _ID_BYTES))


NOTHING_KNOWN = WorkerStatus()
_decoder = msgspec.msgpack.Decoder(WorkerStatus)


def packed(lanes: Sequence[KnownLane], under_way: Iterable[bytes]) -> bytes:
    """The status in a few bytes, the same for the same knowledge; empty if there is nothing to say."""
    ids = sorted(under_way)
    if not lanes and not ids:
        return b""
    first = sorted(lanes, key=lambda lane: lane.endpoint_id)[: (MOST_BYTES - _FRAME_BYTES) // _LANE_BYTES]
    room = (MOST_BYTES - _FRAME_BYTES - _LANE_BYTES * len(first)) // _ID_BYTES
    is_cut = len(first) < len(lanes) or room < len(ids)
    return msgspec.msgpack.encode(WorkerStatus(tuple(first), b"".join(ids[:room]), is_cut))


def unpacked(status: bytes) -> WorkerStatus:
    """The status; of another version's it knows nothing, and says so."""
    if not status:
        return NOTHING_KNOWN
    try:
        return _decoder.decode(status)
    except msgspec.MsgspecError:
        return WorkerStatus(is_cut=True)


def is_trusted(*, silent: float, heartbeat: float) -> bool:
    """Whether a worker that was last heard `silent` seconds ago is still believed."""
    return silent <= TRUSTED_BEATS * heartbeat


def held_back(statuses: Iterable[WorkerStatus]) -> list[bytes]:
    """The lanes that a limit, a rest or a circuit holds back."""
    return [lane.endpoint_id for status in statuses for lane in status.lanes if lane.waiting_for in HELD_BACK]
