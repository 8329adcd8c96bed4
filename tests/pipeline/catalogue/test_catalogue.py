"""What a process knows of the endpoints is never older than it believes."""

import asyncio

import msgspec
import pytest

from factories import NOW, an_endpoint, an_event_type
from hookline.app import store_for
from hookline.errors import StoreUnavailable
from hookline.pipeline.catalogue.catalogue import Catalogue
from scenes import an_endpoint_in

pytestmark = pytest.mark.anyio


@pytest.fixture
async def store(database):
    store = store_for(database)
    await store.migrate()
    await store.open()
    yield store
    await store.close()


async def test_what_was_read_before_a_later_change_does_not_replace_it(store, monkeypatch):
    """Two read at the same time; the one with the older rows finishes last."""
    endpoint = an_endpoint(url="https://old.example/")
    await store.create_endpoint(endpoint, now=NOW)
    catalogue = Catalogue(store)
    await catalogue.open()
    read = store.endpoints_by_id
    is_read, may_go_on = asyncio.Event(), asyncio.Event()

    async def slow(ids):
        found = await read(ids)
        is_read.set()
        await may_go_on.wait()
        return found

    between = msgspec.structs.replace(endpoint, url="https://between.example/", updated_at=NOW + 1)
    await store.update_endpoint(between, was=NOW, now=NOW)
    monkeypatch.setattr(store, "endpoints_by_id", slow)
    slower = asyncio.create_task(catalogue.catch_up())
    await is_read.wait()
    monkeypatch.setattr(store, "endpoints_by_id", read)
    new = msgspec.structs.replace(endpoint, url="https://new.example/", updated_at=NOW + 2)
    await store.update_endpoint(new, was=NOW + 1, now=NOW)
    await catalogue.catch_up()
    may_go_on.set()
    await slower
    assert catalogue.prepared(endpoint.id).endpoint == new
    assert catalogue.n == 3


async def test_an_event_whose_commit_is_tried_again_reaches_an_endpoint_that_came_between(
    world, receiver, monkeypatch
):
    hooks = await world.start()
    await hooks.create_endpoint(url=receiver.url("/first"), events=["*"])
    accept = hooks.store.accept

    async def lost(batch, **rest):
        monkeypatch.setattr(hooks.store, "accept", accept)
        await hooks.create_endpoint(url=receiver.url("/second"), events=["*"])
        raise StoreUnavailable("The connection was lost before anything was written.")

    monkeypatch.setattr(hooks.store, "accept", lost)
    event = await world.pass_until(hooks.publish("order.paid", {}))
    assert event.deliveries == 2


async def test_a_process_that_was_away_until_changes_were_deleted_reads_everything_again(store):
    gone, changed = await an_endpoint_in(store), await an_endpoint_in(store)
    catalogue = Catalogue(store)
    await catalogue.open()
    told = []
    catalogue.on_change = lambda endpoint, _: told.append(endpoint)
    await store.reset_circuit(changed.id, now=NOW)  # stays: nobody has carried it out
    await store.delete_endpoint(gone.id, now=NOW)
    moved = msgspec.structs.replace(changed, url="https://elsewhere.example/", updated_at=NOW + 1)
    assert await store.update_endpoint(moved, was=NOW, now=NOW + 1)
    new = await an_endpoint_in(store)
    await store.put_event_type(an_event_type(), now=NOW + 1)
    while await store.prune_records(done_before=NOW, told_before=float("inf"), limit=100):
        pass
    await catalogue.catch_up()
    assert catalogue.n == (await store.catalogue()).n
    assert catalogue.prepared(gone.id) is None
    assert catalogue.prepared(changed.id).endpoint.url == "https://elsewhere.example/"
    assert catalogue.prepared(new.id) is not None
    assert sorted(told) == sorted([gone.id, changed.id, new.id])


async def test_a_second_opening_knows_nothing_of_what_is_gone(store):
    kept, gone = an_endpoint(), an_endpoint(filter="a")
    await store.create_endpoint(kept, now=NOW)
    await store.create_endpoint(gone, now=NOW)
    catalogue = Catalogue(store)
    await catalogue.open()
    await store.delete_endpoint(gone.id, now=NOW)
    await catalogue.open()
    assert catalogue.find("default", "order.paid") == (kept.id,)
    assert (catalogue.prepared(gone.id), catalogue.count("default"), catalogue.content.matters) == (
        None,
        1,
        False,
    )
