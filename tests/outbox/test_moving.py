"""What an application commits is delivered, and nothing else: from hookline's own database and from others."""

import asyncio
import json
import sqlite3
import threading
from contextlib import closing
from pathlib import Path

import msgspec
import psycopg
import pytest
from structlog.testing import capture_logs

from hookline.admin.event_types import EventTypeInput
from hookline.app import Hookline
from hookline.ids import read
from hookline.outbox import Draft, ddl, nudge, nudging, publish, publish_many
from hookline.pipeline.outbox.accepting import CheckedRows
from hookline.rules.outbox_batch import BatchEnd
from hookline.rules.outbox_floor import Floor
from hookline.store.contract import RefusedFilter
from outbox.database import Postgres, Sqlite, made_on_sqlite
from outbox.moved import Place, emptied, running, stored, until

pytestmark = pytest.mark.anyio

PLACES = ("own sqlite", "own postgres", "foreign sqlite", "foreign postgres")
ON_POSTGRES = ("own postgres", "foreign postgres")


def file_of(place: Place) -> Path:
    return Path(place.database.removeprefix("sqlite:///"))


everywhere = pytest.mark.parametrize("place", PLACES, indirect=True)
on_postgres = pytest.mark.parametrize("place", ON_POSTGRES, indirect=True)
anywhere = pytest.mark.parametrize("place", ["own sqlite", "own postgres"], indirect=True)


async def refused(hookline):
    rows = await hookline.store.refused_rows(RefusedFilter(), after=None, limit=100)
    return {row.type: row.code for row in rows}


@everywhere
async def test_what_commits_is_delivered_and_what_is_rolled_back_is_not(place, receiver):
    async with running(place, receiver) as hookline:
        with place.connect() as connection:
            publish(connection, "rolled.back", 1)
            connection.execute("ROLLBACK")
        with place.connect() as connection:
            publish(connection, "kept", 2)
            connection.execute("SAVEPOINT s")
            publish(connection, "savepoint.rolled.back", 3)
            connection.execute("ROLLBACK TO SAVEPOINT s")
            publish(connection, "kept", 4)
            connection.execute("COMMIT")
        [id] = place.commit(Draft("last", 5, account="default", idempotency_key="k"))
        await receiver.wait_for_requests(3)
        await emptied(hookline)
        assert sorted(receiver.bodies()) == [b"2", b"4", b"5"]
        event = await hookline.store.event(read("event", id))
        assert (event.type, event.idempotency_key, event.payload) == ("last", "k", b"5")
        assert place.application.orders() == []


@on_postgres
async def test_a_prepared_transaction_publishes_when_it_is_committed(place, receiver):
    async with running(place, receiver) as hookline:
        for name in ("kept", "dropped"):
            with closing(psycopg.connect(place.application.url)) as connection:
                connection.tpc_begin(name)
                publish(connection, name, name)
                connection.tpc_prepare()
        place.commit(Draft("later", "later"))
        await receiver.wait_for_requests(1)
        assert receiver.bodies() == [b'"later"'], "nobody waits for a transaction that is only prepared"
        place.application.run("ROLLBACK PREPARED 'dropped'")
        place.application.run("COMMIT PREPARED 'kept'")
        await receiver.wait_for_requests(2)
        await emptied(hookline)
        assert receiver.bodies() == [b'"later"', b'"kept"']


@everywhere
async def test_events_keep_their_order(place, receiver):
    """Within a transaction, and within an account if one commit came before the next publish."""
    writers, commits, together = 4, 30, 3

    def write(writer: int) -> None:
        for n in range(commits):
            place.commit(
                *(
                    Draft("a", [writer, n * together + each], account=f"a{writer % 2}")
                    for each in range(together)
                )
            )

    async with running(place, receiver, accounts=("a0", "a1")) as hookline:
        threads = [threading.Thread(target=write, args=(writer,)) for writer in range(writers)]
        for thread in threads:
            thread.start()
        for thread in threads:
            await asyncio.to_thread(thread.join)
        await emptied(hookline)
    found = [json.loads(payload) for _, payload in stored(place)]
    for writer in range(writers):
        assert [n for each, n in found if each == writer] == list(range(commits * together))


@anywhere
async def test_a_row_that_is_refused_is_kept_with_its_reason_and_blocks_nobody(place, receiver):
    async with running(place, receiver) as hookline:
        await hookline.event_types.put("typed.one", EventTypeInput(schema={"type": "object"}))
        place.commit(Draft("keyed", 1, idempotency_key="k"))
        await receiver.wait_for_requests(1)
        with capture_logs() as logged:
            [typed, again, _] = place.commit(
                Draft("typed.one", "no object"),
                Draft("keyed.again", 2, idempotency_key="k"),
                Draft("fine", 3),
            )
            await receiver.wait_for_requests(2)
            await emptied(hookline)
        lines = {line["code"]: line["ids"] for line in logged if line["event"] == "outbox.refused"}
        assert lines == {"schema_mismatch": [typed], "idempotency_conflict": [again]}
        values = {} if isinstance(place.application, Postgres) else {"id": bytes(13) + b"\x10" + bytes(2)}
        for type, others in {
            "bad account": {"account": "no account"},
            "no.json": {"payload": b"{"},
            "bad.key": {"idempotency_key": "a b"},
            "too.far": {"hops": 99},
            "negative": {"hops": -1},
            "too.large": {"payload": b"1" * 1_048_577},
        }.items():
            key = {"id": bytes(6) + type.encode()[:7].ljust(7) + bytes(3)} if values else {}
            place.insert(**{"type": type, "payload": b"1", **key, **others})
        if values:
            place.insert(type="bad.id", payload=b"1", id=bytes(15) + b"\x01")
        place.commit(Draft("fine", 4))
        await receiver.wait_for_requests(3)
        await emptied(hookline)
        assert receiver.bodies() == [b"1", b"3", b"4"]
        assert await refused(hookline) == {
            "typed.one": "schema_mismatch",
            "keyed.again": "idempotency_conflict",
            "bad account": "invalid_type",
            "no.json": "invalid_payload",
            "bad.key": "invalid_idempotency_key",
            "too.far": "loop_detected",
            "negative": "invalid_hops",
            "too.large": "too_large",
        } | ({"bad.id": "invalid_id"} if values else {})


@anywhere
async def test_one_id_twice_is_one_event_or_a_conflict(place, receiver):
    """[Both in one statement: the deliveries of the second row fail, and with them the whole batch.]"""
    id = bytes(6) + b"\x70" + bytes(9)
    shown = id if not isinstance(place.application, Postgres) else id.hex()
    place_application = place.application
    ends: list[BatchEnd] = []
    async with running(place, receiver) as hookline:
        accept = hookline.outbox.accept

        async def noted(checked: CheckedRows, *, source: str):
            accepted = await accept(checked, source=source)
            ends.append(accepted.end)
            return accepted

        hookline.outbox.accept = noted
        with place.connect() as connection:
            table, mark = (
                ("hookline.outbox", "%s")
                if isinstance(place_application, Postgres)
                else ("hookline_outbox", "?")
            )
            for payload in (b"1", b"1", b"2"):
                connection.execute(
                    f"INSERT INTO {table} (id, type, payload) VALUES ({mark}, {mark}, {mark})",
                    (shown, f"n{payload.decode()}", payload),
                )
            publish(connection, "fine", 3)
            connection.execute("COMMIT")
        await receiver.wait_for_requests(2)
        await emptied(hookline)
        assert sorted(receiver.bodies()) == [b"1", b"3"]
        assert await refused(hookline) == {"n2": "id_conflict"}
    assert set(ends) == {BatchEnd.DONE}, "no batch fails for that"


@pytest.mark.parametrize("place", ["own sqlite", "own postgres", "foreign postgres"], indirect=True)
async def test_a_row_that_nobody_foresaw_is_found_alone_and_refused(place, receiver):
    """The database itself refuses its event; all others of its batch arrive."""
    async with running(place, receiver) as hookline:
        store = Postgres(place.database) if "postgres" in place.database else Sqlite(file_of(place))
        if isinstance(store, Postgres):
            store.run(
                "CREATE FUNCTION hookline.no() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE 'no'; END $$"
            )
            store.run(
                "CREATE TRIGGER no BEFORE INSERT ON hookline.events FOR EACH ROW WHEN (NEW.type = 'poison') "
                "EXECUTE FUNCTION hookline.no()"
            )
        else:
            store.run(
                "CREATE TRIGGER no BEFORE INSERT ON events WHEN NEW.type = 'poison' "
                "BEGIN SELECT RAISE(ABORT, 'no'); END"
            )
        drafts = [Draft("fine", n) for n in range(40)]
        place.commit(*drafts[:25], Draft("poison", None), *drafts[25:])
        await receiver.wait_for_requests(40)
        await emptied(hookline)
        assert sorted(map(int, receiver.bodies())) == list(range(40))
        assert await refused(hookline) == {"poison": "internal"}


@anywhere
async def test_a_nudge_has_the_rows_moved_without_a_pulse(place, receiver):
    async with running(place, receiver) as hookline:
        await until(lambda: hookline.mover.is_moving)
        hookline._heartbeat.on_outbox = lambda _: None  # pulses tell nothing
        place.commit(Draft("a", 1))
        nudge()
        await receiver.wait_for_requests(1)


@everywhere
async def test_what_is_moved_is_dropped_before_the_end(place, receiver):
    async with running(place, receiver) as hookline:
        [mover] = [each.mover for each in hookline.mover.watches if place.is_foreign == (each.name != "own")]
        place.commit(*(Draft("a", n) for n in range(10)))
        await until(lambda: mover.moved == 10)
        place.commit(*(Draft("a", n) for n in range(10)))  # from an SQLite file these are not dropped at once
        await until(lambda: mover.moved == 20)
    assert place.application.kept() == []


@pytest.mark.parametrize("place", ["own postgres"], indirect=True)
async def test_two_movers_by_mistake_lose_and_double_nothing(place, receiver):
    async with running(place, receiver) as one, running(place, receiver) as two:
        for hookline in (one, two):
            hookline.mover._wins = lambda: True
        total = 0
        for n in range(1, 30):
            place.commit(*(Draft("a", total + each) for each in range(n)))
            total += n
        await receiver.wait_for_requests(total)
        await emptied(one)
        await until(lambda: one.worker.dispatcher.in_flight + two.worker.dispatcher.in_flight == 0)
        assert sorted(map(int, receiver.bodies())) == list(range(total))
        assert await refused(one) == {}


@pytest.mark.parametrize("place", ["own postgres"], indirect=True)
async def test_one_worker_moves_and_the_next_one_when_it_leaves(place, receiver):
    async with running(place, receiver) as first:
        await until(lambda: first.mover.is_moving)
        async with running(place, receiver) as second:
            await until(lambda: bool(second._heartbeat.peers))
            assert not second.mover.is_moving
            await first.stop()
            await until(lambda: second.mover.is_moving)
            place.commit(Draft("a", 1))
            await receiver.wait_for_requests(1)


@pytest.mark.parametrize("place", ["own postgres"], indirect=True)
async def test_a_process_without_the_right_to_read_the_outbox_delivers_all_the_same(
    place, receiver, application_server
):
    place.application.run("DROP ROLE IF EXISTS poor")
    place.application.run("CREATE ROLE poor LOGIN")
    for statement in (
        "GRANT USAGE ON SCHEMA hookline TO poor",
        "GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA hookline TO poor",
        "GRANT USAGE ON ALL SEQUENCES IN SCHEMA hookline TO poor",
        "REVOKE ALL ON hookline.outbox FROM poor",
    ):
        place.application.run(statement)
    poor = place._replace(database=place.database.replace("//postgres@", "//poor@"))
    async with running(poor, receiver) as hookline:
        await until(lambda: hookline.mover._own.trouble is not None)
        assert "permission denied" in hookline.mover._own.trouble
        await hookline.publish("a", 1)
        await receiver.wait_for_requests(1)
        assert hookline.is_ready
        [source] = await hookline.store.outbox_sources()
        assert source.trouble == hookline.mover._own.trouble


@pytest.mark.parametrize("place", ["foreign sqlite", "foreign postgres"], indirect=True)
async def test_a_source_without_its_table_is_said_and_tried_again(place, receiver):
    is_postgres = isinstance(place.application, Postgres)
    place.application.run("DROP TABLE hookline.outbox" if is_postgres else "DROP TABLE hookline_outbox")
    async with running(place, receiver) as hookline:
        [_, watch] = hookline.mover.watches
        await until(lambda: watch.trouble is not None)
        await hookline.publish("a", 1)
        await receiver.wait_for_requests(1)
        if is_postgres:
            place.application.run(ddl("postgresql"))
        else:
            with closing(sqlite3.connect(place.application.path)) as connection:
                connection.executescript(ddl("sqlite"))
        place.commit(Draft("a", 2))
        await receiver.wait_for_requests(2)
        await until(lambda: watch.trouble is None)


@pytest.mark.parametrize("place", ["foreign sqlite"], indirect=True)
async def test_a_file_that_is_away_or_replaced_is_read_once_it_is_there(place, receiver):
    path = place.application.path
    path.rename(path.with_suffix(".away"))
    async with running(place, receiver) as hookline:
        [_, watch] = hookline.mover.watches
        await until(lambda: watch.trouble is not None)
        await hookline.publish("a", 1)
        await receiver.wait_for_requests(1)
        path.with_suffix(".away").rename(path)
        place.commit(Draft("a", 2))
        await receiver.wait_for_requests(2)
        await emptied(hookline)
        path.rename(path.with_suffix(".old"))  # as a restore does; its numbers begin again
        made_on_sqlite(path)
        place.commit(Draft("a", 3), Draft("a", 4))
        hookline.mover.watches[1].mover.floor = Floor()  # half a minute is over
        await receiver.wait_for_requests(4)
        assert receiver.bodies() == [b"1", b"2", b"3", b"4"]


@pytest.mark.parametrize("place", ["foreign postgres"], indirect=True)
async def test_rows_that_cannot_be_deleted_are_moved_once(place, receiver):
    for statement in (
        "DROP ROLE IF EXISTS reader",
        "CREATE ROLE reader LOGIN",
        "GRANT USAGE ON SCHEMA hookline TO reader",
        "GRANT SELECT ON hookline.outbox TO reader",
    ):
        place.application.run(statement)
    url = place.application.url.replace("//postgres@", "//reader@")
    settings = msgspec.structs.replace(place.settings, outbox=(url,))
    async with Hookline(settings=settings) as hookline:
        await hookline.create_endpoint(url=receiver.url(), events=["*"])
        [_, watch] = hookline.mover.watches
        for n in range(3):
            place.commit(Draft("a", n))
            await receiver.wait_for_requests(n + 1)
        await until(lambda: watch.trouble is not None)
        assert "GRANT USAGE ON SCHEMA hookline, and SELECT, DELETE" in watch.trouble
        place.application.run("GRANT DELETE ON hookline.outbox TO reader")
        await until(lambda: not place.application.kept())
        await until(lambda: watch.trouble is None)
        assert receiver.bodies() == [b"0", b"1", b"2"]
    place.application.run("DROP OWNED BY reader; DROP ROLE reader")


@pytest.mark.parametrize("place", ["own postgres"], indirect=True)
async def test_a_process_that_only_publishes_moves_nothing_and_tells_the_one_that_does(place, receiver):
    async with Hookline(settings=place.settings, deliver=False) as publisher:
        place.commit(Draft("a", 1))
        async with running(place, receiver) as hookline:
            await receiver.wait_for_requests(1)
            await until(lambda: bool(publisher._heartbeat.peers))
            assert hookline._heartbeat.id > publisher._heartbeat.id
            assert hookline.mover.is_moving
            assert not publisher.mover.is_moving
            pulsed = asyncio.Event()
            hookline._heartbeat.nudge = pulsed.set
            nudging.nudge()
            await asyncio.wait_for(pulsed.wait(), 60)


@anywhere
async def test_an_outbox_that_nobody_uses_is_asked_by_the_pulse_alone(place, receiver):
    async with running(place, receiver) as hookline:
        [own] = hookline.mover.watches
        await until(lambda: hookline.mover.is_moving and own._is_known)
        looks = []
        look = own.mover.source.table.look_at_outbox
        hookline.store.look_at_outbox = lambda request: looks.append(request) or look(request)
        pulses = []
        heard = hookline._heartbeat.on_outbox
        hookline._heartbeat.on_outbox = lambda found: pulses.append(found) or heard(found)
        await until(lambda: len(pulses) >= 5)
        assert set(pulses) == {False}
        assert looks == []
        assert await hookline.store.outbox_sources() == []


@anywhere
async def test_what_is_moved_is_clear_after_a_while_and_pruning_waits_until_then(place, receiver):
    async with running(place, receiver) as hookline:
        place.commit(Draft("a", 1))
        await receiver.wait_for_requests(1)
        [first] = await hookline.store.outbox_sources()
        assert first.name == "own"
        await emptied(hookline)

        async def is_clear() -> bool:
            [source] = await hookline.store.outbox_sources()
            own = hookline.mover.watches[0]
            own._noted_at = float("-inf")  # the minute is over
            return source.clear_at > first.clear_at

        await until(is_clear)
        event = (await hookline.store.outbox_sources())[0]
        assert event.waiting == 0


@pytest.mark.parametrize("place", ["foreign sqlite"], indirect=True)
async def test_an_open_write_transaction_of_the_application_delays_only_the_drop(place, receiver):
    async with running(place, receiver) as hookline:
        place.commit(Draft("a", 1))
        with place.connect() as connection:  # BEGIN IMMEDIATE
            publish(connection, "open", 2)
            await receiver.wait_for_requests(1)
            assert len(place.application.kept()) == 1
            connection.execute("COMMIT")
        await receiver.wait_for_requests(2)
        await emptied(hookline)


@everywhere
async def test_a_backlog_of_one_account_does_not_hold_up_the_others(place, receiver):
    rows = 1_500
    drafts = [Draft("busy", n, account="busy") for n in range(rows)]
    drafts += [Draft("quiet", n, account=f"q{n}") for n in range(3)]
    order: list[tuple[str, bytes]] = []
    async with running(place, receiver) as hookline:
        accept = hookline.outbox.accept

        async def noted(checked: CheckedRows, *, source: str):
            order.extend((row.type, row.payload) for row in checked.rows)
            return await accept(checked, source=source)

        hookline.outbox.accept = noted
        with place.connect() as connection:
            for start in range(0, len(drafts), 1_000):
                publish_many(connection, drafts[start : start + 1_000])
            connection.execute("COMMIT")
        await until(lambda: len(order) >= len(drafts))
        await emptied(hookline)
    assert len(order) == rows + 3
    assert max(place for place, (type, _) in enumerate(order) if type == "quiet") < 1_000 + 10
    assert [int(payload) for type, payload in order if type == "busy"] == list(range(rows)), "and in order"
