"""What happens and that it is announced are one commit; announcements become events exactly once."""

import asyncio
import sqlite3
from contextlib import closing
from functools import partial

import msgspec
import psycopg
import pytest

from factories import NOW, a_note, a_publication, a_settlement, an_attempt
from hookline.model import CLOSED, OWN_ACCOUNT, Circuit, CircuitState, Outcome, Reason, State
from hookline.store.contract import NotificationRow, Suspect, Verdict
from hookline.store.contract.events import EventFilter
from hookline.store.postgres.measuring.announcements import announce as postgres_announce
from hookline.store.sqlite.measuring.announcements import announce as sqlite_announce
from hookline.store.sqlite.store import SqliteStore
from refusing import refuse, relent
from scenes import (
    a_death,
    a_lane_in,
    a_worker_in,
    an_endpoint_in,
    an_owned_lane,
    let_go,
    owned_by,
    published,
)

pytestmark = pytest.mark.anyio

LATER = NOW + 60
OPEN = Circuit(state=CircuitState.OPEN, failures=5, reason="5 failures in a row")


async def told(store):
    """What is announced, by number."""
    return [(each.kind, each.account, each.subject) for each in await store.announcements(limit=1_000)]


async def a_dying(store, *, account="default", **fields):
    """A settlement that ends a delivery of a lane, with its worker."""
    worker, lane = await an_owned_lane(store, account=account)
    delivery = await published(store, lane.endpoint_id, account=account)
    return worker, delivery, a_death(lane, delivery, **fields)


async def changed(store, endpoint, *, announce=True, **fields):
    [before] = await store.endpoints_by_id([endpoint.id])
    after = msgspec.structs.replace(before, **fields, updated_at=before.updated_at + 1)
    return await store.update_endpoint(after, was=before.updated_at, now=LATER, announce=announce)


async def stored_events(store):
    found = await store.list_events(EventFilter(account=OWN_ACCOUNT), after=None, limit=200)
    return sorted(each.idempotency_key for each in found)


def notifications(store):
    statement = "SELECT channel, recipient, kind, account, detail FROM {}notifications ORDER BY n"
    if isinstance(store, SqliteStore):
        with closing(sqlite3.connect(store._path)) as file:
            return file.execute(statement.format("")).fetchall()
    with psycopg.connect(store._url) as session:
        return session.execute(statement.format("hookline.")).fetchall()


# --- deaths ---


async def test_a_death_is_announced_with_its_time_and_reason(store):
    worker, delivery, death = await a_dying(store, account="acme")
    assert await store.settle(worker, [death], now=LATER, announce=True) == [Verdict.APPLIED]
    [found] = await store.announcements(limit=10)
    assert (found.kind, found.account, found.subject) == ("delivery.dead", "acme", delivery)
    assert (found.detail, found.at) == ("rejected", LATER)


async def test_while_nobody_listens_nothing_is_announced(store):
    worker, delivery, death = await a_dying(store)
    await store.settle(worker, [death], now=LATER)
    lane = await owned_by(store, worker, await a_lane_in(store))
    await store.note(worker, [a_note(lane, circuit=OPEN)], now=LATER)
    doomed = await published(store, lane.endpoint_id)
    await store.condemn(worker, [Suspect(doomed, lane.endpoint_id, lane.epoch)], now=LATER)
    await changed(store, await an_endpoint_in(store), enabled=False, announce=False)
    assert (await store.delivery(delivery)).state is (await store.delivery(doomed)).state is State.DEAD
    assert await told(store) == []


async def test_only_the_dead_of_a_batch_are_announced(store):
    worker, lane = await an_owned_lane(store)
    deliveries = [await published(store, lane.endpoint_id) for _ in range(7)]
    batch = [
        a_death(lane, delivery)
        if n % 3 == 0
        else a_settlement(delivery, lane.endpoint_id, epoch=lane.epoch)
        if n % 3 == 1
        else a_settlement(
            delivery,
            lane.endpoint_id,
            epoch=lane.epoch,
            attempt=an_attempt(delivery, outcome=Outcome.TRANSIENT, status=500),
            state=State.PENDING,
            due_at=LATER,
        )
        for n, delivery in enumerate(deliveries)
    ]
    assert set(await store.settle(worker, batch, now=LATER, announce=True)) == {Verdict.APPLIED}
    assert sorted(await told(store)) == sorted(
        ("delivery.dead", "default", delivery) for delivery in deliveries[::3]
    )


async def test_a_settle_that_is_repeated_announces_once(store):
    worker, delivery, death = await a_dying(store)
    assert await store.settle(worker, [death], now=LATER, announce=True) == [Verdict.APPLIED]
    assert await store.settle(worker, [death], now=LATER, announce=True) == [Verdict.REPEATED]
    assert await told(store) == [("delivery.dead", "default", delivery)]


async def test_one_that_comes_too_late_announces_nothing(store):
    worker, lane = await an_owned_lane(store)
    delivery = await published(store, lane.endpoint_id)
    other = await published(store, lane.endpoint_id)
    await let_go(store, worker, lane)
    again = await owned_by(store, worker, lane.endpoint_id)
    batch = [a_death(lane, delivery), a_death(again, other)]
    assert await store.settle(worker, batch, now=LATER, announce=True) == [Verdict.LATE, Verdict.APPLIED]
    assert await told(store) == [("delivery.dead", "default", other)]


async def test_a_second_death_is_announced_again(store):
    worker, lane = await an_owned_lane(store)
    delivery = await published(store, lane.endpoint_id)
    await store.settle(worker, [a_death(lane, delivery)], now=LATER, announce=True)
    await store.redrive(delivery, now=LATER)
    await store.settle(worker, [a_death(lane, delivery, replays=1)], now=LATER, announce=True)
    assert await told(store) == [("delivery.dead", "default", delivery)] * 2


async def test_a_death_that_cannot_be_announced_does_not_happen(store):
    worker, delivery, death = await a_dying(store)
    await refuse(store, "announcements", "kind = 'delivery.dead'")
    with pytest.raises(Exception, match=r"refuse|not this one|cannot hold|does not accept"):
        await store.settle(worker, [death], now=LATER, announce=True)
    assert (await store.delivery(delivery)).state is State.PENDING
    assert await store.attempts(delivery) == []
    await relent(store, "announcements")
    assert await store.settle(worker, [death], now=LATER, announce=True) == [Verdict.APPLIED]
    assert await told(store) == [("delivery.dead", "default", delivery)]


async def test_deliveries_of_own_events_announce_nothing(store):
    worker, _, death = await a_dying(store, account=OWN_ACCOUNT)
    gone = msgspec.structs.replace(death, gone=NOW, reason=Reason.GONE)
    assert await store.settle(worker, [gone], now=LATER, announce=True) == [Verdict.APPLIED]
    [endpoint] = await store.endpoints_by_id([death.endpoint_id])
    assert not endpoint.enabled
    lane = await owned_by(store, worker, await a_lane_in(store, account=OWN_ACCOUNT))
    await store.note(worker, [a_note(lane, circuit=OPEN)], now=LATER, announce=True)
    doomed = await published(store, lane.endpoint_id, account=OWN_ACCOUNT)
    suspects = [Suspect(doomed, lane.endpoint_id, lane.epoch)]
    assert await store.condemn(worker, suspects, now=LATER, announce=True) == [doomed]
    assert await changed(store, await an_endpoint_in(store, account=OWN_ACCOUNT), enabled=False)
    assert await told(store) == []


async def test_a_condemned_delivery_is_announced_once(store):
    worker, lane = await an_owned_lane(store)
    delivery, other = [await published(store, lane.endpoint_id) for _ in range(2)]
    suspects = [Suspect(each, lane.endpoint_id, lane.epoch) for each in (delivery, other)]
    for _ in range(2):
        assert await store.condemn(worker, suspects[:1], now=LATER, announce=True) == [delivery]
    await store.condemn(worker, suspects, now=LATER, announce=True)
    found = await store.announcements(limit=10)
    assert [(each.subject, each.detail) for each in found] == [
        (delivery, "crash_limit"),
        (other, "crash_limit"),
    ]


async def test_one_who_lost_the_lane_condemns_and_announces_nothing(store):
    worker, lane = await an_owned_lane(store)
    delivery = await published(store, lane.endpoint_id)
    await let_go(store, worker, lane)
    suspects = [Suspect(delivery, lane.endpoint_id, lane.epoch)]
    assert await store.condemn(worker, suspects, now=LATER, announce=True) == []
    assert await told(store) == []


# --- endpoints and circuits ---


async def test_an_endpoint_that_is_gone_is_announced_with_the_death_that_found_it(store):
    worker, delivery, death = await a_dying(store, reason=Reason.GONE)
    gone = msgspec.structs.replace(death, gone=NOW)
    assert await store.settle(worker, [gone], now=LATER, announce=True) == [Verdict.APPLIED]
    assert await store.settle(worker, [gone], now=LATER, announce=True) == [Verdict.REPEATED]
    assert sorted(await told(store)) == [
        ("delivery.dead", "default", delivery),
        ("endpoint.disabled", "default", death.endpoint_id),
    ]


async def test_an_endpoint_that_an_operator_disables_is_announced_once(store):
    endpoint = await an_endpoint_in(store, account="acme")
    assert await changed(store, endpoint, description="still enabled")
    assert await told(store) == []
    disabled = msgspec.structs.replace(endpoint, enabled=False, disabled_reason="by hand", updated_at=NOW + 2)
    assert await store.update_endpoint(disabled, was=NOW + 1, now=LATER, announce=True)
    assert not await store.update_endpoint(disabled, was=NOW + 1, now=LATER, announce=True)
    [found] = await store.announcements(limit=10)
    assert (found.kind, found.subject) == ("endpoint.disabled", endpoint.id)
    assert (found.account, found.detail, found.at) == ("acme", "by hand", LATER)


async def test_a_circuit_is_announced_when_it_opens_and_when_it_closes(store):
    """Neither a repeat nor a probe that fails opens it again."""
    worker, lane = await an_owned_lane(store)
    half = msgspec.structs.replace(OPEN, state=CircuitState.HALF_OPEN)
    for circuit in (CLOSED, OPEN, OPEN, half, OPEN, half, CLOSED, CLOSED):
        notes = [a_note(lane, circuit=circuit)]
        assert await store.note(worker, notes, now=LATER, announce=True) == [lane.endpoint_id]
    found = await store.announcements(limit=10)
    assert [(each.kind, each.subject) for each in found] == [
        ("circuit.opened", lane.endpoint_id),
        ("circuit.closed", lane.endpoint_id),
    ]
    assert (found[0].account, found[0].detail, found[0].at) == ("default", OPEN.reason, LATER)


async def test_a_circuit_that_opens_with_a_settlement_is_announced_in_its_commit(store):
    worker, lane = await an_owned_lane(store)
    delivery = await published(store, lane.endpoint_id)
    batch, notes = [a_death(lane, delivery)], [a_note(lane, circuit=OPEN)]
    for _ in range(2):
        await store.settle(worker, batch, notes=notes, now=LATER, announce=True)
    assert sorted(await told(store)) == [
        ("circuit.opened", "default", lane.endpoint_id),
        ("delivery.dead", "default", delivery),
    ]


async def test_one_who_lost_the_lane_announces_no_circuit(store):
    worker, lane = await an_owned_lane(store)
    await let_go(store, worker, lane)
    assert await store.note(worker, [a_note(lane, circuit=OPEN)], now=LATER, announce=True) == []
    assert await told(store) == []


async def test_other_verbs_announce_in_their_own_transaction(store):
    """As verbs about alerts do."""
    fact = {"subject": bytes(16), "detail": "much is dead", "now": LATER}
    for account in ("acme", None, OWN_ACCOUNT):
        if isinstance(store, SqliteStore):
            await store._write(partial(sqlite_announce, kind="alert.fired", account=account, **fact))
        else:
            await store._tasks.transaction(
                partial(postgres_announce, kind="alert.fired", account=account, **fact)
            )
    found = await store.announcements(limit=10)
    assert [(each.kind, each.account, each.subject) for each in found] == [
        ("alert.fired", "acme", bytes(16)),
        ("alert.fired", None, bytes(16)),
    ]
    assert (found[0].detail, found[0].at) == ("much is dead", LATER)


# --- publishing ---


async def announced(store, count):
    """So many announcements of deaths; their numbers, and the events that they are to become."""
    worker, lane = await an_owned_lane(store)
    deliveries = [await published(store, lane.endpoint_id) for _ in range(count)]
    deaths = [a_death(lane, delivery) for delivery in deliveries]
    await store.settle(worker, deaths, now=LATER, announce=True)
    listener = await a_lane_in(store, account=OWN_ACCOUNT)
    numbers = [each.n for each in await store.announcements(limit=count)]
    return listener, numbers, [an_own_event(listener, n) for n in numbers]


def an_own_event(listener, n):
    return a_publication(
        listener, account=OWN_ACCOUNT, type="delivery.dead", idempotency_key=f"announcement:{n}"
    )


async def publish(store, numbers, batch, **fields):
    n = (await store.catalogue()).n
    return await store.publish_announcements(numbers, batch, **{"catalogue": n, "now": LATER} | fields)


async def test_announcements_are_read_by_number_and_deliveries_by_id(store):
    _, numbers, _ = await announced(store, 3)
    found = await store.announcements(limit=2)
    assert [each.n for each in found] == numbers[:2] == sorted(numbers)[:2]
    asked = [each.subject for each in found]
    assert [each.id for each in await store.deliveries_by_id([*asked, bytes(16)])] == sorted(asked)
    assert await store.deliveries_by_id([asked[0]]) == [await store.delivery(asked[0])]
    assert await store.deliveries_by_id([]) == []


async def test_they_become_events_with_deliveries_and_are_gone(store):
    listener, numbers, batch = await announced(store, 3)
    row = NotificationRow(
        channel="email", recipient="a@b.example", kind="dead", account=None, detail="{}", due_at=NOW
    )
    answer = await publish(store, numbers[:2], batch[:2], notifications=[row])
    assert answer is not None
    assert not answer.stale
    assert await stored_events(store) == [f"announcement:{n}" for n in numbers[:2]]
    worker = await a_worker_in(store)
    await owned_by(store, worker, listener)
    assert [each.n for each in await store.announcements(limit=10)] == numbers[2:]
    assert (await store.delivery(batch[0].event.id)).endpoint_id == listener
    assert notifications(store) == [("email", "a@b.example", "dead", None, "{}")]


async def test_what_was_published_is_not_published_again(store):
    """A process that read them before another published them does not write a part of them either."""
    listener, numbers, batch = await announced(store, 2)
    assert await publish(store, numbers[:1], batch[:1]) is not None
    again = [an_own_event(listener, n) for n in numbers]
    assert await publish(store, numbers, again) is None
    assert await stored_events(store) == [f"announcement:{numbers[0]}"]
    assert [each.n for each in await store.announcements(limit=10)] == numbers[1:]


async def test_after_a_change_of_endpoints_they_stay_until_they_are_fanned_out_again(store):
    _, numbers, batch = await announced(store, 1)
    n = (await store.catalogue()).n
    await a_lane_in(store)
    answer = await publish(store, numbers, batch, catalogue=n)
    assert answer is not None
    assert answer.stale
    assert await stored_events(store) == []
    assert [each.n for each in await store.announcements(limit=10)] == numbers


@pytest.mark.parametrize("table", ["notifications", "deliveries"])
async def test_where_a_part_is_refused_nothing_is_published_and_nothing_is_gone(store, table):
    _, numbers, batch = await announced(store, 2)
    row = NotificationRow(
        channel="email", recipient="a@b.example", kind="dead", account=None, detail="{}", due_at=NOW
    )
    await refuse(store, table, "channel = 'email'" if table == "notifications" else "state = 'pending'")
    with pytest.raises(Exception, match=r"refuse|not this one|cannot hold|does not accept"):
        await publish(store, numbers, batch, notifications=[row])
    assert await stored_events(store) == []
    assert [each.n for each in await store.announcements(limit=10)] == numbers


async def test_of_many_who_publish_the_same_at_once_one_does(store, second_store):
    listener, numbers, _ = await announced(store, 40)
    tries = [
        publish(each, numbers, [an_own_event(listener, n) for n in numbers])
        for each in (store, second_store) * 4
    ]
    answers = await asyncio.gather(*tries)
    assert len([answer for answer in answers if answer is not None]) == 1
    assert await stored_events(store) == sorted(f"announcement:{n}" for n in numbers)
    assert await store.announcements(limit=10) == []


async def test_announcements_that_nobody_wanted_are_kept_if_an_endpoint_was_created_meanwhile(store):
    worker, _, death = await a_dying(store)
    await store.settle(worker, [death], now=LATER, announce=True)
    [found] = await store.announcements(limit=10)
    known = (await store.catalogue()).n
    await an_endpoint_in(store, account=OWN_ACCOUNT)
    answer = await store.publish_announcements([found.n], [], catalogue=known, now=LATER)
    assert answer is not None
    assert answer.stale
    assert await store.announcements(limit=10) == [found]
    fresh = (await store.catalogue()).n
    answer = await store.publish_announcements([found.n], [], catalogue=fresh, now=LATER)
    assert answer is not None
    assert not answer.stale
    assert await store.announcements(limit=10) == []
