"""Checks rows of outboxes as a publish by the API is checked."""

import math
from typing import NamedTuple

from hookline import rfc3339
from hookline.errors import HooklineError, Invalid
from hookline.model import EventId
from hookline.pipeline.intake.drafts import Draft
from hookline.rules import hops
from hookline.store.contract import RefusedRow, WaitingRow
from hookline.validate import payload as payloads
from hookline.validate.names import check_account, check_idempotency_key, check_type

# The application checked against 365 days, by its own clock.
MAX_AHEAD_S = 366 * 86_400.0
_SMALL = range(-(2**15), 2**15)
_ID_BYTES = 16
_MOST_CHARACTERS = 500  # of a name: longer ones do not fit into an index
_MOST_PARTS, _MOST_OF_A_REASON = 3, 1_000  # of what is wrong; characters


class RowLimits(NamedTuple):
    """The server's own limits."""

    payload_bytes: int
    hops: int


def draft_of(row: WaitingRow, *, limits: RowLimits, now: float) -> Draft:
    """The row as a draft under its own id; raises what is wrong with it."""
    if row.fault:
        raise Invalid(f"The row cannot be read: {row.fault}.", pointer="/row")
    id = row.id
    if id[13] & 15 or id[14] or id[15]:
        raise Invalid("An id is a UUID that ends in five zeros, as in the table's default.", pointer="/id")
    if row.hops:
        hops.checked(row.hops, most=limits.hops)
    if row.deliver_at is not None:
        _check_moment(row.deliver_at, now=now)
    payloads.check(row.payload, limits.payload_bytes)
    return Draft(
        check_type(row.type),
        row.payload,
        check_account(row.account),
        None if row.idempotency_key is None else check_idempotency_key(row.idempotency_key),
        row.deliver_at,
        row.hops,
        None,
        row.id,
    )


def _check_moment(at: float, *, now: float) -> None:
    if not math.isfinite(at) or not rfc3339.can_be_shown(at):
        raise Invalid("deliver_at lies in the years 1 to 9999.", pointer="/deliver_at")
    if at > now + MAX_AHEAD_S:
        raise Invalid("deliver_at lies at most 365 days ahead.", pointer="/deliver_at")


def refused(row: WaitingRow, *, source: str, code: str, error: HooklineError, now: float) -> RefusedRow:
    """The row as it is kept; what a store cannot hold of it is left out."""
    return RefusedRow(
        source=source,
        seq=row.seq,
        id=EventId(bytes(row.id)[:_ID_BYTES].ljust(_ID_BYTES, b"\0")),
        at=row.at if _can_be_kept(row.at) else now,
        deliver_at=row.deliver_at if row.deliver_at is None or _can_be_kept(row.deliver_at) else None,
        account=row.account[:_MOST_CHARACTERS],
        type=row.type[:_MOST_CHARACTERS],
        idempotency_key=None if row.idempotency_key is None else row.idempotency_key[:_MOST_CHARACTERS],
        hops=row.hops if row.hops in _SMALL else -1,
        payload=row.payload,
        payload_bytes=len(row.payload),
        refused_at=now,
        code=code,
        detail=reason_of(error),
    )


def reason_of(error: HooklineError) -> str:
    """Why it was refused, in words, with the parts of the payload that are wrong."""
    detail = error.detail or str(error)
    parts = [f"{each.pointer or '/'}: {each.detail}" for each in error.errors if each.detail != detail]
    if not parts:
        return detail
    more = f"; and {len(parts) - _MOST_PARTS:,} more" if len(parts) > _MOST_PARTS else ""
    said = f"{detail} {'; '.join(parts[:_MOST_PARTS])}{more}"
    return said if len(said) <= _MOST_OF_A_REASON else f"{said[: _MOST_OF_A_REASON - 1]}…"


def _can_be_kept(at: float) -> bool:
    return math.isfinite(at) and rfc3339.can_be_shown(at)
