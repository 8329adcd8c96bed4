"""An entry of the audit trail is written with the change that it tells of, or neither is; entries are listed and pruned."""

import asyncio
import contextlib
import inspect

import msgspec
import pytest

from factories import (
    NOW,
    a_job,
    a_key,
    a_publication,
    a_refused_row,
    a_session,
    an_audit_entry,
    an_endpoint,
    an_event_type,
    ids,
)
from hookline.errors import NotFound, RowRefused, WrongState
from hookline.ids import delivery_of
from hookline.model import Account, Actor, ActorKind, State, Via
from hookline.store.contract import AuditFilter, RefusedFilter, SourceRow, Store
from scenes import a_lane_in, an_endpoint_in, in_state
from tests.contract.test_failing import rows_of

pytestmark = pytest.mark.anyio

ANY = AuditFilter()


async def listed(store, *, after=None, limit=100, **chosen):
    return await store.list_audit(AuditFilter(**chosen), after=after, limit=limit)


# --- every verb that takes an entry: how it changes something, and how it does not ---


async def creating_an_endpoint(store):
    endpoint = an_endpoint()
    return lambda audit: store.create_endpoint(endpoint, now=NOW, audit=audit), None


async def updating_an_endpoint(store):
    endpoint = await an_endpoint_in(store)
    changed = msgspec.structs.replace(endpoint, url="https://b.example/", updated_at=NOW + 1)
    return (
        lambda audit: store.update_endpoint(changed, was=NOW, now=NOW + 1, audit=audit),
        lambda audit: store.update_endpoint(changed, was=NOW - 5, now=NOW + 1, audit=audit),
    )


async def deleting_an_endpoint(store):
    lane = await a_lane_in(store)
    return (
        lambda audit: store.delete_endpoint(lane, now=NOW, audit=audit),
        lambda audit: store.delete_endpoint(ids.endpoint(), now=NOW, audit=audit),
    )


async def resetting_a_circuit(store):
    lane = await a_lane_in(store)
    return (
        lambda audit: store.reset_circuit(lane, now=NOW, audit=audit),
        lambda audit: store.reset_circuit(ids.endpoint(), now=NOW, audit=audit),
    )


def on_one(verb, state):
    async def scene(store):
        _, _, delivery = await in_state(store, state)
        unknown = delivery_of(ids.event(), 0)
        return (
            lambda audit: getattr(store, verb)(delivery, now=NOW, audit=audit),
            lambda audit: getattr(store, verb)(unknown, now=NOW, audit=audit),
        )

    return scene


async def redriving_an_event(store):
    publication = a_publication(await a_lane_in(store))
    await store.accept([publication], catalogue=(await store.catalogue()).n, now=NOW)
    await store.cancel(publication.event.id, now=NOW)
    event = publication.event.id

    def redrive(*states):
        return lambda audit: store.redrive_event(
            event, endpoint=None, states=list(states), now=NOW, audit=audit
        )

    return redrive(State.CANCELLED), redrive(State.DEAD)


async def starting_a_job(store):
    job, first = a_job(), a_job(idempotency_key="k")
    await store.create_job(first, now=NOW)
    again = a_job(idempotency_key="k")
    return (
        lambda audit: store.create_job(job, now=NOW, audit=audit),
        lambda audit: store.create_job(again, now=NOW, audit=audit),
    )


async def making_a_key(store):
    key = a_key()
    return lambda audit: store.create_key(key, audit=audit), None


async def making_the_first_key(store):
    key, second = a_key(), a_key()
    return (
        lambda audit: store.create_first_key(key, audit=audit),
        lambda audit: store.create_first_key(second, audit=audit),
    )


async def revoking_a_key(store):
    key, revoked = a_key(), a_key()
    await store.create_key(key)
    await store.create_key(revoked)
    await store.revoke_key(revoked.id, now=NOW)
    return (
        lambda audit: store.revoke_key(key.id, now=NOW, audit=audit),
        lambda audit: store.revoke_key(revoked.id, now=NOW, audit=audit),
    )


async def making_a_session(store):
    session = a_session()
    return lambda audit: store.create_session(session, now=NOW, audit=audit), None


async def describing_a_type(store):
    return lambda audit: store.put_event_type(an_event_type(), now=NOW, audit=audit), None


async def forgetting_a_type(store):
    await store.put_event_type(an_event_type(), now=NOW)
    return (
        lambda audit: store.delete_event_type("order.paid", now=NOW, audit=audit),
        lambda audit: store.delete_event_type("no.such", now=NOW, audit=audit),
    )


async def setting_an_account(store):
    return lambda audit: store.put_account(Account(id="acme", updated_at=NOW), now=NOW, audit=audit), None


async def discarding_a_refused_row(store):
    await store.refuse([a_refused_row()])
    [row] = await store.refused_rows(RefusedFilter(), after=None, limit=1)
    return (
        lambda audit: store.discard_refused([row.n], audit=audit),
        lambda audit: store.discard_refused([row.n + 1], audit=audit),
    )


async def forgetting_a_source(store):
    await store.note_source(SourceRow("shop"))
    return (
        lambda audit: store.forget_source("shop", audit=audit),
        lambda audit: store.forget_source("other", audit=audit),
    )


SCENES = {
    "create_endpoint": creating_an_endpoint,
    "update_endpoint": updating_an_endpoint,
    "delete_endpoint": deleting_an_endpoint,
    "reset_circuit": resetting_a_circuit,
    "retry": on_one("retry", State.PENDING),
    "cancel": on_one("cancel", State.PENDING),
    "redrive": on_one("redrive", State.DEAD),
    "discard": on_one("discard", State.DEAD),
    "redrive_event": redriving_an_event,
    "create_job": starting_a_job,
    "create_key": making_a_key,
    "create_first_key": making_the_first_key,
    "revoke_key": revoking_a_key,
    "create_session": making_a_session,
    "put_event_type": describing_a_type,
    "delete_event_type": forgetting_a_type,
    "put_account": setting_an_account,
    "discard_refused": discarding_a_refused_row,
    "forget_source": forgetting_a_source,
}


def test_every_verb_that_takes_an_entry_has_a_scene():
    verbs = inspect.getmembers(Store, inspect.iscoroutinefunction)
    assert SCENES.keys() == {name for name, verb in verbs if "audit" in inspect.signature(verb).parameters}


@pytest.mark.parametrize("verb", SCENES)
async def test_a_change_and_its_entry_are_one_commit(store, verb):
    change, _ = await SCENES[verb](store)
    before = rows_of(store)
    impossible = an_audit_entry(address="\ud800")  # no database holds this
    with pytest.raises(RowRefused):
        await change(impossible)
    assert rows_of(store) == before, "the change is there without its entry"
    entry = an_audit_entry()
    await change(entry)
    assert await store.list_audit(ANY, after=None, limit=10) == [entry]
    assert {name: rows for name, rows in rows_of(store).items() if name != "audit"} != {
        name: rows for name, rows in before.items() if name != "audit"
    }, "there is an entry without a change"


@pytest.mark.parametrize("verb", SCENES)
async def test_a_call_that_is_repeated_leaves_one_entry(store, verb):
    change, _ = await SCENES[verb](store)
    entry = an_audit_entry()
    for _ in range(2):
        try:
            await change(entry)
        except (NotFound, WrongState):
            assert verb in ("cancel", "discard", "redrive")
    assert await store.list_audit(ANY, after=None, limit=10) == [entry]


@pytest.mark.parametrize("verb", SCENES)
async def test_a_call_that_changes_nothing_leaves_no_entry(store, verb):
    change, idle = await SCENES[verb](store)
    if idle is None:  # it always changes something
        return
    if verb == "create_first_key":
        await change(None)
    with contextlib.suppress(NotFound, WrongState):
        await idle(an_audit_entry())
    assert await store.list_audit(ANY, after=None, limit=10) == []


async def test_of_two_processes_with_one_idempotency_key_only_the_one_that_starts_the_job_is_told(
    store, second_store
):
    keys = [f"k{n}" for n in range(10)]
    entries = {each: [an_audit_entry(subject=key) for key in keys] for each in (store, second_store)}
    await asyncio.gather(
        *(
            each.create_job(a_job(idempotency_key=key), now=NOW, audit=entry)
            for each, told in entries.items()
            for key, entry in zip(keys, told, strict=True)
        )
    )
    assert sorted(entry.subject for entry in await listed(store)) == sorted(keys)


# --- the trail itself ---


@pytest.mark.parametrize(
    "fields",
    [
        {},
        {"account": None, "address": None, "request_id": None, "changes": {}, "is_cut": True},
        {"actor": Actor(kind=ActorKind.COMMAND_LINE, name="root"), "via": Via.CLI, "address": "db-1"},
        {
            "actor": Actor(kind=ActorKind.PORTAL, key_id=ids.key(), account="acme"),
            "via": Via.PORTAL,
            "changes": {"filter": [None, "a == `\N{SNOWMAN}\0`"], "metadata": [{"a": [1]}, None]},
        },
        {"action": "of.a.later.version"},
    ],
)
async def test_an_entry_is_kept_as_it_was_written(store, fields):
    entry = an_audit_entry(**fields)
    await store.write_audit(entry)
    assert await listed(store) == [entry]


async def test_entries_are_listed_newest_first_page_by_page(store):
    entries = [an_audit_entry(at=NOW + n) for n in range(5)]
    for entry in entries:
        await store.write_audit(entry)
    assert await listed(store, limit=2) == [entries[4], entries[3]]
    assert await listed(store, after=entries[3].id, limit=2) == [entries[2], entries[1]]
    assert await listed(store, after=entries[0].id) == []


async def test_entries_are_found_by_what_is_asked(store):
    key, other = ids.key(), ids.key()
    first = an_audit_entry(at=NOW, action="key.created", subject="key_1", account=None)
    second = an_audit_entry(
        at=NOW + 1, actor=Actor(kind=ActorKind.KEY, key_id=key, account="acme"), subject="ep_2"
    )
    third = an_audit_entry(at=NOW + 2, account="birch", actor=Actor(kind=ActorKind.KEY, key_id=key))
    for entry in (first, second, third):
        await store.write_audit(entry)
    assert await listed(store, account="acme") == [second]
    assert await listed(store, action="key.created") == [first]
    assert await listed(store, subject="ep_2") == [second]
    assert await listed(store, actor_key=key) == [third, second]
    assert await listed(store, actor_key=key, actor_account="acme") == [second]
    assert await listed(store, actor_key=other) == []
    assert await listed(store, since=NOW + 1) == [third, second]
    assert await listed(store, until=NOW + 1) == [first]
    assert await listed(store, since=NOW + 1, until=NOW + 2, account="birch") == []


async def test_old_entries_are_deleted_the_oldest_first(store):
    entries = [an_audit_entry(at=NOW + n) for n in (2, 0, 1, 3)]
    for entry in entries:
        await store.write_audit(entry)
    assert await store.prune_audit(before=NOW, limit=10) == 0
    assert await store.prune_audit(before=NOW + 3, limit=2) == 2
    assert await listed(store) == [entries[3], entries[0]]
    assert await store.prune_audit(before=NOW + 3, limit=2) == 1
    assert await listed(store) == [entries[3]]
