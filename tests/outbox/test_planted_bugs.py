"""Each simpler way of moving rows that was tried and is wrong is found by a scene of its own.

A scene is one interleaving of application and movers over a real store. It says what went wrong: nothing, as the code
is, and something with the bug planted. Where a bug cannot show on a store, the scene is played on the other.
"""

import sqlite3
from collections.abc import Awaitable, Callable, Iterator
from contextlib import closing, contextmanager
from typing import Any, NamedTuple

import msgspec
import psycopg
import pytest

from hookline.admin.event_types import EventTypeInput
from hookline.errors import IdempotencyConflict
from hookline.ids import read
from hookline.outbox import blocking, publish
from hookline.outbox.errors import NotInTransaction
from hookline.pipeline.intake.drafts import Published
from hookline.pipeline.outbox.accepting import Accepted, CheckedRows, RowAcceptor
from hookline.pipeline.outbox.moving import RowMover
from hookline.rules import outbox_floor
from hookline.store.contract import LookRequest, OutboxHead, RowPlace, SourceRow
from outbox.stage import Died, Stage, StepAcceptor, StepTable, staged

pytestmark = pytest.mark.anyio

POSTGRES, BOTH, SQLITE = ("postgres",), ("sqlite", "postgres"), ("sqlite",)
Wrong = list[str]


@contextmanager
def replaced(owner: Any, name: str, value: Any) -> Iterator[None]:
    """Have another value there, as long as the bug is planted."""
    before = getattr(owner, name)
    setattr(owner, name, value)
    try:
        yield
    finally:
        setattr(owner, name, before)


# --- the scenes ---


async def a_low_number_commits_late(stage: Stage) -> Wrong:
    """O1: the row with the lower number becomes visible after the higher one was moved."""
    mover, _, _ = stage.mover()
    late = stage.begin("late")
    stage.commit("early")
    await stage.move(mover)
    late.commit()
    await stage.move(mover)
    await stage.move(mover)
    return [f"stays: {name}" for name in await stage.rest()]


async def the_process_dies_before_it_accepts(stage: Stage) -> Wrong:
    """O2: what was read is not stored yet."""
    mover, _, acceptor = stage.mover()
    stage.commit("a", "b")

    async def die() -> None:
        raise Died

    acceptor.before = die
    with pytest.raises(Died):
        await stage.move(mover)
    again, _, _ = stage.mover()
    await stage.move(again)
    return [f"lost: {name}" for name in await stage.lost()]


async def two_movers_take_batches_of_unequal_size(stage: Stage) -> Wrong:
    """O3: the first one stalls with what it read; the second one reads fewer rows and goes on."""
    names = [f"n{n}" for n in range(8)]
    stage.commit(*names)
    slow, table, _ = stage.mover()
    quick, _, _ = stage.mover()
    slow._batch = msgspec.structs.replace(slow._batch, most=5)
    quick._batch = msgspec.structs.replace(quick._batch, most=2)

    async def overtake() -> None:
        await stage.move(quick)

    table.after_look = overtake
    await stage.move(slow)
    wrong = [f"lost: {name}" for name in await stage.lost()]
    return wrong if stage.accepted == names else [*wrong, f"out of order: {stage.accepted}"]


async def a_commit_is_followed_by_another_publish(stage: Stage) -> Wrong:
    """O4: a row becomes visible while a higher one is accepted; after that commit the next is published."""
    mover, _, acceptor = stage.mover()
    first = stage.begin("first")
    stage.commit("beside")

    async def go_on() -> None:
        first.commit()
        stage.commit("second")

    acceptor.before = go_on
    await stage.move(mover)
    await stage.move(mover)
    order = [name for name in stage.accepted if name != "beside"]
    return [] if order == ["first", "second"] else [f"out of order: {order}"]


async def a_transaction_ends_right_after_a_look(stage: Stage) -> Wrong:
    """O5: it ends after the rows were read, and before anybody asks again which transactions have ended."""
    mover, table, _ = stage.mover()
    late = stage.begin("late")
    stage.commit("early")
    await stage.move(mover)  # the floor is begun
    stage.clock.advance(2 * outbox_floor.DRAWN_S)

    async def end() -> None:
        late.commit()

    table.after_look = end
    await stage.move(mover)
    await stage.move(mover)
    return [f"stays: {name}" for name in await stage.rest()]


async def a_transaction_stays_open_while_many_commit(stage: Stage) -> Wrong:
    """O6: its number is far below the others when it commits."""
    mover, _, _ = stage.mover()
    late = stage.begin("late")
    for n in range(30):
        stage.commit(f"n{n}")
        await stage.move(mover)
        stage.clock.advance(0.1)
    late.commit()
    await stage.move(mover)
    return [f"stays: {name}" for name in await stage.rest()]


async def a_drop_is_repeated(stage: Stage) -> Wrong:
    """O7: a DROP whose answer was lost is made again after the application has published the next row."""
    mover, table, _ = stage.mover()
    stage.commit("a")
    head = await table.look_at_outbox(LookRequest())
    await stage.move(mover)
    stage.commit("b")
    await table.drop_from_outbox([RowPlace(row.seq, row.id) for row in head.rows])
    return [f"lost: {name}" for name in await stage.lost()]


async def a_source_is_away_for_longer_than_events_are_kept(stage: Stage) -> Wrong:
    """O8: its row was accepted and not dropped; the event is pruned; the source comes back."""
    stage.commit("a")
    store = stage.hookline.store
    [row] = (await store.look_at_outbox(LookRequest())).rows
    watch = stage.hookline.mover.watches[0]
    await watch._register(row.at - 60.0)
    acceptor = stage.hookline.outbox
    await acceptor.accept(acceptor.check([row], source="own"), source="own")
    far = row.at + 10_000_000.0
    await store.prune(done_before=far, dead_before=far, limit=100)
    return [] if await stage.stored(row.id) is not None else ["pruned: its row would be sent again"]


async def a_row_is_refused(stage: Stage) -> Wrong:
    """O9: it must not be read again and again."""
    mover, _, _ = stage.mover()
    await stage.hookline.event_types.put("bad", EventTypeInput(schema={"type": "object"}))
    stage.commit("bad", "good")
    await stage.move(mover)
    wrong = [f"stays: {name}" for name in await stage.rest()]
    return wrong if await stage.refused() == {"bad": "schema_mismatch"} else [*wrong, "not refused"]


async def an_id_is_another_events(stage: Stage) -> Wrong:
    """O10: the application wrote the id of an event that is there, with other content."""
    mover, _, _ = stage.mover()
    event = await stage.hookline.publish("there", 1)
    _by_hand(stage, read("event", event.id), "taken", b"2")
    stage.published.append("taken")
    await stage.move(mover)
    return [] if await stage.refused() == {"taken": "id_conflict"} else ["nobody hears of it"]


async def an_application_publishes_in_autocommit(stage: Stage) -> Wrong:
    """O11: what it does next fails, and the event is sent all the same."""
    if stage.is_postgres:
        connection: Any = psycopg.connect(stage.database, autocommit=True)
    else:
        path = stage.database.removeprefix("sqlite:///")
        connection = sqlite3.connect(path, timeout=60, isolation_level=None)
    try:
        publish(connection, "too.early", 1)
        connection.execute("SELECT 1 FROM no_such_table")
    except (NotInTransaction, psycopg.Error, sqlite3.Error):
        connection.rollback()
    finally:
        connection.close()
    return [f"sent: {name}" for name in await stage.rest()]


async def a_key_is_used_again_for_something_else(stage: Stage) -> Wrong:
    """O12: the event is not stored because of its key; why, only the prior says."""
    mover, _, _ = stage.mover()
    await stage.hookline.publish("prior", 1, idempotency_key="k")
    stage.commit("other", idempotency_key="k")
    await stage.move(mover)
    return [] if await stage.refused() == {"other": "idempotency_conflict"} else ["nobody hears of it"]


def _by_hand(stage: Stage, id: bytes, type: str, payload: bytes) -> None:
    if stage.is_postgres:
        with psycopg.connect(stage.database) as session:
            statement = "INSERT INTO hookline.outbox (id, type, payload) VALUES (%s, %s, %s)"
            session.execute(statement, (id.hex(), type, payload))
        return
    with closing(sqlite3.connect(stage.database.removeprefix("sqlite:///"), timeout=60)) as file, file:
        file.execute("INSERT INTO hookline_outbox (id, type, payload) VALUES (?, ?, ?)", (id, type, payload))


# --- the bugs ---


@contextmanager
def cursor(stage: Stage) -> Iterator[None]:
    """O1: LOOK reads from the highest number on that was seen."""
    look = StepTable.look_at_outbox
    seen = 0

    async def behind(self: StepTable, request: LookRequest) -> OutboxHead:
        nonlocal seen
        head = await look(self, msgspec.structs.replace(request, floor=seen))
        seen = max([seen, *(row.seq for row in head.rows)])
        return head

    with replaced(StepTable, "look_at_outbox", behind):
        yield


@contextmanager
def drop_first(stage: Stage) -> Iterator[None]:
    """O2."""
    accept = StepAcceptor.accept

    async def early(self: StepAcceptor, checked: CheckedRows, *, source: str) -> Accepted:
        await stage.hookline.store.drop_from_outbox([RowPlace(row.seq, row.id) for row in checked.rows])
        return await accept(self, checked, source=source)

    with replaced(StepAcceptor, "accept", early):
        yield


@contextmanager
def skip_locked(stage: Stage) -> Iterator[None]:
    """O3: LOOK locks the rows of its batch until they are dropped, and passes over those that others have locked."""
    look, locks = StepTable.look_at_outbox, []

    async def locking(self: StepTable, request: LookRequest) -> OutboxHead:
        head = await look_without_scene(self, request)
        session = psycopg.connect(stage.database)
        locks.append(session)
        most = sizes[self]
        found = session.execute(
            "SELECT seq FROM hookline.outbox WHERE seq = ANY(%s) ORDER BY seq LIMIT %s FOR UPDATE SKIP LOCKED",
            ([row.seq for row in head.rows], most),
        ).fetchall()
        mine = {seq for (seq,) in found}
        act, self.after_look = self.after_look, None
        if act is not None:
            await act()
        return msgspec.structs.replace(head, rows=[row for row in head.rows if row.seq in mine])

    async def look_without_scene(self: StepTable, request: LookRequest) -> OutboxHead:
        act, self.after_look = self.after_look, None
        head = await look(self, request)
        self.after_look = act
        return head

    async def drop(self: StepTable, rows: Any) -> None:
        for each in locks:
            each.close()
        locks.clear()
        await self._table.drop_from_outbox(rows)

    sizes: dict[StepTable, int] = _Sizes()
    with replaced(StepTable, "look_at_outbox", locking), replaced(StepTable, "drop_from_outbox", drop):
        try:
            yield
        finally:
            for each in locks:
                each.close()


class _Sizes(dict[StepTable, int]):
    """The first mover takes five rows at a time, all others two."""

    def __missing__(self, table: StepTable) -> int:
        self[table] = 2 if self else 5
        return self[table]


@contextmanager
def next_by_number(stage: Stage) -> Iterator[None]:
    """O4: the LOOK beside an accept begins after the batch that is accepted."""
    look = RowMover._look

    async def after(self: Any, batch: Any) -> Any:
        if not batch:
            return await look(self, batch)
        top = max(row.seq for row in batch)
        with replaced(RowMover, "above", lambda self, *, now: top):
            return await look(self, batch)

    with replaced(RowMover, "_look", after):
        yield


@contextmanager
def floor_from_a_later_snapshot(stage: Stage) -> Iterator[None]:
    """O5: which transactions have ended is asked in another statement."""
    look = StepTable.look_at_outbox

    async def later(self: StepTable, request: LookRequest) -> OutboxHead:
        head = await look(self, request)
        with psycopg.connect(stage.database) as session:
            asked = "SELECT pg_snapshot_xmin(pg_current_snapshot())::text::bigint"
            row = session.execute(asked).fetchone()
        assert row is not None
        return msgspec.structs.replace(head, low=row[0])

    with replaced(StepTable, "look_at_outbox", later):
        yield


@contextmanager
def floor_by_distance(stage: Stage) -> Iterator[None]:
    """O6: what is ten numbers below the highest one is taken for ended."""

    def far_below(floor: Any, **facts: Any) -> Any:
        return msgspec.structs.replace(floor, value=max(0, facts["top"] - 10), whole_at=facts["began"])

    with replaced(outbox_floor, "after_look", far_below):
        yield


@contextmanager
def drop_by_number(stage: Stage) -> Iterator[None]:
    """O7: the table gives numbers again, and DROP names nothing else."""
    path = stage.database.removeprefix("sqlite:///")
    with closing(sqlite3.connect(path, timeout=60)) as file:
        [(made,)] = file.execute("SELECT sql FROM sqlite_master WHERE name = 'hookline_outbox'").fetchall()
        file.execute("DROP TABLE hookline_outbox")
        file.execute(made.replace(" AUTOINCREMENT", ""))
        file.commit()

    async def by_number(self: StepTable, rows: Any) -> None:
        with closing(sqlite3.connect(path, timeout=60)) as file, file:
            file.executemany("DELETE FROM hookline_outbox WHERE seq = ?", [(row.seq,) for row in rows])

    with replaced(StepTable, "drop_from_outbox", by_number):
        yield


@contextmanager
def prune_without_clear(stage: Stage) -> Iterator[None]:
    """O8: pruning knows of no source."""
    store = stage.hookline.store

    async def nothing(source: SourceRow) -> None:
        pass

    with replaced(store, "note_source", nothing):
        yield


@contextmanager
def refused_row_stays(stage: Stage) -> Iterator[None]:
    """O9: a refused row is not dropped."""
    accept = RowAcceptor.accept

    async def keep(self: Any, rows: Any, *, source: str) -> Accepted:
        accepted = await accept(self, rows, source=source)
        bad = {row.seq for row in accepted.refused}
        return msgspec.structs.replace(accepted, done=[row for row in accepted.done if row.seq not in bad])

    with replaced(RowAcceptor, "accept", keep):
        yield


@contextmanager
def id_conflict_as_repeat(stage: Stage) -> Iterator[None]:
    """O10: an id that is there is a repeat, whatever it names."""

    async def none(self: Any, repeats: Any, *, source: str, now: float) -> list[Any]:
        return []

    with replaced(RowAcceptor, "_conflicts", none):
        yield


@contextmanager
def autocommit_allowed(stage: Stage) -> Iterator[None]:
    """O11."""
    with (
        replaced(blocking, "check_psycopg", lambda connection: None),
        replaced(blocking, "check_sqlite3", lambda connection: None),
    ):
        yield


@contextmanager
def dropped_before_its_prior_is_read(stage: Stage) -> Iterator[None]:
    """O12: a row whose key is taken is done, whatever the key names."""
    intake = stage.hookline.intake
    accept = intake.accept

    async def blind(drafts: Any) -> Any:
        return [
            Published(draft.id, draft.type, draft.account, 0.0, 0, True)
            if isinstance(result, IdempotencyConflict)
            else result
            for draft, result in zip(drafts, await accept(drafts), strict=True)
        ]

    with replaced(intake, "accept", blind):
        yield


class Case(NamedTuple):
    """A bug, the scene that finds it, and where it can show."""

    scene: Callable[[Stage], Awaitable[Wrong]]
    bug: Callable[[Stage], Any]
    stores: tuple[str, ...]
    shows: str  # how what it makes wrong begins


CASES = {
    "O1": Case(a_low_number_commits_late, cursor, POSTGRES, "stays: late"),
    "O2": Case(the_process_dies_before_it_accepts, drop_first, BOTH, "lost: a"),
    "O3": Case(two_movers_take_batches_of_unequal_size, skip_locked, POSTGRES, "out of order"),
    "O4": Case(a_commit_is_followed_by_another_publish, next_by_number, POSTGRES, "out of order"),
    "O5": Case(a_transaction_ends_right_after_a_look, floor_from_a_later_snapshot, POSTGRES, "stays: late"),
    "O6": Case(a_transaction_stays_open_while_many_commit, floor_by_distance, POSTGRES, "stays: late"),
    "O7": Case(a_drop_is_repeated, drop_by_number, SQLITE, "lost: b"),
    "O8": Case(a_source_is_away_for_longer_than_events_are_kept, prune_without_clear, BOTH, "pruned"),
    "O9": Case(a_row_is_refused, refused_row_stays, BOTH, "stays: bad"),
    "O10": Case(an_id_is_another_events, id_conflict_as_repeat, BOTH, "nobody hears"),
    "O11": Case(an_application_publishes_in_autocommit, autocommit_allowed, BOTH, "sent: too.early"),
    "O12": Case(
        a_key_is_used_again_for_something_else, dropped_before_its_prior_is_read, BOTH, "nobody hears"
    ),
}
PLAYED = [(name, store) for name, case in CASES.items() for store in case.stores]


@pytest.fixture
def database(request: pytest.FixtureRequest, tmp_path) -> Iterator[str]:
    if request.param == "sqlite":
        yield f"sqlite:///{tmp_path}/hookline.db"
        return
    server = request.getfixturevalue("application_server")
    with server.fresh_database() as url:
        yield url


@pytest.mark.parametrize(("name", "database"), PLAYED, indirect=["database"])
async def test_the_scene_finds_nothing_wrong_and_finds_the_bug(name, database):
    case = CASES[name]
    async with staged(database) as stage:
        assert await case.scene(stage) == []
    if database.startswith("sqlite"):
        database = database.replace("hookline.db", "planted.db")
    else:
        _emptied(database)
    async with staged(database) as stage:
        with case.bug(stage):
            wrong = await case.scene(stage)
    assert any(each.startswith(case.shows) for each in wrong), wrong


def _emptied(database: str) -> None:
    with psycopg.connect(database, autocommit=True) as session:
        session.execute(
            "TRUNCATE hookline.outbox, hookline.outbox_refused, hookline.outbox_sources, hookline.events, "
            "hookline.idempotency, hookline.event_types"
        )


def test_every_bug_that_was_tried_has_a_scene():
    assert list(CASES) == [f"O{n}" for n in range(1, 13)]
