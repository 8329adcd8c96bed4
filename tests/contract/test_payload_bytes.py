"""Payloads come out byte for byte as they went in."""

import pytest

from factories import NOW, a_publication
from hookline.store.contract import INLINE_PAYLOAD_BYTES, Want
from scenes import a_lane_in, accepted

pytestmark = pytest.mark.anyio

PAYLOADS = {
    "empty": b"",
    "nul bytes": b'"\x00\x00"',
    "an escaped nul": b'"\\u0000"',
    "not utf-8": b"\xff\xfe\xed\xa0\x80",
    "every byte": bytes(range(256)),
    "spaces and key order": b'{ "b":1,\r\n\t"a": 1.0e0 , "a":2}',
    "as large as goes inline": b"x" * INLINE_PAYLOAD_BYTES,
    "one byte more": b"x" * (INLINE_PAYLOAD_BYTES + 1),
    "1 MiB": bytes(range(256)) * 4096,
}


@pytest.mark.parametrize("payload", PAYLOADS.values(), ids=PAYLOADS)
async def test_a_payload_is_kept_verbatim(store, payload):
    lane = await a_lane_in(store)
    publication = a_publication(lane, payload=payload)
    await accepted(store, publication)
    [loaded] = await store.load([Want(lane, 1, 0)], known=[], now=NOW)
    assert loaded.payload == (payload if len(payload) <= INLINE_PAYLOAD_BYTES else None)
    assert await store.payload(publication.event.id) == payload
    assert (await store.event(publication.event.id)).payload == payload
