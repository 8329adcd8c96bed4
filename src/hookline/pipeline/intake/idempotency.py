"""Answers publishes whose idempotency key was used before."""

import hashlib
from collections.abc import Mapping

import msgspec

from hookline.errors import IdempotencyConflict
from hookline.model import Event, EventId
from hookline.pipeline.intake.drafts import Entry, Published
from hookline.store.contract import Prior


def digest(event: Event) -> bytes:
    """A digest of everything that must be the same when a key is used again."""
    head = f"{event.type}\n{event.deliver_at}\n".encode()
    return hashlib.sha256(head + event.payload).digest()


def answer_by(prior: Prior, entry: Entry) -> None:
    """Answer with the event that the key already names."""
    event = entry.event
    if prior.digest != digest(event):
        entry.answer(IdempotencyConflict(event.idempotency_key or ""))
    else:
        entry.answer(
            Published(prior.event_id, prior.type, event.account, prior.created_at, len(prior.endpoints), True)
        )


def answer_repeat(entry: Entry, first: Entry, priors: Mapping[EventId, Prior]) -> None:
    """Answer an event whose key is used earlier in the same commit, after that earlier event is answered."""
    prior = priors.get(first.event.id)
    if prior is not None:
        answer_by(prior, entry)
        return
    result = first.submission.results[first.index]
    if isinstance(result, Published):
        same = digest(entry.event) == digest(first.event)
        result = msgspec.structs.replace(result, duplicate=True) if same else None
    entry.answer(result or IdempotencyConflict(entry.event.idempotency_key or ""))
