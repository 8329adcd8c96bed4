"""Reads a job from a stored row, whatever the row holds.

A job of which something cannot be read is not carried out: it fails with that reason, and the others are listed and
carried out.
"""

from typing import Any

import msgspec

from hookline.store import spoiled_rows
from hookline.store.contract.deliveries import DeliveryFilter
from hookline.store.contract.jobs import UNREADABLE_JOB, Job, JobKind, JobState

_FILTER = msgspec.json.Decoder(DeliveryFilter)
_STAND_INS = {
    "id": bytes(spoiled_rows.ID_BYTES),
    "kind": JobKind.REPLAY,
    "filter": DeliveryFilter(),
    "ids": (),
    "state": JobState.FAILED,
}
_CHOOSE = ("id", "kind", "ids", "account", "state", "created_at")  # which letters, and whether


def read(values: dict[str, Any]) -> Job:
    """The job in these columns, whose filter is still JSON."""
    is_readable = True
    try:
        chosen = _FILTER.decode(values["filter"])
    except Exception:  # of any kind: a row may hold anything
        chosen, is_readable = DeliveryFilter(), False
        spoiled_rows.note("Job", values["id"], "filter")
    plain = values | {"filter": msgspec.to_builtins(chosen), "ids": values["ids"]}
    job = spoiled_rows.read(Job, plain, _STAND_INS)
    assert job is not None  # noqa: S101 - for the type checker; every field has a stand-in
    if is_readable and all(_same(getattr(job, name), values[name]) for name in _CHOOSE):
        return job
    return msgspec.structs.replace(job, reason=job.reason or UNREADABLE_JOB)


def _same(read: Any, stored: Any) -> bool:
    return bool(tuple(stored) == read) if isinstance(stored, list) else bool(stored == read)
