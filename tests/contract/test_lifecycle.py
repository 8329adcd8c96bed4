"""The stores allow exactly the transitions that the rules allow."""

import itertools

import pytest

from factories import NOW, a_settlement, an_attempt, ids
from hookline.errors import NotFound, WrongState
from hookline.ids import delivery_of
from hookline.model import Death, Outcome, Queue, Reason, State
from hookline.rules.lifecycle import Verb, after
from hookline.store.contract import Verdict
from scenes import an_owned_lane, died, in_state, published

pytestmark = pytest.mark.anyio

SETTLES = {
    Verb.DELIVER: (State.DELIVERED, None),
    Verb.RETRY_LATER: (State.PENDING, None),
    Verb.BURY: (State.DEAD, Reason.EXHAUSTED),
}


async def is_done(store, worker, lane, delivery, verb):
    """Run the verb; returns whether the store allowed it."""
    if verb in SETTLES:
        found = await store.delivery(delivery)
        state, reason = SETTLES[verb]
        attempt = an_attempt(delivery, number=found.attempts + 1, replays=found.replays)
        settlement = a_settlement(
            delivery, lane.endpoint_id, epoch=lane.epoch, attempt=attempt, state=state, reason=reason
        )
        return await store.settle(worker, [settlement], now=NOW + 1) == [Verdict.APPLIED]
    try:
        return await getattr(store, verb)(delivery, now=NOW + 1) == lane.endpoint_id
    except WrongState as refusal:
        return refusal.state != (await store.delivery(delivery)).state


@pytest.mark.parametrize(("state", "verb"), list(itertools.product(State, Verb)))
async def test_every_verb_in_every_state_does_what_the_rules_say(store, state, verb):
    worker, lane, delivery = await in_state(store, state)
    before = await store.delivery(delivery)
    assert before.state is state
    expected = after(state, verb)
    assert await is_done(store, worker, lane, delivery, verb) == (expected is not None)
    found = await store.delivery(delivery)
    if expected is None:
        assert found == before
    else:
        assert found.state is expected


@pytest.mark.parametrize("verb", [Verb.RETRY, Verb.CANCEL, Verb.REDRIVE, Verb.DISCARD])
async def test_a_delivery_that_does_not_exist_is_not_found(store, verb):
    with pytest.raises(NotFound):
        await getattr(store, verb)(delivery_of(ids.event(), 0), now=NOW)


async def test_a_retried_delivery_is_due_now_and_its_count_goes_on(store):
    worker, lane = await an_owned_lane(store)
    id = await published(store, lane.endpoint_id)
    failed = a_settlement(
        id,
        lane.endpoint_id,
        epoch=lane.epoch,
        attempt=an_attempt(id, outcome=Outcome.TRANSIENT, status=500),
        state=State.PENDING,
        due_at=NOW + 600,
    )
    await store.settle(worker, [failed], now=NOW)
    await store.retry(id, now=NOW + 5)
    found = await store.delivery(id)
    assert (found.due_at, found.attempts, found.replays, found.queue) == (NOW + 5, 1, 0, Queue.TIMED)


async def test_a_scheduled_delivery_can_be_retried_before_its_time(store):
    _, lane = await an_owned_lane(store)
    id = await published(store, lane.endpoint_id, deliver_at=NOW + 600)
    await store.retry(id, now=NOW + 5)
    assert (await store.delivery(id)).due_at == NOW + 5


async def test_a_cancelled_delivery_says_when_and_why(store):
    _, _, id = await in_state(store, State.PENDING)
    await store.cancel(id, now=NOW + 2)
    found = await store.delivery(id)
    assert (found.done_at, found.reason) == (NOW + 2, Reason.CANCELLED)


async def test_a_discarded_dead_letter_says_so(store):
    _, _, id = await in_state(store, State.DEAD)
    await store.discard(id, now=NOW + 2)
    found = await store.delivery(id)
    assert (found.done_at, found.reason) == (NOW + 2, Reason.DISCARDED)


@pytest.mark.parametrize("state", [State.DELIVERED, State.CANCELLED])
async def test_a_redriven_delivery_starts_over(store, state):
    _, _, id = await in_state(store, state)
    seq = (await store.delivery(id)).seq
    await store.redrive(id, now=NOW + 2)
    found = await store.delivery(id)
    assert (found.state, found.queue, found.attempts, found.replays) == (State.PENDING, Queue.TIMED, 0, 1)
    assert (found.due_at, found.done_at, found.reason, found.seq) == (NOW + 2, None, None, seq)
    assert found.last_death is None


async def test_a_redriven_dead_letter_keeps_its_last_death_also_when_it_is_delivered(store):
    worker, lane, id = await in_state(store, State.PENDING)
    await died(store, worker, lane, id, now=NOW + 3)
    assert (await store.delivery(id)).last_death is None
    await store.redrive(id, now=NOW + 4)
    death = Death(Reason.REJECTED, NOW + 3, 1)
    assert (await store.delivery(id)).last_death == death
    delivered = a_settlement(id, lane.endpoint_id, epoch=lane.epoch, attempt=an_attempt(id, replays=1))
    await store.settle(worker, [delivered], now=NOW)
    await store.redrive(id, now=NOW + 5)
    found = await store.delivery(id)
    assert (found.last_death, found.replays) == (death, 2)
