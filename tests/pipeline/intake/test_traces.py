"""A program's publish takes a trace too."""

from pathlib import Path

import pytest

from hookline.app import Hookline
from hookline.ids import read
from hookline.model import EventId

pytestmark = pytest.mark.anyio

PARENT = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"


@pytest.mark.parametrize(
    ("given", "kept"),
    [
        ({"traceparent": PARENT, "tracestate": "a=1"}, f"{PARENT} a=1"),
        ({"traceparent": PARENT}, PARENT),
        ({"traceparent": "no trace", "tracestate": "a=1"}, None),
        ({"tracestate": "a=1"}, None),
        ({}, None),
    ],
)
async def test_the_trace_of_a_publish_is_stored_with_its_event(tmp_path: Path, given, kept):
    async with Hookline(f"sqlite:///{tmp_path}/hooks.db") as hooks:
        published = await hooks.publish("order.paid", {"id": 42}, **given)
        event = await hooks.store.event(EventId(read("event", published.id)))
    assert event.trace == kept
