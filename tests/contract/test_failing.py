"""A process that fails before a verb leaves nothing behind, and one that fails after it leaves all of it.

This covers every verb that writes: a new one fails here until it has its scene.
"""

import sqlite3
from contextlib import closing

import msgspec
import psycopg
import pytest

from factories import (
    NOW,
    a_job,
    a_key,
    a_note,
    a_publication,
    a_refused_row,
    a_session,
    a_settlement,
    a_worker,
    an_alert,
    an_audit_entry,
    an_endpoint,
    an_event_type,
    ids,
)
from hookline import failpoints
from hookline.failpoints import Planted
from hookline.model import OWN_ACCOUNT, Account, EndpointId, SessionKind, State
from hookline.pipeline.measuring.latency_cells import LATENCY_COUNTS, cell_of
from hookline.pipeline.measuring.latency_meter import MeasuredBatch
from hookline.store.contract import (
    LatencyDay,
    Load,
    LookRequest,
    NotificationRow,
    RefusedFilter,
    Release,
    RowPlace,
    SourceRow,
    Store,
    Suspect,
)
from hookline.store.contract.measuring.alerts import AlertChanges
from hookline.store.failpoints import writing_verbs
from hookline.store.sqlite.store import SqliteStore
from into_outbox import publish_rows
from scenes import (
    a_death,
    a_lane_held_until,
    a_lane_in,
    a_worker_in,
    an_endpoint_in,
    an_owned_lane,
    dead_letters,
    in_state,
    published,
)

pytestmark = pytest.mark.anyio

LATER = NOW + 100 * 86_400.0
FAR = NOW + 10_000 * 86_400.0


@pytest.fixture(autouse=True)
def _nothing_planted():
    yield
    failpoints.plant("")


def rows_of(store: Store) -> dict[str, list[str]]:
    """Every row of every table, read from the database itself."""
    if isinstance(store, SqliteStore):
        with closing(sqlite3.connect(store._path)) as connection:
            tables = connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall()
            return {
                t: sorted(map(repr, connection.execute(f"SELECT * FROM {t}").fetchall())) for (t,) in tables
            }
    with psycopg.connect(store._url) as session:
        tables = session.execute("SELECT tablename FROM pg_tables WHERE schemaname = 'hookline'").fetchall()
        return {
            t: sorted(map(repr, session.execute(f"SELECT t::text FROM hookline.{t} t").fetchall()))
            for (t,) in tables
        }


async def a_publish(store):
    publication, n = a_publication(await a_lane_in(store)), (await store.catalogue()).n
    return lambda: store.accept([publication], catalogue=n, now=NOW)


async def a_take(store):
    worker, lane = await a_worker_in(store), await a_lane_in(store)
    await published(store, lane)
    await store.wake([lane], now=NOW)
    return lambda: store.take(worker, limit=1, now=NOW)


async def a_take_these(store):
    worker, lane = await a_worker_in(store), await a_lane_in(store)
    return lambda: store.take_these(worker, [lane], now=NOW)


async def a_settle(store):
    worker, lane, delivery = await in_state(store, State.PENDING)
    settlement = a_settlement(delivery, lane.endpoint_id, epoch=lane.epoch)
    return lambda: store.settle(worker, [settlement], now=NOW)


async def a_note_down(store):
    worker, lane = await an_owned_lane(store)
    return lambda: store.note(worker, [a_note(lane, hold_until=NOW + 5)], now=NOW)


def on_a_suspect(verb):
    async def scene(store):
        worker, lane, delivery = await in_state(store, State.PENDING)
        suspects = [Suspect(delivery, lane.endpoint_id, lane.epoch)]
        return lambda: getattr(store, verb)(worker, suspects, now=NOW)

    return scene


async def a_release(store):
    worker, lane = await an_owned_lane(store)
    return lambda: store.release(worker, [Release(lane.endpoint_id, lane.epoch, NOW)], now=NOW)


async def a_wake(store):
    lane = await a_lane_in(store)
    await published(store, lane)
    return lambda: store.wake([lane], now=NOW)


async def a_register(store):
    worker = a_worker()
    return lambda: store.register(worker)


async def a_beat(store):
    worker = await a_worker_in(store)
    return lambda: store.beat(worker, Load(lanes=1), now=NOW)


async def a_look(store):
    await published(store, await a_lane_in(store))
    return lambda: store.look(now=NOW)


async def a_burial(store):
    worker = await a_worker_in(store)
    return lambda: store.bury(worker, beat=0, now=NOW)


async def a_freeing(store):
    worker, _ = await an_owned_lane(store)
    await store.bury(worker, beat=0, now=NOW)
    return lambda: store.free(worker, now=NOW)


async def a_sweep(store):
    await published(store, await a_lane_in(store))
    return lambda: store.sweep(after=None, now=NOW)


async def a_retirement(store):
    worker = await a_worker_in(store)
    return lambda: store.retire(worker)


async def a_new_endpoint(store):
    endpoint = an_endpoint()
    return lambda: store.create_endpoint(endpoint, now=NOW)


async def a_changed_endpoint(store):
    endpoint = await an_endpoint_in(store)
    changed = msgspec.structs.replace(endpoint, url="https://b.example/", updated_at=NOW + 1)
    return lambda: store.update_endpoint(changed, was=NOW, now=NOW + 1)


async def a_deleted_endpoint(store):
    lane = await a_lane_in(store)
    return lambda: store.delete_endpoint(lane, now=NOW)


async def rows_of_a_deleted_endpoint(store):
    lane = await a_lane_in(store)
    await published(store, lane)
    await store.delete_endpoint(lane, now=NOW)
    return lambda: store.cancel_deleted(limit=10, now=NOW)


async def a_reset(store):
    lane = await a_lane_held_until(store, NOW + 60)
    return lambda: store.reset_circuit(lane, now=NOW)


def on_one(verb, state):
    async def scene(store):
        _, _, delivery = await in_state(store, state)
        return lambda: getattr(store, verb)(delivery, now=NOW)

    return scene


async def a_redriven_event(store):
    publication = a_publication(await a_lane_in(store))
    await store.accept([publication], catalogue=(await store.catalogue()).n, now=NOW)
    await store.cancel(publication.event.id, now=NOW)  # an event's id is its first delivery's
    return lambda: store.redrive_event(publication.event.id, endpoint=None, states=list(State), now=NOW)


async def a_new_job(store):
    job = a_job()
    return lambda: store.create_job(job, now=NOW)


async def a_step_of_a_job(store):
    await dead_letters(store, 2)
    job = await store.create_job(a_job(), now=NOW + 10)
    return lambda: store.advance_job(job.id, limit=1, now=NOW + 10)


async def a_failed_job(store):
    job = await store.create_job(a_job(), now=NOW + 10)
    return lambda: store.fail_job(job.id, reason="it cannot go on", now=NOW + 10)


def with_a_key(verb):
    async def scene(store):
        key = a_key()
        return lambda: getattr(store, verb)(key)

    return scene


async def a_revoked_key(store):
    key = a_key()
    await store.create_key(key)
    return lambda: store.revoke_key(key.id, now=NOW)


def with_a_session(verb, *arguments, **named):
    """What is done with this session, which is there."""

    async def scene(store):
        session = a_session(kind=SessionKind.LINK, visit_s=60.0)
        await store.create_session(session, now=NOW)
        return lambda: getattr(store, verb)(session.digest, *arguments, **named)

    return scene


async def a_new_session(store):
    return lambda: store.create_session(a_session(), now=NOW)


async def sessions_to_end(store):
    session = a_session(key_digest=b"a key that is revoked")
    await store.create_session(session, now=NOW)
    return lambda: store.end_sessions_of(session.key_digest)


async def a_type(store):
    return lambda: store.put_event_type(an_event_type(), now=NOW)


async def a_forgotten_type(store):
    await store.put_event_type(an_event_type(), now=NOW)
    return lambda: store.delete_event_type("order.paid", now=NOW)


async def an_account(store):
    return lambda: store.put_account(Account(id="acme", updated_at=NOW), now=NOW)


async def a_message(store):
    row = NotificationRow(
        channel="email",
        recipient="a@b.example",
        kind="delivery.dead",
        account="acme",
        detail="{}",
        due_at=NOW,
    )
    catalogue = (await store.catalogue()).n
    await store.publish_announcements([], [], notifications=[row], catalogue=catalogue, now=NOW)


async def a_message_to_take(store):
    await a_message(store)
    return lambda: store.take_notifications(channels=["email"], gather="", limit=10, now=NOW, until=NOW + 60)


async def a_message_to_end(store):
    await a_message(store)
    [taken, *_] = await store.take_notifications(channels=["email"], gather="", limit=10, now=NOW, until=NOW)
    return lambda: store.end_notifications([taken.n], [])


async def a_seal(store):
    return lambda: store.mark_sealed("a mark")


async def a_secret(store):
    return lambda: store.installation_secret(bytes(32))


async def a_step_of_pruning(store):
    await in_state(store, State.DELIVERED)
    return lambda: store.prune(done_before=FAR, dead_before=FAR, limit=10)


async def records_to_prune(store):
    for name in ("a.b", "a.c"):
        await store.put_event_type(an_event_type(name=name), now=NOW)
    return lambda: store.prune_records(done_before=LATER, told_before=LATER, limit=10)


async def a_turn(store):
    return lambda: store.take_prune_turn(every=60.0, now=NOW)


async def minutes_to_flush(store):
    worker = await a_worker_in(store)
    cells = [cell_of(EndpointId(worker), NOW // 60 * 60, {7: 1})]
    return lambda: store.flush_latencies(worker, cells, source=10**6, n=0, math=LATENCY_COUNTS, now=NOW)


async def a_log_to_fold(store):
    worker, lane, delivery = await in_state(store, State.PENDING)
    batch = [a_settlement(delivery, lane.endpoint_id, epoch=lane.epoch)]
    log = MeasuredBatch(batch, n=1, minute=NOW // 60 * 60).log
    await store.settle(worker, batch, log=log, now=NOW)
    await store.bury(worker, beat=0, now=NOW)
    return lambda: store.fold_latencies(worker, math=LATENCY_COUNTS, now=NOW)


async def hours_to_add_up(store):
    return lambda: store.roll_latencies(after=None, math=LATENCY_COUNTS, now=NOW, next_at=NOW + 60)


async def days_to_claim(store):
    return lambda: store.claim_latency_days(after=None, limit=5, now=NOW, next_at=NOW + 60)


async def a_day_to_write(store):
    endpoint = EndpointId(ids.endpoint())
    day = LatencyDay(endpoint_id=endpoint, as_of=NOW, attempts=1, accepted=1, p50=1.0, p95=1.0, p99=1.0)
    return lambda: store.write_latency_days([day])


async def announcements_to_publish(store):
    worker, lane, delivery = await in_state(store, State.PENDING)
    await store.settle(worker, [a_death(lane, delivery)], now=NOW, announce=True)
    publication, n = a_publication(account=OWN_ACCOUNT), (await store.catalogue()).n
    [announcement] = await store.announcements(limit=1)
    return lambda: store.publish_announcements([announcement.n], [publication], catalogue=n, now=NOW)


async def a_turn_of_alerts(store):
    return lambda: store.take_alert_turn(now=NOW, next_at=NOW + 60)


async def alerts_to_write(store):
    return lambda: store.write_alerts(AlertChanges(fire=(an_alert(subject="new"),)), now=NOW, announce=True)


async def an_alert_to_prune(store):
    old = an_alert(subject="old")
    await store.write_alerts(AlertChanges(fire=(old,)), now=NOW)
    await store.write_alerts(AlertChanges(resolve=(old.id,)), now=NOW)
    return lambda: store.prune_alerts(resolved_before=NOW + 1, limit=10)


async def an_entry_of_the_trail(store):
    return lambda: store.write_audit(an_audit_entry())


async def an_entry_to_prune(store):
    await store.write_audit(an_audit_entry())
    return lambda: store.prune_audit(before=NOW + 1, limit=10)


async def rows_to_drop(store):
    await publish_rows(store, "a")
    [row] = (await store.look_at_outbox(LookRequest())).rows
    return lambda: store.drop_from_outbox([RowPlace(row.seq, row.id)])


async def a_refusal(store):
    return lambda: store.refuse([a_refused_row(seq=10)])


def on_a_refused_row(verb, **named):
    async def scene(store):
        await store.refuse([a_refused_row(seq=20, code=verb)])
        [row] = await store.refused_rows(RefusedFilter(code=verb), after=None, limit=1)
        return lambda: getattr(store, verb)(row.n if named else [row.n], **named)

    return scene


async def a_note_of_a_source(store):
    return lambda: store.note_source(SourceRow("shop", clear_at=NOW))


async def a_source_to_forget(store):
    await store.note_source(SourceRow("gone"))
    return lambda: store.forget_source("gone")


SCENES = {
    "accept": a_publish,
    "take": a_take,
    "take_these": a_take_these,
    "settle": a_settle,
    "note": a_note_down,
    "mark": on_a_suspect("mark"),
    "condemn": on_a_suspect("condemn"),
    "release": a_release,
    "wake": a_wake,
    "register": a_register,
    "beat": a_beat,
    "look": a_look,
    "bury": a_burial,
    "free": a_freeing,
    "sweep": a_sweep,
    "retire": a_retirement,
    "create_endpoint": a_new_endpoint,
    "update_endpoint": a_changed_endpoint,
    "delete_endpoint": a_deleted_endpoint,
    "cancel_deleted": rows_of_a_deleted_endpoint,
    "reset_circuit": a_reset,
    "retry": on_one("retry", State.PENDING),
    "cancel": on_one("cancel", State.PENDING),
    "redrive": on_one("redrive", State.DEAD),
    "redrive_event": a_redriven_event,
    "discard": on_one("discard", State.DEAD),
    "create_job": a_new_job,
    "advance_job": a_step_of_a_job,
    "fail_job": a_failed_job,
    "create_first_key": with_a_key("create_first_key"),
    "create_key": with_a_key("create_key"),
    "revoke_key": a_revoked_key,
    "write_audit": an_entry_of_the_trail,
    "prune_audit": an_entry_to_prune,
    "create_session": a_new_session,
    "see_session": with_a_session("see_session", now=NOW + 1),
    "open_link": with_a_session("open_link", a_session(), now=NOW),
    "end_session": with_a_session("end_session"),
    "end_sessions_of": sessions_to_end,
    "put_event_type": a_type,
    "delete_event_type": a_forgotten_type,
    "put_account": an_account,
    "flush_latencies": minutes_to_flush,
    "fold_latencies": a_log_to_fold,
    "roll_latencies": hours_to_add_up,
    "claim_latency_days": days_to_claim,
    "write_latency_days": a_day_to_write,
    "take_alert_turn": a_turn_of_alerts,
    "write_alerts": alerts_to_write,
    "prune_alerts": an_alert_to_prune,
    "mark_sealed": a_seal,
    "installation_secret": a_secret,
    "prune": a_step_of_pruning,
    "prune_records": records_to_prune,
    "take_prune_turn": a_turn,
    "publish_announcements": announcements_to_publish,
    "take_notifications": a_message_to_take,
    "end_notifications": a_message_to_end,
    "drop_from_outbox": rows_to_drop,
    "refuse": a_refusal,
    "refuse_again": on_a_refused_row("refuse_again", code="internal", detail="", now=NOW),
    "discard_refused": on_a_refused_row("discard_refused"),
    "note_source": a_note_of_a_source,
    "forget_source": a_source_to_forget,
}


def test_every_verb_that_writes_has_a_scene():
    assert SCENES.keys() == writing_verbs()


async def test_a_failure_before_a_verb_changes_nothing_and_one_after_it_leaves_it_done(store):
    """All of them on one database: what one leaves behind does not affect the others."""
    for verb, scene in SCENES.items():
        call = await scene(store)
        before = rows_of(store)
        failpoints.plant(f"{verb}.before=error")
        with pytest.raises(Planted):
            await call()
        assert rows_of(store) == before, verb
        failpoints.plant(f"{verb}.after=error")
        with pytest.raises(Planted):
            await call()
        assert rows_of(store) != before, verb
        failpoints.plant("")
