"""Reads the filter that selects dead letters.

Lists and jobs use the same field names. A job over all dead letters has to say so: an empty filter is refused, because
it is more often a mistake than intended.
"""

import hashlib
from collections.abc import Mapping
from typing import Any

import msgspec

from hookline import ids, rfc3339
from hookline.errors import Invalid, NotFound
from hookline.model import DeliveryId, EndpointId, Reason, State
from hookline.store.contract import DeliveryFilter
from hookline.validate.names import check_account, check_known, check_type, did_you_mean

REASONS = (Reason.EXHAUSTED, Reason.REJECTED, Reason.GONE, Reason.CRASH_LIMIT)
FIELDS = ("account", "endpoint_id", "event_type", "reason", "since", "until")
MOST_IDS = 1_000

DEAD = DeliveryFilter(state=State.DEAD)


class Chosen(msgspec.Struct, frozen=True):
    """The dead letters of a job: those that match a filter, or those with these ids."""

    filter: DeliveryFilter
    ids: tuple[DeliveryId, ...] = ()

    def within(self, account: str) -> "Chosen":
        """The ones that belong to this account; ids are checked one by one."""
        return Chosen(msgspec.structs.replace(self.filter, account=account), self.ids)

    def digest(self) -> bytes:
        """Equal for equal choices."""
        return hashlib.sha256(msgspec.msgpack.encode(self)).digest()


def chosen(value: Any, *, at: str = "/filter") -> Chosen:
    """The dead letters that a job's `filter` selects."""
    allowed = f"{', '.join(FIELDS)}, or ids alone"
    if not isinstance(value, Mapping):
        raise Invalid(f"filter is an object with {allowed}.", pointer=at)
    if "replayed" in value:
        raise Invalid(
            f"A replayed delivery is pending and no longer a dead letter. A filter takes {allowed}.",
            pointer=f"{at}/replayed",
            code="unknown_field",
        )
    check_known(value, (*FIELDS, "ids"), at=at)
    said = {name: each for name, each in value.items() if each is not None}
    if not said:
        raise Invalid(
            f"filter needs at least one of {allowed}. For all dead letters, give the present time: "
            '{"until": "<time>"}.',
            pointer=at,
        )
    if "ids" in said:
        if len(said) > 1:
            raise Invalid("ids cannot be combined with other fields of a filter.", pointer=f"{at}/ids")
        return Chosen(DEAD, _ids(said["ids"], at=f"{at}/ids"))
    return Chosen(
        DeliveryFilter(
            state=State.DEAD,
            account=None
            if "account" not in said
            else check_account(said["account"], pointer=f"{at}/account"),
            endpoint_id=None
            if "endpoint_id" not in said
            else EndpointId(_id("endpoint", said["endpoint_id"], at=f"{at}/endpoint_id")),
            event_type=None
            if "event_type" not in said
            else check_type(said["event_type"], pointer=f"{at}/event_type"),
            reason=None if "reason" not in said else reason(said["reason"], pointer=f"{at}/reason"),
            died_since=None if "since" not in said else _moment(said["since"], at=f"{at}/since"),
            died_until=None if "until" not in said else _moment(said["until"], at=f"{at}/until"),
        )
    )


def reason(value: Any, *, pointer: str, code: str = "invalid_field") -> Reason:
    """The reason why a delivery is dead."""
    if isinstance(value, str) and value in REASONS:
        return Reason(value)
    near = did_you_mean(value, REASONS) if isinstance(value, str) else ""
    raise Invalid(f"reason is one of {', '.join(REASONS)}.{near}", pointer=pointer, code=code)


def _ids(value: Any, *, at: str) -> tuple[DeliveryId, ...]:
    if not isinstance(value, list | tuple) or not 1 <= len(value) <= MOST_IDS:
        raise Invalid(f"ids is a list of 1 to {MOST_IDS:,} delivery ids.", pointer=at)
    read = (DeliveryId(_id("delivery", each, at=f"{at}/{place}")) for place, each in enumerate(value))
    return tuple(sorted(set(read)))


def _id(noun: str, value: Any, *, at: str) -> bytes:
    try:
        if isinstance(value, str):
            return ids.read(noun, value)
    except NotFound:
        pass
    article = "an" if noun == "endpoint" else "a"
    raise Invalid(f"This is not {article} {noun} id, such as {ids.show(noun, bytes(16))}.", pointer=at)


def _moment(value: Any, *, at: str) -> float:
    try:
        if isinstance(value, str):
            return rfc3339.read(value)
    except ValueError:
        pass
    raise Invalid("This is not an RFC 3339 time with a zone, such as 2026-01-31T12:00:00Z.", pointer=at)
