"""Notes about sources are kept, and nothing that a source may still bring is pruned."""

import pytest

from factories import NOW, a_publication
from hookline.store.contract import SourceRow
from scenes import accepted

pytestmark = pytest.mark.anyio

PAST_ALL = {"done_before": NOW * 2, "dead_before": NOW * 2, "limit": 100}


async def test_a_note_says_what_is_known_and_never_takes_back_a_clear(store):
    away = SourceRow("shop", trouble="it is away")
    await store.note_source(away)
    assert await store.outbox_sources() == [away]
    await store.note_source(SourceRow("shop", clear_at=NOW, looked_at=NOW + 1, waiting=3, oldest_at=NOW - 1))
    await store.note_source(SourceRow("own", clear_at=NOW))
    assert await store.outbox_sources() == [
        SourceRow("own", clear_at=NOW),
        SourceRow("shop", clear_at=NOW, looked_at=NOW + 1, waiting=3, oldest_at=NOW - 1),
    ]
    await store.note_source(SourceRow("shop", clear_at=NOW - 5, trouble="it is away"))
    assert (await store.outbox_sources())[1] == SourceRow(
        "shop", clear_at=NOW, looked_at=NOW + 1, trouble="it is away"
    )
    await store.note_source(SourceRow("shop", clear_at=NOW + 5))
    assert (await store.outbox_sources())[1].clear_at == NOW + 5


async def test_a_forgotten_source_is_gone(store):
    await store.note_source(SourceRow("shop"))
    assert await store.forget_source("shop")
    assert not await store.forget_source("shop")
    assert await store.outbox_sources() == []


async def test_pruning_waits_for_every_source_to_be_clear(store):
    """[Accepted, the source away for longer than the retention, pruned, the source back: sent twice.]"""
    early, late = a_publication(created_at=NOW), a_publication(created_at=NOW + 10)
    await accepted(store, early, late)
    await store.note_source(SourceRow("shop", clear_at=NOW + 5))
    await store.note_source(SourceRow("other", clear_at=NOW))
    await store.note_source(SourceRow("never accepted from"))
    assert (await store.prune(**PAST_ALL)).events == 0
    await store.note_source(SourceRow("other", clear_at=NOW + 20))
    assert (await store.prune(**PAST_ALL)).events == 1
    assert await store.event(early.event.id) is None
    await store.forget_source("shop")
    assert (await store.prune(**PAST_ALL)).events == 1
