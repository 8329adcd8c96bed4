"""A notification from one process reaches the others, and they understand it."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import asyncpg
import pytest

from deaf_proxy import deaf
from hookline.errors import StoreRefused, StoreUnavailable
from hookline.store.contract import Store
from hookline.store.contract.notify import MOST_LANES, Notification
from hookline.store.postgres.driver.notify import CHANNEL, NOTIFY, read, written
from hookline.store.postgres.store import PostgresStore

pytestmark = pytest.mark.anyio

CEILING = 60.0
ORIGIN = bytes([7] * 16)


def lanes(count: int) -> tuple[bytes, ...]:
    return tuple(n.to_bytes(16) for n in range(count))


NOTIFICATIONS = [
    Notification(ORIGIN),
    Notification(ORIGIN, lanes(1)),
    Notification(ORIGIN, lanes(MOST_LANES), is_change=True),
    Notification(ORIGIN, is_every_lane=True),
    Notification(ORIGIN, is_change=True),
]


@asynccontextmanager
async def listening(store: Store) -> AsyncIterator["asyncio.Queue[Notification]"]:
    heard: asyncio.Queue[Notification] = asyncio.Queue()
    ready = asyncio.Event()
    task = asyncio.create_task(store.listen(heard.put_nowait, on_ready=ready.set))
    try:
        async with asyncio.timeout(CEILING):
            await ready.wait()
        yield heard
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


@pytest.fixture
async def pair(postgres_url: str) -> AsyncIterator[tuple[PostgresStore, PostgresStore]]:
    stores = PostgresStore(postgres_url), PostgresStore(postgres_url)
    for store in stores:
        await store.open()
    yield stores
    for store in stores:
        await store.close()


async def test_every_store_sends_notifications_and_listens_for_them(store):
    """Where one process serves a database nobody else hears it, and listening ends."""
    await store.notify(Notification(ORIGIN, lanes(2)))
    if store.exclusive:
        await store.listen(lambda notification: pytest.fail(f"heard {notification}"))
        return
    async with listening(store) as heard:
        await store.notify(NOTIFICATIONS[1])
        assert await asyncio.wait_for(heard.get(), CEILING) == NOTIFICATIONS[1]


async def test_another_process_hears_all_of_it(pair):
    one, other = pair
    async with listening(other) as heard:
        for notification in NOTIFICATIONS:
            await one.notify(notification)
        assert [await asyncio.wait_for(heard.get(), CEILING) for _ in NOTIFICATIONS] == NOTIFICATIONS


async def test_what_others_say_on_the_channel_is_not_taken_for_a_notification(pair, postgres_url):
    one, other = pair
    async with listening(other) as heard:
        stranger = await asyncpg.connect(postgres_url)
        for text in ("", "hello", "probe 1", "AAAA", "é", "A" * 7_999):
            await stranger.execute(NOTIFY, CHANNEL, text)
        await stranger.close()
        await one.notify(NOTIFICATIONS[0])
        assert await asyncio.wait_for(heard.get(), CEILING) == NOTIFICATIONS[0]


async def test_a_session_that_was_lost_is_reported(pair, postgres_url):
    store, _ = pair
    ready = asyncio.Event()
    task = asyncio.create_task(store.listen(lambda _: None, on_ready=ready.set))
    await asyncio.wait_for(ready.wait(), CEILING)
    stranger = await asyncpg.connect(postgres_url)
    await stranger.execute(
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'hookline listen' "
        "AND datname = current_database()"
    )
    await stranger.close()
    with pytest.raises(StoreUnavailable):
        await asyncio.wait_for(task, CEILING)


async def test_a_session_on_which_nothing_arrives_is_refused(pair, postgres_url):
    async with deaf(postgres_url) as url:
        store = PostgresStore(url)
        store.probe_timeout = 0.5
        await store.open()
        with pytest.raises(StoreRefused, match="pooler in transaction mode"):
            await asyncio.wait_for(store.listen(lambda _: None), CEILING)
        await store.close()


@pytest.mark.parametrize("notification", NOTIFICATIONS, ids=str)
def test_a_notification_is_read_back_from_its_text(notification):
    assert len(written(notification)) < 8_000
    assert read(written(notification)) == notification


def test_a_notification_of_too_many_lanes_is_refused():
    with pytest.raises(ValueError, match="350 lanes at most"):
        written(Notification(ORIGIN, lanes(MOST_LANES + 1)))
