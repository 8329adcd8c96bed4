"""What must hold on PostgreSQL beyond the common contract: many processes, locks, a server that dies."""

import asyncio
import socket
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import asyncpg
import pytest

from factories import NOW, a_publication, a_settlement, a_worker
from hookline.errors import StorageFull, StoreRefused, StoreUnavailable
from hookline.model import State
from hookline.store.contract import Release, Verdict
from hookline.store.interactive import ApiCall, api_call, current_call
from hookline.store.postgres.driver import session
from hookline.store.postgres.driver.pool import SessionPool
from hookline.store.postgres.driver.sessions import GENERAL_SESSIONS
from hookline.store.postgres.store import PostgresStore
from postgres_server import GUARDED, GUARDED_PASSWORD, PostgresServer, require_installations
from scenes import (
    a_lane_in,
    a_worker_in,
    accepted,
    an_owned_lane,
    let_go,
    loaded_ids,
    owned_by,
    published,
    settled,
    wakes_at,
)

pytestmark = pytest.mark.anyio

CEILING = 60.0  # nothing waits this long; a test that does has failed
SOON = 20.0


@pytest.fixture
async def store(postgres_url: str) -> AsyncIterator[PostgresStore]:
    async with opened(postgres_url) as store:
        yield store


@pytest.fixture
async def outsider(postgres_url: str) -> AsyncIterator[Any]:
    """Another program's session, which holds locks and sees who waits."""
    connection = await asyncpg.connect(postgres_url, server_settings={"search_path": session.SCHEMA})
    yield connection
    await connection.close()


@asynccontextmanager
async def opened(url: str, **options: Any) -> AsyncIterator[PostgresStore]:
    store = PostgresStore(url, **options)
    try:
        await store.open()
        yield store
    finally:
        await store.close()


async def until(condition: Callable[[], Awaitable[bool]]) -> None:
    async with asyncio.timeout(CEILING):
        while not await condition():  # noqa: ASYNC110 - what happens in the server signals nothing here
            await asyncio.sleep(0.005)


async def until_waiting(outsider: Any, role: str) -> None:
    """Wait until a session of the store with this role waits for a lock."""

    async def waits() -> bool:
        await outsider.execute("SELECT pg_stat_clear_snapshot()")  # a transaction would see no news
        return bool(
            await outsider.fetchval(
                "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() "
                "AND application_name = $1 AND wait_event_type = 'Lock'",
                f"hookline {role}",
            )
        )

    await until(waits)


def uuid(id: bytes) -> str:
    return id.hex()


# --- what is refused -------------------------------------------------------------------------------------


@pytest.mark.parametrize("unsafe", ["off", "local"])
async def test_a_database_that_does_not_wait_for_its_commits_is_refused(
    postgres_url: str, outsider: Any, unsafe: str
) -> None:
    name = await outsider.fetchval("SELECT current_database()")
    await outsider.execute(f"ALTER DATABASE {name} SET synchronous_commit = {unsafe}")

    with pytest.raises(StoreRefused, match=f"synchronous_commit={unsafe}.*set synchronous_commit=on"):
        await PostgresStore(postgres_url).open()
    async with opened(postgres_url, unsafe=True) as store:
        assert (await store.catalogue()).n == 0


async def test_a_server_without_fsync_is_refused() -> None:
    server = PostgresServer(require_installations()[0], fsync="off")
    try:
        server.start()
        with pytest.raises(StoreRefused, match=r"fsync=off.*set fsync=on"):
            await PostgresStore(server.url()).migrate()
    finally:
        server.destroy()


async def test_reloading_an_unsafe_configuration_does_not_reach_a_running_session(
    mortal_server: PostgresServer,
) -> None:
    checked = await session.connect(mortal_server.url(), role="test", settings={}, unsafe=False)
    bare = await asyncpg.connect(mortal_server.url())
    await bare.execute("ALTER SYSTEM SET synchronous_commit = off")
    await bare.execute("SELECT pg_reload_conf()")

    async def reloaded() -> bool:
        return await bare.fetchval("SHOW synchronous_commit") == "off"

    await until(reloaded)
    assert await checked.fetchval("SHOW synchronous_commit") == "on"
    await bare.close()
    await checked.close()


async def test_a_wrong_password_is_refused(postgres_server: PostgresServer) -> None:
    with pytest.raises(StoreRefused, match="check the password"):
        await PostgresStore(postgres_server.url(user=GUARDED, password="wrong")).open()


async def test_an_unknown_database_is_refused(postgres_server: PostgresServer) -> None:
    with pytest.raises(StoreRefused, match="create the database"):
        await PostgresStore(postgres_server.url("nowhere")).open()


async def test_a_database_without_the_schema_is_refused(postgres_server: PostgresServer) -> None:
    with pytest.raises(StoreRefused, match="hookline migrate"):
        await PostgresStore(postgres_server.url()).open()


async def test_a_user_without_rights_is_refused(postgres_server: PostgresServer) -> None:
    with pytest.raises(StoreRefused):
        await PostgresStore(postgres_server.url(user=GUARDED, password="correct%20horse")).migrate()
    assert GUARDED_PASSWORD == "correct horse"


async def test_of_several_that_migrate_at_once_one_does_it(postgres_server: PostgresServer) -> None:
    url = postgres_server.url(postgres_server.create_database())
    applied = await asyncio.gather(*(PostgresStore(url).migrate() for _ in range(4)))
    assert sorted(applied)[:3] == [[], [], []]
    assert sorted(applied)[3][0] == "0001_tables"


# --- what is not there -----------------------------------------------------------------------------------


async def test_a_server_that_is_not_there_is_unavailable_at_once() -> None:
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))  # bound, not listening: it refuses, and nobody else gets the port
        store = PostgresStore(f"postgresql://postgres@127.0.0.1:{closed.getsockname()[1]}/x")
        async with asyncio.timeout(SOON):
            with pytest.raises(StoreUnavailable):
                await store.open()


async def test_a_server_that_never_answers_is_unavailable_in_time() -> None:
    with socket.create_server(("127.0.0.1", 0)) as mute:
        store = PostgresStore(f"postgresql://postgres@127.0.0.1:{mute.getsockname()[1]}/x", call_timeout=0.2)
        async with asyncio.timeout(SOON):
            with pytest.raises(StoreUnavailable):
                await store.open()


async def test_a_call_that_takes_too_long_is_given_up_and_the_next_one_works(
    postgres_url: str, outsider: Any
) -> None:
    async with opened(postgres_url, call_timeout=3.0) as store:
        lane = await a_lane_in(store)
        publication = a_publication(lane)
        async with outsider.transaction():
            await outsider.execute("LOCK TABLE events")
            with pytest.raises(StoreUnavailable):
                await accepted(store, publication)

        async def repeated() -> bool:  # the server may still be busy with the first one
            try:
                await accepted(store, publication)
            except StoreUnavailable:
                return False
            return True

        await until(repeated)
        assert len(await loaded_ids(store, lane)) == 1


async def test_a_reader_who_finds_all_sessions_taken_is_turned_away_before_the_first_of_them_is_done(
    postgres_url: str, outsider: Any
) -> None:
    async with opened(postgres_url, patience=0.2) as store:  # far less than the server waits for a lock
        await asyncio.gather(*(store.endpoints_by_id([]) for _ in range(GENERAL_SESSIONS)))
        async with outsider.transaction():
            await outsider.execute("LOCK TABLE endpoints")
            waiting = [asyncio.create_task(store.endpoints_by_id([])) for _ in range(GENERAL_SESSIONS)]
            await until_waiting(outsider, "general")
            with api_call(), pytest.raises(StoreUnavailable, match="no session"):
                await store.endpoints_by_id([])
            assert not any(each.done() for each in waiting)
        assert await asyncio.gather(*waiting) == [[]] * GENERAL_SESSIONS


async def test_an_api_call_that_had_a_session_and_hookline_itself_wait_for_as_long_as_it_takes(
    postgres_url: str, outsider: Any
) -> None:
    async with opened(
        postgres_url, patience=0.0, patience_in_all=CEILING
    ) as store:  # the next one admitted finds a free session

        async def two_reads() -> list[Any]:
            with api_call():
                await store.count_by_state([])
                return [await store.endpoints_by_id([]), await store.endpoints_by_id([])]

        await store.count_by_state([])
        async with outsider.transaction():
            await outsider.execute("LOCK TABLE endpoints")
            itself = [asyncio.create_task(store.endpoints_by_id([])) for _ in range(GENERAL_SESSIONS)]
            await until_waiting(outsider, "general")
            calling = asyncio.create_task(two_reads())
            with api_call(), pytest.raises(StoreUnavailable, match="no session"):
                await store.endpoints_by_id([])
            assert not calling.done()
        assert await calling == [[], []]
        assert await asyncio.gather(*itself) == [[]] * GENERAL_SESSIONS


async def test_a_session_that_takes_longer_to_make_than_anybody_waits_is_there_for_the_next_call(
    postgres_url: str,
) -> None:
    is_near = asyncio.Event()
    made = 0

    async def connect() -> Any:
        nonlocal made
        made += 1
        await is_near.wait()
        return await session.connect(postgres_url, role="general", settings={}, unsafe=False)

    pool = SessionPool(connect, call_timeout=CEILING, patience=0.05)

    async def served() -> bool:
        try:
            with api_call():
                return bool(await pool.fetch("SELECT 1"))
        except StoreUnavailable:
            return False

    assert [await served(), await served()] == [False, False]
    is_near.set()
    await until(served)
    assert made == 1
    await pool.close()


async def test_a_call_that_was_served_does_not_wait_for_its_next_session_as_long_as_it_takes(
    postgres_url: str,
) -> None:
    async def connect() -> Any:
        return await session.connect(postgres_url, role="general", settings={}, unsafe=False)

    first = SessionPool(connect, call_timeout=CEILING, patience=SOON)
    then = SessionPool(connect, call_timeout=CEILING, patience=SOON, patience_in_all=0.05)
    hold, is_held = asyncio.Event(), asyncio.Event()

    async def holding(connection: Any) -> None:
        is_held.set()
        await hold.wait()

    held = asyncio.create_task(then.run(holding))
    await is_held.wait()
    with api_call():
        assert len(await first.fetch("SELECT 1")) == 1
        with pytest.raises(StoreUnavailable, match="no session"):
            await then.fetch("SELECT 1")
    hold.set()
    await held
    with api_call():
        assert len(await first.fetch("SELECT 1")) == len(await then.fetch("SELECT 1")) == 1
    await first.close()
    await then.close()


async def test_what_a_call_that_only_reads_spent_on_its_reads_counts_as_waiting(postgres_url: str) -> None:
    async def connect() -> Any:
        return await session.connect(postgres_url, role="general", settings={}, unsafe=False)

    pool = SessionPool(connect, call_timeout=CEILING, patience=SOON, patience_in_all=0.05)
    hold, is_held = asyncio.Event(), asyncio.Event()

    async def holding(connection: Any) -> None:
        is_held.set()
        await hold.wait()

    async def asked_once(*, only_reads: bool) -> ApiCall:
        call = current_call()
        assert call is not None
        await pool.fetch("SELECT pg_sleep(0.1)")  # longer than a call may wait in all
        assert call.is_served
        assert call.only_reads is only_reads
        return call

    with api_call(only_reads=True):
        await asked_once(only_reads=True)
        assert len(await pool.fetch("SELECT 1")) == 1, "a free session costs no patience"
        held = asyncio.create_task(pool.run(holding))
        await is_held.wait()
        with pytest.raises(StoreUnavailable, match="no session"):
            await pool.fetch("SELECT 1")
        hold.set()
        await held
    with api_call():
        call = await asked_once(only_reads=False)
        assert pool._left_to(call, asyncio.get_running_loop().time()) == 0.05 - call.waited
    await pool.close()


async def test_a_session_that_could_not_be_made_leaves_its_place_to_the_next(postgres_url: str) -> None:
    is_away = asyncio.Event()

    async def connect() -> Any:
        if not is_away.is_set():
            await is_away.wait()
            raise OSError("away")
        return await session.connect(postgres_url, role="general", settings={}, unsafe=False)

    pool = SessionPool(connect, call_timeout=CEILING, patience=0.05)
    with api_call(), pytest.raises(StoreUnavailable, match="no session"):
        await pool.fetch("SELECT 1")
    is_away.set()
    assert len(await pool.fetch("SELECT 1")) == 1
    await pool.close()


async def test_what_is_still_being_connected_does_not_keep_a_store_from_closing() -> None:
    ended = asyncio.Event()

    async def connect() -> Any:
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()

    pool = SessionPool(connect, call_timeout=CEILING, patience=0.01)
    with api_call(), pytest.raises(StoreUnavailable):
        await pool.fetch("SELECT 1")
    async with asyncio.timeout(SOON):
        await pool.close()
    assert ended.is_set()


async def test_a_cancelled_call_leaves_no_session_half_used(store: PostgresStore, outsider: Any) -> None:
    worker, lane = await an_owned_lane(store)
    delivery = await published(store, lane.endpoint_id)
    settlement = a_settlement(delivery, lane.endpoint_id, epoch=lane.epoch)
    async with outsider.transaction():
        await outsider.execute("SELECT FROM deliveries FOR UPDATE")
        settle = asyncio.create_task(store.settle(worker, [settlement], now=NOW))
        await until_waiting(outsider, "settle")
        settle.cancel()
        with pytest.raises(asyncio.CancelledError):
            await settle

    # It is unknown whether the server still did the first one; that it was done once is certain.
    assert (await store.settle(worker, [settlement], now=NOW))[0] in (Verdict.APPLIED, Verdict.REPEATED)
    assert len(await store.attempts(delivery)) == 1


async def test_sessions_that_were_terminated_are_replaced(store: PostgresStore, outsider: Any) -> None:
    lane = await a_lane_in(store)
    await published(store, lane)
    await outsider.execute(
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
        "WHERE datname = current_database() AND application_name LIKE 'hookline %'"
    )

    async def works() -> bool:
        try:
            await published(store, lane)
        except StoreUnavailable:
            return False
        return True

    await until(works)


async def test_after_a_crash_of_the_server_the_same_store_goes_on(mortal_server: PostgresServer) -> None:
    url = mortal_server.url(mortal_server.create_database())
    await PostgresStore(url).migrate()
    async with opened(url) as store:
        worker, lane = await an_owned_lane(store)
        kept = await published(store, lane.endpoint_id)
        blocker = await asyncpg.connect(url, server_settings={"search_path": session.SCHEMA})
        await blocker.execute("BEGIN; LOCK TABLE deliveries")
        settlement = a_settlement(kept, lane.endpoint_id, epoch=lane.epoch)
        settle = asyncio.create_task(store.settle(worker, [settlement], now=NOW))
        await until_waiting(blocker, "settle")

        mortal_server.kill()

        with pytest.raises(StoreUnavailable):
            await settle
        for call in (store.pulse(seen=0), store.catalogue(), store.take(worker, limit=1, now=NOW)):
            with pytest.raises(StoreUnavailable):
                await call
        mortal_server.restart()

        assert await loaded_ids(store, lane.endpoint_id) == [kept]
        assert await store.settle(worker, [settlement], now=NOW) == [Verdict.APPLIED]
        assert (await store.pulse(seen=0)).workers[0].id == worker
        await published(store, lane.endpoint_id)  # on a session that was idle during the crash


async def test_a_full_disk_says_so(store: PostgresStore, outsider: Any) -> None:
    lane = await a_lane_in(store)
    await outsider.execute(
        "CREATE FUNCTION fill() RETURNS trigger LANGUAGE plpgsql AS "
        "$$ BEGIN RAISE EXCEPTION 'No space left on device' USING ERRCODE = 'disk_full'; END $$"
    )
    await outsider.execute("CREATE TRIGGER full_disk BEFORE INSERT ON events EXECUTE FUNCTION fill()")
    with pytest.raises(StorageFull, match="No space left"):
        await published(store, lane)
    await outsider.execute("DROP TRIGGER full_disk ON events")
    await published(store, lane)


# --- locks and races -------------------------------------------------------------------------------------


async def test_burial_waits_for_a_settle_under_way_and_the_heir_does_not_see_its_row(
    store: PostgresStore, outsider: Any
) -> None:
    worker, lane = await an_owned_lane(store)
    first, second = [await published(store, lane.endpoint_id) for _ in range(2)]
    settlement = a_settlement(first, lane.endpoint_id, epoch=lane.epoch)
    async with outsider.transaction():
        await outsider.execute("SELECT FROM deliveries WHERE id = $1 FOR UPDATE", uuid(first))
        settle = asyncio.create_task(store.settle(worker, [settlement], now=NOW))
        await until_waiting(outsider, "settle")
        bury = asyncio.create_task(store.bury(worker, beat=0, now=NOW))
        await until_waiting(outsider, "general")
        assert not bury.done()

    assert await settle == [Verdict.APPLIED]
    assert await bury
    assert await store.free(worker, now=NOW) == [lane.endpoint_id]
    heir = await a_worker_in(store)
    await owned_by(store, heir, lane.endpoint_id)
    assert await loaded_ids(store, lane.endpoint_id) == [second]


async def test_a_settle_that_began_before_its_worker_was_buried_and_freed_changes_nothing(
    store: PostgresStore, outsider: Any
) -> None:
    worker, lane = await an_owned_lane(store)
    heir = await a_worker_in(store)
    delivery = await published(store, lane.endpoint_id)
    settlement = a_settlement(delivery, lane.endpoint_id, epoch=lane.epoch)
    async with outsider.transaction():
        # Burial and the next owner's take, in one uncommitted transaction: the settle's snapshot has none of it.
        await outsider.execute("SELECT FROM workers WHERE id = $1 FOR UPDATE", uuid(worker))
        await outsider.execute("UPDATE workers SET buried_at = now() WHERE id = $1", uuid(worker))
        await outsider.execute("UPDATE lanes SET owner = $1, epoch = epoch + 2", uuid(heir))
        settle = asyncio.create_task(store.settle(worker, [settlement], now=NOW))
        await until_waiting(outsider, "settle")

    assert await settle == [Verdict.LATE]
    assert (await store.delivery(delivery)).state is State.PENDING
    assert [attempt.late for attempt in await store.attempts(delivery)] == [True]


async def test_what_was_sent_in_a_lanes_earlier_epoch_stays_late_when_the_lane_is_won_again(
    store: PostgresStore,
) -> None:
    worker, lane = await an_owned_lane(store)
    old, new = [await published(store, lane.endpoint_id) for _ in range(2)]
    await store.release(worker, [Release(lane.endpoint_id, lane.epoch, NOW)], now=NOW)
    again = await owned_by(store, worker, lane.endpoint_id)
    batch = [
        a_settlement(old, lane.endpoint_id, epoch=lane.epoch),
        a_settlement(new, lane.endpoint_id, epoch=again.epoch),
    ]
    assert await store.settle(worker, batch, now=NOW) == [Verdict.LATE, Verdict.APPLIED]


async def test_of_workers_that_take_at_once_no_two_get_the_same_lane(postgres_url: str) -> None:
    async with opened(postgres_url) as one, opened(postgres_url) as two, opened(postgres_url) as three:
        lanes = [await a_lane_in(one) for _ in range(60)]
        for lane in lanes:
            await published(one, lane)
        await one.wake(lanes, now=NOW)
        taken: list[bytes] = []

        async def take_all(store: PostgresStore) -> None:
            worker = await a_worker_in(store)
            while len(taken) < len(lanes):
                found = await store.take(worker, limit=3, now=NOW)
                taken.extend(lane.endpoint_id for lane in found)

        async with asyncio.timeout(CEILING):
            await asyncio.gather(*(take_all(store) for store in (one, two, three)))
        assert sorted(taken) == sorted(lanes)


async def test_a_take_passes_over_a_lane_that_another_is_taking(store: PostgresStore, outsider: Any) -> None:
    worker = await a_worker_in(store)
    busy, free = [await a_lane_in(store) for _ in range(2)]
    for lane in (busy, free):
        await published(store, lane)
    await store.wake([busy, free], now=NOW)
    async with outsider.transaction():
        await outsider.execute("SELECT FROM lanes WHERE endpoint_id = $1 FOR UPDATE", uuid(busy))
        assert [lane.endpoint_id for lane in await store.take(worker, limit=2, now=NOW)] == [free]


async def test_a_buried_worker_cannot_take_while_its_burial_commits(
    store: PostgresStore, outsider: Any
) -> None:
    worker, lane = await a_worker_in(store), await a_lane_in(store)
    async with outsider.transaction():
        await outsider.execute("SELECT FROM workers WHERE id = $1 FOR UPDATE", uuid(worker))
        await outsider.execute("UPDATE workers SET buried_at = now() WHERE id = $1", uuid(worker))
        take = asyncio.create_task(store.take_these(worker, [lane], now=NOW))
        await until_waiting(outsider, "lanes")
    assert await take == []


async def test_a_copy_that_is_sent_after_the_snapshot_of_the_take_is_not_counted(
    store: PostgresStore, outsider: Any
) -> None:
    worker, other, lane = await a_worker_in(store), await a_worker_in(store), await a_lane_in(store)
    delivery = await published(store, lane)
    async with outsider.transaction():
        await outsider.execute("SELECT FROM workers WHERE id = $1 FOR UPDATE", uuid(worker))
        take = asyncio.create_task(store.take_these(worker, [lane], copies=[delivery], now=NOW))
        await until_waiting(outsider, "lanes")
        async with opened(store._url) as elsewhere:
            before = await owned_by(elsewhere, other, lane)
            await settled(elsewhere, other, before, delivery)
            await let_go(elsewhere, other, before)
    [taken] = await take
    assert (taken.epoch, taken.copies) == (before.epoch + 1, 0)


async def test_a_wake_waits_for_a_lane_that_is_locked_instead_of_passing_over_it(
    store: PostgresStore, outsider: Any
) -> None:
    lane = await a_lane_in(store)
    await published(store, lane)
    async with outsider.transaction():
        await outsider.execute("SELECT FROM lanes WHERE endpoint_id = $1 FOR UPDATE", uuid(lane))
        wake = asyncio.create_task(store.wake([lane], now=NOW))
        await until_waiting(outsider, "lanes")
    await wake
    assert await wakes_at(store, lane) == NOW


async def test_freeing_waits_for_a_lane_that_an_operator_is_just_writing(
    store: PostgresStore, outsider: Any
) -> None:
    worker, lane = await an_owned_lane(store)
    await store.bury(worker, beat=0, now=NOW)
    async with outsider.transaction():
        await outsider.execute(
            "UPDATE lanes SET paused = true WHERE endpoint_id = $1", uuid(lane.endpoint_id)
        )
        free = asyncio.create_task(store.free(worker, now=NOW))
        await until_waiting(outsider, "lanes")
    assert await free == [lane.endpoint_id]


async def test_a_worker_is_not_retired_under_a_take_that_is_under_way(
    store: PostgresStore, outsider: Any
) -> None:
    worker, lane = a_worker(), await a_lane_in(store)
    await store.register(worker)
    async with outsider.transaction():
        # What a take does until it commits: the fence, then the lane.
        await outsider.execute("SELECT FROM workers WHERE id = $1 FOR KEY SHARE", uuid(worker.id))
        await outsider.execute(
            "UPDATE lanes SET owner = $1 WHERE endpoint_id = $2", uuid(worker.id), uuid(lane)
        )
        retire = asyncio.create_task(store.retire(worker.id))
        await until_waiting(outsider, "general")
    await retire
    assert (await store.pulse(seen=0)).workers == (worker,)


async def test_a_batch_that_met_a_deadlock_is_repeated(store: PostgresStore, outsider: Any) -> None:
    name = await outsider.fetchval("SELECT current_database()")
    # So that the store's session is the one to give way. It checks once, and by then the other has to wait as well.
    await outsider.execute(f"ALTER DATABASE {name} SET deadlock_timeout = '2s'")
    await outsider.execute("SET deadlock_timeout = '60s'")
    worker, lane = await an_owned_lane(store)
    first, second = sorted([await published(store, lane.endpoint_id) for _ in range(2)])
    batch = [a_settlement(id, lane.endpoint_id, epoch=lane.epoch) for id in (first, second)]
    async with outsider.transaction():
        await outsider.execute("SELECT FROM deliveries WHERE id = $1 FOR UPDATE", uuid(second))
        settle = asyncio.create_task(store.settle(worker, batch, now=NOW))
        await until_waiting(outsider, "settle")
        await outsider.execute("SELECT FROM deliveries WHERE id = $1 FOR UPDATE", uuid(first))
        assert not settle.done()
    assert await settle == [Verdict.APPLIED, Verdict.APPLIED]
