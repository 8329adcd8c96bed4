"""Brings a store into the state that a test begins with."""

from typing import Any

from factories import NOW, a_note, a_publication, a_settlement, a_worker, an_attempt, an_endpoint
from hookline.ids import delivery_of
from hookline.model import DeliveryId, Endpoint, EndpointId, Outcome, Reason, State, WorkerId
from hookline.store.contract import Acceptance, EventFanout, Release, Settlement, Store, Taken, Verdict, Want


async def an_endpoint_in(store: Store, **fields: Any) -> Endpoint:
    endpoint = an_endpoint(**fields)
    await store.create_endpoint(endpoint, now=NOW)
    return endpoint


async def a_lane_in(store: Store, **fields: Any) -> EndpointId:
    return (await an_endpoint_in(store, **fields)).id


async def a_worker_in(store: Store, **fields: Any) -> WorkerId:
    worker = a_worker(**fields)
    await store.register(worker)
    return worker.id


async def accepted(store: Store, *publications: EventFanout, now: float = NOW) -> Acceptance:
    catalogue = await store.catalogue()
    acceptance = await store.accept(publications, catalogue=catalogue.n, now=now)
    assert not acceptance.stale
    return acceptance


async def published(store: Store, lane: EndpointId, *, now: float = NOW, **fields: Any) -> DeliveryId:
    """The delivery of a new event to this one lane."""
    publication = a_publication(lane, **fields)
    await accepted(store, publication, now=now)
    return delivery_of(publication.event.id, 0)


async def owned_by(store: Store, worker: WorkerId, lane: EndpointId, *, now: float = NOW) -> Taken:
    [taken] = await store.take_these(worker, [lane], now=now)
    return taken


async def an_owned_lane(store: Store, **fields: Any) -> tuple[WorkerId, Taken]:
    worker = await a_worker_in(store)
    return worker, await owned_by(store, worker, await a_lane_in(store, **fields))


async def let_go(store: Store, worker: WorkerId, lane: Taken, **fields: Any) -> None:
    release = Release(lane.endpoint_id, lane.epoch, fields.pop("wake_at", float("inf")), **fields)
    assert await store.release(worker, [release], now=NOW) == [lane.endpoint_id]


async def a_lane_held_until(store: Store, until: float, **fields: Any) -> EndpointId:
    """A free lane that sleeps and that its last owner held back."""
    worker, lane = await an_owned_lane(store, **fields)
    assert await store.note(worker, [a_note(lane, hold_until=until)], now=NOW) == [lane.endpoint_id]
    await let_go(store, worker, lane)
    return lane.endpoint_id


async def wakes_at(store: Store, lane: EndpointId) -> float:
    """When a free lane would be found; found out by taking it away for good."""
    finder = await a_worker_in(store)
    found = await store.take(finder, limit=1_000_000, now=float("inf"))
    return next((taken.woke_at for taken in found if taken.endpoint_id == lane), float("inf"))


async def loaded_ids(store: Store, lane: EndpointId, *, now: float = NOW, **want: Any) -> list[DeliveryId]:
    wanted = Want(lane, want.pop("ready", 100), want.pop("timed", 100), **want)
    return [delivery.id for delivery in await store.load([wanted], known=[], now=now)]


async def in_state(store: Store, state: State) -> tuple[WorkerId, Taken, DeliveryId]:
    """A delivery in this state, in a lane that a worker owns."""
    worker, lane = await an_owned_lane(store)
    delivery = await published(store, lane.endpoint_id)
    match state:
        case State.PENDING:
            pass
        case State.CANCELLED:
            await store.cancel(delivery, now=NOW)
        case State.DELIVERED:
            await settled(store, worker, lane, delivery)
        case State.DEAD:
            await died(store, worker, lane, delivery)
    return worker, lane, delivery


async def settled(store: Store, worker: WorkerId, lane: Taken, delivery: DeliveryId) -> None:
    settlement = a_settlement(delivery, lane.endpoint_id, epoch=lane.epoch)
    assert await store.settle(worker, [settlement], now=NOW) == [Verdict.APPLIED]


async def died(
    store: Store,
    worker: WorkerId,
    lane: Taken,
    delivery: DeliveryId,
    *,
    now: float = NOW,
    number: int = 1,
    replays: int = 0,
    reason: Reason = Reason.REJECTED,
) -> None:
    settlement = a_death(lane, delivery, number=number, replays=replays, reason=reason)
    assert await store.settle(worker, [settlement], now=now) == [Verdict.APPLIED]


def a_death(
    lane: Taken, delivery: DeliveryId, *, number: int = 1, replays: int = 0, reason: Reason = Reason.REJECTED
) -> Settlement:
    return a_settlement(
        delivery,
        lane.endpoint_id,
        epoch=lane.epoch,
        attempt=an_attempt(delivery, number=number, replays=replays, outcome=Outcome.REJECTED, status=404),
        state=State.DEAD,
        reason=reason,
    )


async def dead_letters(store: Store, count: int, **fields: Any) -> tuple[WorkerId, Taken, list[DeliveryId]]:
    """Dead letters of one lane, by id, dead since NOW."""
    worker, lane = await an_owned_lane(store)
    publications = [a_publication(lane.endpoint_id, **fields) for _ in range(count)]
    await accepted(store, *publications)
    found = [delivery_of(publication.event.id, 0) for publication in publications]
    deaths = [a_death(lane, delivery) for delivery in found]
    assert set(await store.settle(worker, deaths, now=NOW)) == {Verdict.APPLIED}
    return worker, lane, sorted(found)
