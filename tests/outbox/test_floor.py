"""The floor of an outbox on PostgreSQL never rises over a row that commits late."""

import asyncio
from contextlib import closing

import psycopg
import pytest

from hookline.clock import SystemClock
from hookline.outbox import Draft, publish
from hookline.pipeline.outbox.moving import RowMover
from hookline.pipeline.outbox.source import own
from outbox.moved import running, stored

pytestmark = pytest.mark.anyio


class SkippingClock(SystemClock):
    """The real clock, some seconds of which a test can skip."""

    skipped = 0.0

    def monotonic(self) -> float:  # type: ignore[override]  # the system's is the function itself
        return SystemClock.monotonic() + self.skipped


@pytest.fixture
async def mover(place, receiver):
    """A mover whose every LOOK is slow; the hookline's own moves nothing."""
    async with running(place, receiver) as hookline:
        hookline.mover._wins = lambda: False
        hookline.mover._pulsed(None)
        yield RowMover(own(hookline.store, is_file=False), hookline.outbox, SkippingClock(), slow_s=0.0)


async def nothing(_: float) -> None:
    pass


async def risen(mover: RowMover, value: int) -> None:
    """Move until the floor is there: any other transaction of the server may be under way at one LOOK."""
    async with asyncio.timeout(60):
        while mover.floor.value < value:
            await move(mover)
    assert mover.floor.value == value


async def move(mover: RowMover, *, after: float = 2.0) -> None:
    mover._clock.skipped += after
    assert await mover.move_all(may_go_on=lambda: True, before_first=nothing) is None


@pytest.mark.parametrize("place", ["own postgres"], indirect=True)
async def test_a_row_that_commits_late_is_above_the_floor(place, mover):
    """[By distance, or from the snapshot of a later statement: rows that commit late are lost for half a minute.]"""
    with psycopg.connect(place.application.url) as late:
        publish(late, "late", "late")  # it has the first number
        for n in range(3):
            place.commit(Draft("a", n))
            await move(mover)
        assert mover.floor.value == 0, "the first transaction has not ended"
        late.commit()
    place.commit(Draft("a", 3))
    await move(mover)
    assert [payload for _, payload in stored(place)] == [b"0", b"1", b"2", b'"late"', b"3"]
    await risen(mover, 5)  # the numbers below have nothing to bring any more
    place.commit(Draft("a", 4))
    await move(mover)
    assert [payload for _, payload in stored(place)][-1] == b"4"


@pytest.mark.parametrize("place", ["own postgres"], indirect=True)
async def test_a_dump_does_not_hold_the_floor_back_and_a_prepared_transaction_does(place, mover):
    with psycopg.connect(place.application.url) as dump:
        dump.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
        dump.execute("SELECT count(*) FROM hookline.outbox")
        for n in range(3):
            place.commit(Draft("a", n))
            await move(mover)
        await risen(mover, 3)
    with closing(psycopg.connect(place.application.url)) as prepared:
        prepared.tpc_begin("held")
        publish(prepared, "prepared", "prepared")
        prepared.tpc_prepare()
    for n in range(3):
        place.commit(Draft("a", n))
        await move(mover)
    assert mover.floor.value == 3
    place.application.run("COMMIT PREPARED 'held'")
    await move(mover)
    assert [payload for _, payload in stored(place)][-1] == b'"prepared"'
