"""Which of an event's deliveries a replay by event sends again."""

import pytest

from factories import NOW, a_publication, ids
from hookline.ids import delivery_of
from hookline.model import Queue, State
from hookline.store.contract import Change
from scenes import accepted, an_owned_lane, died, settled

pytestmark = pytest.mark.anyio


@pytest.fixture
async def event(store):
    """An event with a delivery in each state (and an unrelated one): its id, and the endpoints by state."""
    lanes = {state: await an_owned_lane(store) for state in State}
    publication = a_publication(*(lane.endpoint_id for _, lane in lanes.values()))
    neighbour = a_publication(*(lane.endpoint_id for _, lane in lanes.values()))
    await accepted(store, publication, neighbour)
    for published in (publication, neighbour):
        for ordinal, (state, (worker, lane)) in enumerate(lanes.items()):
            delivery = delivery_of(published.event.id, ordinal)
            if state is State.DELIVERED:
                await settled(store, worker, lane, delivery)
            elif state is State.DEAD:
                await died(store, worker, lane, delivery)
            elif state is State.CANCELLED:
                await store.cancel(delivery, now=NOW)
    return publication.event.id, {state: lane.endpoint_id for state, (_, lane) in lanes.items()}


async def states_of(store, event):
    return [(await store.delivery(delivery_of(event, n))).state for n in range(4)]


@pytest.mark.parametrize(
    "asked", [(state,) for state in State] + [(State.DEAD, State.CANCELLED), tuple(State), ()]
)
async def test_those_in_the_states_asked_for_start_over(store, event, asked):
    id, lanes = event
    seen = (await store.catalogue()).n
    moved = [state for state in State if state in asked and state is not State.PENDING]
    found = await store.redrive_event(id, endpoint=None, states=asked, now=NOW + 2)
    ordinals = {state: n for n, state in enumerate(State)}
    assert found == [(delivery_of(id, ordinals[state]), lanes[state]) for state in moved]
    for delivery, _ in found:
        now = await store.delivery(delivery)
        assert (now.state, now.queue, now.due_at) == (State.PENDING, Queue.TIMED, NOW + 2)
        assert (now.replays, now.attempts, now.reason, now.done_at) == (1, 0, None, None)
    rest = [State.PENDING if state in moved else state for state in State]
    assert await states_of(store, id) == rest
    changes = (await store.pulse(seen=seen)).changes
    assert sorted(change.endpoint_id for change in changes) == sorted(lanes[state] for state in moved)
    assert changes == tuple(Change(n, c.endpoint_id, "deliveries") for n, c in enumerate(changes, seen + 1))


async def test_one_endpoint_alone(store, event):
    id, lanes = event
    found = await store.redrive_event(id, endpoint=lanes[State.DEAD], states=tuple(State), now=NOW)
    assert [lane for _, lane in found] == [lanes[State.DEAD]]
    assert await store.redrive_event(id, endpoint=lanes[State.DEAD], states=tuple(State), now=NOW) == []
    assert await store.redrive_event(id, endpoint=ids.endpoint(), states=tuple(State), now=NOW) == []


async def test_a_dead_one_keeps_its_last_death(store, event):
    id, _ = event
    [(delivery, _)] = await store.redrive_event(id, endpoint=None, states=[State.DEAD], now=NOW + 2)
    assert (await store.delivery(delivery)).last_death.at == NOW


async def test_an_unknown_event_has_nothing_to_send(store, event):
    seen = (await store.catalogue()).n
    assert await store.redrive_event(ids.event(), endpoint=None, states=tuple(State), now=NOW) == []
    assert (await store.pulse(seen=seen)).changes == ()
