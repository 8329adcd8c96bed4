"""What a repeated idempotency key returns."""

import asyncio

import msgspec
import pytest

from factories import NOW, a_publication
from hookline.model import State
from hookline.store.contract import Prior
from scenes import a_lane_in, accepted

pytestmark = pytest.mark.anyio


async def test_a_used_key_gives_the_first_event_back_and_writes_nothing(store):
    lanes = tuple([await a_lane_in(store) for _ in range(3)])
    first = a_publication(*lanes, idempotency_key="k", digest=b"one", type="a.b", created_at=NOW - 3)
    await accepted(store, first)
    second = a_publication(*lanes, idempotency_key="k", digest=b"two")
    acceptance = await accepted(store, second)
    assert acceptance.priors == {
        second.event.id: Prior(first.event.id, "a.b", NOW - 3, b"one", lanes),
    }
    assert await store.event(second.event.id) is None
    assert (await store.counts())[State.PENDING] == 3


async def test_the_rest_of_the_batch_is_written(store):
    lane = await a_lane_in(store)
    await accepted(store, a_publication(lane, idempotency_key="k"))
    repeat, other = a_publication(lane, idempotency_key="k"), a_publication(lane, idempotency_key="other")
    acceptance = await accepted(store, repeat, other)
    assert list(acceptance.priors) == [repeat.event.id]
    assert await store.event(other.event.id) == other.event


async def test_a_key_belongs_to_its_account(store):
    lane = await a_lane_in(store)
    await accepted(store, a_publication(lane, idempotency_key="k", account="one"))
    acceptance = await accepted(store, a_publication(lane, idempotency_key="k", account="two"))
    assert acceptance.priors == {}


async def test_a_prior_without_deliveries_says_so(store):
    first = a_publication(idempotency_key="k")
    await accepted(store, first)
    second = a_publication(idempotency_key="k")
    acceptance = await accepted(store, second)
    assert acceptance.priors[second.event.id].endpoints == ()


async def test_of_concurrent_accepts_with_one_key_one_wins_and_the_others_learn_which(store, second_store):
    lane = await a_lane_in(store)
    publications = [a_publication(lane, idempotency_key="k") for _ in range(12)]
    stores = [store, second_store] * 6
    answers = await asyncio.gather(
        *(accepted(s, publication) for s, publication in zip(stores, publications, strict=True))
    )
    winners = [p for p, answer in zip(publications, answers, strict=True) if not answer.priors]
    assert len(winners) == 1
    told = {prior.event_id for answer in answers for prior in answer.priors.values()}
    assert told == {winners[0].event.id}
    assert (await store.counts())[State.PENDING] == 1


async def test_repeating_a_batch_whose_keys_were_used_before_names_the_same_priors(store):
    lane = await a_lane_in(store)
    await accepted(store, a_publication(lane, idempotency_key="used"))
    batch = [a_publication(lane, idempotency_key="used"), a_publication(lane, idempotency_key="new")]
    first = await accepted(store, *batch)
    repeated = msgspec.structs.replace(first, repeats=frozenset({batch[1].event.id}))
    assert await accepted(store, *batch) == repeated
