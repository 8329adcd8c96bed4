"""Alerts are fired and resolved once each, listed, and pruned; what may raise one is found."""

import asyncio
import sqlite3

import msgspec
import psycopg
import pytest

from factories import NOW, a_note, a_settlement, an_alert, an_attempt
from hookline.ids import first_at
from hookline.model import OWN_ACCOUNT, AlertKind, Circuit, CircuitState, Outcome, State
from hookline.store.contract import AlertFilter, LatencyDay
from hookline.store.contract.measuring.alerts import AlertChanges
from hookline.store.postgres.store import PostgresStore
from scenes import a_death, a_lane_in, a_worker_in, an_endpoint_in, owned_by, published

pytestmark = pytest.mark.anyio

HOUR = 3_600.0


def announcements(store):
    """What is to be published, as another part of hookline reads it."""
    asked = "SELECT kind, account, subject FROM announcements ORDER BY n"
    if isinstance(store, PostgresStore):
        with psycopg.connect(store._url, options="-c search_path=hookline") as connection:
            return [(kind, account, id.bytes) for kind, account, id in connection.execute(asked).fetchall()]
    with sqlite3.connect(store._path) as connection:
        return connection.execute(asked).fetchall()


async def fired(store, *alerts, **fields):
    return (await store.write_alerts(AlertChanges(fire=alerts), now=NOW, **fields)).fire


async def resolved(store, *ids, at=NOW + 60, **fields):
    return (await store.write_alerts(AlertChanges(resolve=ids), now=at, **fields)).resolve


async def listed(store, *, after=None, limit=100, **chosen):
    return await store.list_alerts(AlertFilter(**chosen), after=after, limit=limit)


async def test_an_alert_is_kept_as_it_was_fired_until_it_is_resolved(store):
    endpoint = await a_lane_in(store)
    alert = an_alert(kind=AlertKind.CIRCUIT_OPEN, endpoint_id=endpoint, value=None, threshold=None)
    whole = an_alert(kind=AlertKind.QUEUE_GROWING, subject="", account=None)
    assert await fired(store, alert, whole) == (alert, whole)
    assert await store.firing_alerts() == [alert, whole]
    assert await resolved(store, alert.id) == (alert.id,)
    assert await store.firing_alerts() == [whole]
    assert await listed(store) == [whole, msgspec.structs.replace(alert, resolved_at=NOW + 60)]


async def test_alerts_are_found_by_id_whether_they_fire_or_not(store):
    first, second, third = an_alert(), an_alert(subject="b"), an_alert(subject="c")
    await fired(store, first, second, third)
    await resolved(store, second.id)
    found = await store.alerts_by_id([first.id, second.id, bytes(16)])
    assert sorted(found, key=lambda each: each.id) == sorted(
        [first, msgspec.structs.replace(second, resolved_at=NOW + 60)], key=lambda each: each.id
    )
    assert await store.alerts_by_id([]) == []


async def test_a_second_one_of_the_same_kind_and_subject_does_not_fire_until_the_first_is_resolved(store):
    first, again, later = an_alert(), an_alert(since=NOW + 60), an_alert(since=NOW + 120)
    other = an_alert(subject="other")
    await fired(store, first)
    assert await fired(store, again, other) == (other,)
    assert await store.firing_alerts() == [first, other]
    await resolved(store, first.id)
    assert await fired(store, later) == (later,)


async def test_each_change_is_announced_in_its_commit_and_no_repeat_is(store):
    alert = an_alert()
    await fired(store, alert, announce=True)
    assert await fired(store, alert, announce=True) == ()
    await resolved(store, alert.id, announce=True)
    assert await resolved(store, alert.id, announce=True) == ()
    assert announcements(store) == [("alert.fired", "acme", alert.id), ("alert.resolved", "acme", alert.id)]
    await fired(store, an_alert())
    assert len(announcements(store)) == 2, "nothing is announced unless it was asked for"


async def test_two_evaluators_at_once_fire_and_resolve_each_of_fifty_once(store, second_store):
    subjects = [f"account-{n}" for n in range(50)]
    batches = [tuple(an_alert(subject=name) for name in order) for order in (subjects, subjects[::-1])]
    done = await asyncio.gather(
        *(
            fired(each, *batch, announce=True)
            for each, batch in zip((store, second_store), batches, strict=True)
        )
    )
    assert sorted(alert.subject for part in done for alert in part) == sorted(subjects)
    ids = [alert.id for alert in await store.firing_alerts()]
    assert len(ids) == 50
    done = await asyncio.gather(
        resolved(store, *ids, announce=True), resolved(second_store, *ids[::-1], announce=True)
    )
    assert sorted(id for part in done for id in part) == sorted(ids)
    kinds = [kind for kind, _, _ in announcements(store)]
    assert sorted(kinds) == ["alert.fired"] * 50 + ["alert.resolved"] * 50


async def test_clear_looks_are_noted_while_it_fires(store):
    alert = an_alert()
    await fired(store, alert)
    for number in (1, 0, 1):
        await store.write_alerts(AlertChanges(looks=((alert.id, number),)), now=NOW)
        assert [each.clear_looks for each in await store.firing_alerts()] == [number]


async def test_alerts_are_listed_newest_first_page_by_page_and_by_what_is_asked(store):
    endpoint = await a_lane_in(store)
    alerts = [
        an_alert(),
        an_alert(subject="", account=None, kind=AlertKind.OLDEST_DUE),
        an_alert(subject=endpoint.hex(), endpoint_id=endpoint, kind=AlertKind.CIRCUIT_OPEN),
        an_alert(subject="default", account="default"),
    ]
    await fired(store, *alerts)
    await resolved(store, alerts[0].id)
    ids = [each.id for each in alerts]
    assert [each.id for each in await listed(store)] == ids[::-1]
    assert [each.id for each in await listed(store, limit=2)] == [ids[3], ids[2]]
    assert [each.id for each in await listed(store, after=ids[2], limit=2)] == [ids[1], ids[0]]
    for chosen, expected in (
        ({"is_firing": True}, [3, 2, 1]),
        ({"is_firing": False}, [0]),
        ({"kind": AlertKind.DEAD_LETTERS}, [3, 0]),
        ({"account": "acme"}, [2, 0]),
        ({"endpoint_id": endpoint}, [2]),
        ({"account": "nobody"}, []),
    ):
        assert [each.id for each in await listed(store, **chosen)] == [ids[n] for n in expected], chosen


async def test_only_alerts_that_were_resolved_long_ago_are_pruned(store):
    alerts = [an_alert(subject=str(n)) for n in range(4)]
    await fired(store, *alerts)
    for n, alert in enumerate(alerts[:3]):
        await resolved(store, alert.id, at=NOW + n)
    assert await store.prune_alerts(resolved_before=NOW + 2, limit=1) == 1
    assert await store.prune_alerts(resolved_before=NOW + 2, limit=10) == 1
    assert [each.subject for each in await listed(store)] == ["3", "2"]


async def test_one_process_has_the_turn(store, second_store):
    asked = [
        each.take_alert_turn(now=NOW, next_at=NOW + 60) for each in (store, second_store, store, second_store)
    ]
    assert sum(await asyncio.gather(*asked)) == 1
    assert not await second_store.take_alert_turn(now=NOW + 59, next_at=NOW + 120)
    assert await second_store.take_alert_turn(now=NOW + 60, next_at=NOW + 120)


async def facts(store, kind, *, now=NOW, **fields):
    asked = {
        "dead_above": 1,
        "pending_before": now - HOUR,
        "slow_above": 2.0,
        "slow_since": now - 24 * HOUR,
        "attempts": 20,
    }
    found = await store.alert_facts(**(asked | fields), now=now)
    return [(each.account, each.endpoint_id, each.value) for each in found if each.kind is kind]


async def test_dead_letters_are_added_up_by_account(store):
    worker = await a_worker_in(store)
    for account, number in (("acme", 1), ("acme", 2), ("few", 1), (OWN_ACCOUNT, 5)):
        lane = await owned_by(store, worker, await a_lane_in(store, account=account))
        for _ in range(number):
            delivery = await published(store, lane.endpoint_id)
            await store.settle(worker, [a_death(lane, delivery)], now=NOW)
    await store.look(now=NOW)
    assert await facts(store, AlertKind.DEAD_LETTERS) == [("acme", None, 3)]
    assert await facts(store, AlertKind.DEAD_LETTERS, dead_above=3) == []


async def test_the_oldest_due_delivery_is_found_and_those_held_back_are_not(store):
    own, held, late, later = [
        await a_lane_in(store, account=account) for account in (OWN_ACCOUNT, "acme", "acme", "default")
    ]
    assert await facts(store, AlertKind.OLDEST_DUE) == []
    for n, lane in enumerate((own, held, late, later)):
        await published(store, lane, now=NOW + n)
    await store.look(now=NOW + 10, held=[held])
    assert await facts(store, AlertKind.OLDEST_DUE) == [("acme", late, NOW + 2)]


async def test_slow_endpoints_are_found_by_their_last_day(store):
    lanes = [await a_lane_in(store, account=account) for account in ("acme",) * 4 + (OWN_ACCOUNT,)]
    slow, fast, seldom, stale, own = lanes
    days = [(slow, 2.1, 20, NOW), (fast, 2.0, 20, NOW), (seldom, 9.0, 19, NOW), (own, 9.0, 20, NOW)]
    days.append((stale, 9.0, 20, NOW - 25 * HOUR))
    await store.write_latency_days(
        [
            LatencyDay(endpoint_id=id, as_of=at, attempts=attempts, accepted=1, p50=1.0, p95=p95, p99=p95)
            for id, p95, attempts, at in days
        ]
    )
    assert await facts(store, AlertKind.ENDPOINT_SLOW) == [("acme", slow, 2.1)]


async def test_circuits_that_are_not_closed_are_found_with_their_reason(store):
    worker = await a_worker_in(store)
    expected = []
    for account, state, fields in (
        ("acme", CircuitState.OPEN, {}),
        ("acme", CircuitState.HALF_OPEN, {}),
        ("acme", CircuitState.CLOSED, {}),
        ("acme", CircuitState.OPEN, {"circuit": None}),
        (OWN_ACCOUNT, CircuitState.OPEN, {}),
    ):
        lane = await owned_by(store, worker, await a_lane_in(store, account=account, **fields))
        note = a_note(lane, circuit=Circuit(state=state, reason="5 failures in a row"))
        await store.note(worker, [note], now=NOW)
        if account == "acme" and state is not CircuitState.CLOSED and not fields:
            expected.append((account, lane.endpoint_id, None))
    assert sorted(await facts(store, AlertKind.CIRCUIT_OPEN)) == sorted(expected)
    found = await store.alert_facts(
        dead_above=0, pending_before=0, slow_above=0, slow_since=0, attempts=0, now=NOW
    )
    assert {each.detail for each in found} == {"5 failures in a row"}


async def test_endpoints_that_hookline_disabled_are_found_and_those_that_people_disabled_are_not(store):
    gone = await an_endpoint_in(store, account="acme", enabled=False, disabled_reason="It answered 410.")
    await an_endpoint_in(store, account="acme", enabled=False)
    await an_endpoint_in(store, account=OWN_ACCOUNT, enabled=False, disabled_reason="It answered 410.")
    assert await facts(store, AlertKind.ENDPOINT_DISABLED) == [("acme", gone.id, None)]


async def test_endpoints_with_old_deliveries_are_found_unless_something_holds_them_back(store):
    worker = await a_worker_in(store)
    expected = None
    for fields, note in (
        ({"account": "acme"}, {}),
        ({"account": OWN_ACCOUNT}, {}),
        ({"paused": True}, {}),
        ({"enabled": False}, {}),
        ({}, {"hold_until": NOW + 20 * HOUR}),
        ({}, {"circuit": Circuit(state=CircuitState.OPEN)}),
    ):
        endpoint = await an_endpoint_in(store, **fields)
        lane = endpoint.id
        await published(store, lane)
        if note:
            await store.note(worker, [a_note(await owned_by(store, worker, lane), **note)], now=NOW)
        expected = expected or ("acme", lane)
    await store.look(now=NOW)
    # Ids are made by the machine's clock, which is ahead of NOW.
    found = await facts(store, AlertKind.STUCK, pending_before=NOW + 10_000 * 24 * HOUR, now=NOW + HOUR)
    assert [each[:2] for each in found] == [expected]
    assert await facts(store, AlertKind.STUCK, pending_before=NOW - HOUR) == []


async def test_a_delivery_is_stuck_by_when_it_was_due_or_first_tried(store):
    worker = await a_worker_in(store)
    never, tried, scheduled, replayed = lanes = [await a_lane_in(store) for _ in range(4)]
    old = {"id": first_at(NOW - 100 * HOUR)}
    made = iter(range(1, 9))

    async def a_delivery(lane, **fields):
        id = (int.from_bytes(old["id"]) + (next(made) << 20)).to_bytes(16)
        return await published(store, lane, now=NOW - 100 * HOUR, id=id, **fields)

    await a_delivery(never)
    taken = await owned_by(store, worker, tried)
    delivery = await a_delivery(tried)
    attempt = an_attempt(delivery, at=NOW - 50 * HOUR, outcome=Outcome.TRANSIENT, status=500)
    retried = a_settlement(
        delivery, tried, epoch=taken.epoch, attempt=attempt, state=State.PENDING, due_at=NOW + HOUR
    )
    await store.settle(worker, [retried], now=NOW - 50 * HOUR)
    await a_delivery(scheduled, deliver_at=NOW + HOUR)
    taken = await owned_by(store, worker, replayed)
    delivery = await a_delivery(replayed)
    await store.settle(worker, [a_death(taken, delivery)], now=NOW - 90 * HOUR)
    await store.redrive(delivery, now=NOW)
    before = [(lane, NOW - 20 * HOUR) for lane in lanes]
    assert await store.stuck_since(before) == sorted([(never, NOW - 100 * HOUR), (tried, NOW - 50 * HOUR)])
    assert await store.stuck_since([(tried, NOW - 50 * HOUR)]) == []
    assert await store.stuck_since([]) == []
