"""A verb that takes long is logged by its name, without what it was given."""

import pytest
from structlog.testing import capture_logs

from factories import NOW, a_publication
from hookline.store.contract import Store
from scenes import a_lane_in, accepted

pytestmark = pytest.mark.anyio


async def test_a_slow_verb_is_named_without_its_values(store: Store):
    lane = await a_lane_in(store)
    store.slow_verbs.limit = 0.0  # everything is slow
    with capture_logs() as lines:
        await accepted(store, a_publication(lane, payload=b'"canary"', idempotency_key="canary"))
    assert [line["verb"] for line in lines if line["event"] == "statement.slow"] == ["catalogue", "accept"]
    assert "canary" not in repr(lines)
    assert all(set(line) == {"event", "log_level", "verb", "took_s", "unnamed"} for line in lines)


async def test_a_verb_is_named_once_in_a_while_with_how_often_it_was_slow(store: Store):
    slow = store.slow_verbs
    with capture_logs() as lines:
        for at in (100.0, 101.0, 109.9, 110.0, 110.1):
            slow.note("settle", 2.0, at=at)
        slow.note("accept", 2.0, at=110.2)
    assert [(line["verb"], line["unnamed"]) for line in lines] == [
        ("settle", 0),
        ("settle", 2),
        ("accept", 0),
    ]


async def test_a_verb_that_failed_was_slow_too(store: Store):
    await store.close()
    store.slow_verbs.limit = 0.0
    with capture_logs() as lines, pytest.raises(Exception, match=r"closed|not open"):
        await store.settle(b"w" * 16, [], now=NOW)
    await store.open()
    assert [line["verb"] for line in lines] == ["settle"]


async def test_verbs_within_the_limit_are_not_logged(store: Store):
    with capture_logs() as lines:
        await a_lane_in(store)
    assert lines == []
