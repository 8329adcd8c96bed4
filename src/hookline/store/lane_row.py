"""Reads a lane from a stored row; both databases name the same columns in the same order."""

from collections.abc import Iterable
from typing import Any

from hookline.model import CLOSED, Circuit
from hookline.store import spoiled_rows
from hookline.store.contract.lanes import LaneRow, Taken


def read_taken(row: Iterable[Any], *, copies: int = 0) -> Taken:
    endpoint_id, epoch, woke_at, hold_until, suspect, head, tokens, tokens_at, applied, is_reset, *rest = row
    rest_until, *gate = rest
    return Taken(
        endpoint_id,
        epoch,
        woke_at,
        hold_until,
        bool(suspect),
        head,
        _read_circuit(*gate),
        tokens,
        tokens_at,
        applied,
        bool(is_reset),
        rest_until,
        copies,
    )


def read_lane(row: Iterable[Any]) -> LaneRow:
    endpoint_id, owner, hold_until, head, rest_until, *gate = row
    return LaneRow(endpoint_id, owner, hold_until, head, _read_circuit(*gate), rest_until)


def _read_circuit(state: str, failures: int, slices: str | None, *rest: Any) -> Circuit:
    cooldown, opened_at, probe_at, reason, last_success_at, last_failure_at = rest
    values = {
        "state": state,
        "failures": failures,
        "slices": () if slices is None else spoiled_rows.decoded(slices),
        "cooldown": cooldown,
        "opened_at": opened_at,
        "probe_at": probe_at,
        "reason": reason,
        "last_success_at": last_success_at,
        "last_failure_at": last_failure_at,
    }
    return spoiled_rows.read(Circuit, values) or CLOSED
