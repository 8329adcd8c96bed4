"""How do events come in over HTTP?

The hot path: one read, one decode, one commit shared with whoever publishes at the same time, one write.
"""

from collections.abc import MutableMapping
from typing import Any

import msgspec

from hookline import ids, rfc3339
from hookline.api.answer import JSON, Header, Send, answer
from hookline.api.body import Receive, check_media, read_body
from hookline.api.envelope import read_batch, read_publication
from hookline.api.problem import describe
from hookline.api.protocol import ACCEPTED
from hookline.api.query import Query
from hookline.app import Hookline
from hookline.errors import HooklineError, Invalid, TooLarge
from hookline.pipeline.intake import Draft, Published

ENVELOPE_BYTES = 4_096  # room around a payload for the other fields

_HEADERS: list[Header] = [JSON]


class Publish:
    """Answers `POST /v1/events` and `POST /v1/events/batch`."""

    def __init__(self, hookline: Hookline) -> None:
        settings = hookline.settings
        self._hookline = hookline
        self._payload_limit = settings.payload_limit_bytes
        self._single_limit = settings.payload_limit_bytes + ENVELOPE_BYTES
        self._batch_limit = settings.batch_limit_bytes

    async def single(
        self, scope: MutableMapping[str, Any], receive: Receive, send: Send, *, request_id: str
    ) -> None:
        """One event."""
        if scope["query_string"]:
            Query(scope["query_string"], ())
        headers = scope["headers"]
        try:
            check_media(headers, limit_bytes=self._single_limit)
            key = _idempotency_key(headers)
            body = await read_body(receive, limit_bytes=self._single_limit)
        except TooLarge:
            # The payload's limit, whichever of the two was hit: one number to know.
            raise TooLarge("A payload", limit_bytes=self._payload_limit) from None
        draft = read_publication(
            body, header_key=key, limit_bytes=self._payload_limit, now=self._hookline.clock.now()
        )
        published = await self._hookline.publish_draft(draft)
        await _accepted(scope, send, _shown(published), request_id)

    async def batch(
        self, scope: MutableMapping[str, Any], receive: Receive, send: Send, *, request_id: str
    ) -> None:
        """Up to 1,000 events; a bad one does not stop the others."""
        if scope["query_string"]:
            Query(scope["query_string"], ())
        headers = scope["headers"]
        check_media(headers, limit_bytes=self._batch_limit)
        if _idempotency_key(headers) is not None:
            raise Invalid("In a batch each event has its own idempotency_key; the header is for one event.")
        items = read_batch(await read_body(receive, limit_bytes=self._batch_limit))
        now = self._hookline.clock.now()
        read: list[Draft | HooklineError] = []
        for place, item in enumerate(items):
            try:
                read.append(
                    read_publication(item, limit_bytes=self._payload_limit, now=now, at=f"/events/{place}")
                )
            except HooklineError as error:
                read.append(error)
        drafts = [each for each in read if isinstance(each, Draft)]
        accepted = iter(await self._hookline.accept(drafts) if drafts else [])
        results = [next(accepted) if isinstance(each, Draft) else each for each in read]
        shown = b",".join(
            [
                _shown(each)
                if isinstance(each, Published)
                else b'{"error":%b}' % msgspec.json.encode(describe(each, request_id=request_id))
                for each in results
            ]
        )
        await _accepted(scope, send, b'{"results":[%b]}' % shown, request_id)


async def _accepted(scope: MutableMapping[str, Any], send: Send, body: bytes, request_id: str) -> None:
    at_once = scope.get(ACCEPTED)
    if at_once is None or not at_once(body, request_id):
        await answer(send, 202, body, request_id=request_id, headers=_HEADERS)


def _shown(published: Published) -> bytes:
    # By hand: type and account are letters, digits and a few marks that JSON leaves alone.
    return (
        f'{{"id":"{ids.show("event", published.id)}","type":"{published.type}","account":"{published.account}",'
        f'"created_at":"{rfc3339.show(published.created_at)}","deliveries":{published.deliveries},'
        f'"duplicate":{"true" if published.duplicate else "false"}}}'
    ).encode("ascii")


def _idempotency_key(headers: list[Header]) -> bytes | None:
    found: bytes | None = None
    for name, value in headers:
        if name == b"idempotency-key":
            if found is not None:
                raise Invalid("There are two Idempotency-Key headers.")
            found = value
    return found
