"""Refused rows and outboxes that are late raise alerts, which are resolved when nothing is left of it."""

import pytest

from factories import a_refused_row
from hookline.model import AlertKind
from hookline.pipeline.measuring.alert_look import ALERTS_EVERY
from hookline.pipeline.outbox.mover import NOTE_EVERY_S
from hookline.store.contract import RefusedFilter, SourceRow
from hookline.store.contract.outbox import OutboxBacklog
from tests.world import World

pytestmark = pytest.mark.anyio

ALL = RefusedFilter()


async def firing(hooks):
    """What fires, by its kind and its outbox; hookline's own is read by hookline itself."""
    found = await hooks.store.firing_alerts()
    return [(each.kind, each.subject) for each in found if each.subject != "own"]


async def looked(world: World, hooks, times: int):
    """Let so many looks pass."""
    for _ in range(times):
        world.clock.advance(ALERTS_EVERY)
        for _ in range(40):
            await world.tick()


async def test_refused_rows_fire_until_none_is_left(world: World):
    hooks = await world.start()
    await world.pass_until(hooks.store.refuse([a_refused_row(account="not an account \N{SNOWMAN}")]))
    await world.until(lambda: firing(hooks))
    [alert] = await hooks.store.firing_alerts()
    assert (alert.kind, alert.account, alert.value, alert.threshold) == (
        AlertKind.OUTBOX_REFUSED,
        None,
        1.0,
        0,
    )
    [row] = await hooks.store.count_refused()
    assert row.rows == 1
    [kept] = await hooks.store.refused_rows(ALL, after=None, limit=10)
    await world.pass_until(hooks.store.discard_refused([kept.n]))
    await looked(world, hooks, 3)
    assert await firing(hooks) == []


async def test_an_outbox_whose_rows_wait_fires(world: World):
    hooks = await world.start()
    now = world.clock.now()
    slow = SourceRow("shop", clear_at=now, looked_at=now, waiting=9, oldest_at=now - 400)
    await world.pass_until(hooks.store.note_source(slow))
    await world.until(lambda: firing(hooks))
    [alert] = [each for each in await hooks.store.firing_alerts() if each.subject == "shop"]
    assert (alert.kind, alert.account) == (AlertKind.OUTBOX_LATE, None)
    assert alert.message.startswith("The outbox shop is 6 min late")


async def test_an_outbox_that_nobody_reads_fires_with_the_reason_and_is_resolved_when_it_is_read(
    world: World,
):
    hooks = await world.start()
    now = world.clock.now()
    away = SourceRow("shop", clear_at=now, looked_at=now, trouble="It cannot be reached.")
    await world.pass_until(hooks.store.note_source(away))
    await looked(world, hooks, 4)
    assert await firing(hooks) == []
    await looked(world, hooks, 3)
    assert await firing(hooks) == [(AlertKind.OUTBOX_LATE, "shop")]
    [alert] = [each for each in await hooks.store.firing_alerts() if each.subject == "shop"]
    assert alert.message.endswith("late: It cannot be reached.")
    for _ in range(3):
        await world.pass_until(hooks.store.note_source(SourceRow("shop", looked_at=world.clock.now())))
        await looked(world, hooks, 1)
    assert await firing(hooks) == []


async def test_an_outbox_that_was_removed_fires_with_how_to_forget_it(world: World):
    hooks = await world.start()
    now = world.clock.now()
    await world.pass_until(hooks.store.note_source(SourceRow("shop", clear_at=now, looked_at=now)))
    await looked(world, hooks, 8)
    [alert] = [each for each in await hooks.store.firing_alerts() if each.subject == "shop"]
    assert "late: not read for " in alert.message
    assert "`hookline outbox forget shop`" in alert.message


async def test_rows_that_were_told_to_wait_are_soon_told_to_be_moved(
    world: World, monkeypatch: pytest.MonkeyPatch
):
    hooks = await world.start()
    counts, count = [OutboxBacklog(3, world.clock.now())], hooks.store.outbox_backlog

    async def counted() -> OutboxBacklog:
        return counts.pop() if counts else await count()

    async def waiting() -> list[int]:
        return [each.waiting for each in await hooks.store.outbox_sources()]

    async def is_told() -> bool:
        return await waiting() == [3]

    async def is_told_again() -> bool:
        return await waiting() == [0]

    monkeypatch.setattr(hooks.store, "outbox_backlog", counted)
    [own] = hooks.mover.watches
    own._is_used = True
    own.look()
    await world.until(is_told)
    began = world.clock.now()
    await world.until(is_told_again)
    assert world.clock.now() - began < NOTE_EVERY_S / 2


async def test_a_clock_that_jumped_makes_no_outbox_late(world: World):
    hooks = await world.start()
    name, now = "shop", world.clock.now()
    await world.pass_until(hooks.store.note_source(SourceRow(name, clear_at=now, looked_at=now)))
    await looked(world, hooks, 1)
    world.clock.advance(3_600.0)
    for _ in range(40):
        await world.tick()
    await world.pass_until(hooks.store.note_source(SourceRow(name, looked_at=world.clock.now())))
    await looked(world, hooks, 2)
    assert [each.kind for each in await hooks.store.firing_alerts() if each.subject == name] == []


async def test_an_outbox_that_was_never_read_fires(world: World):
    hooks = await world.start()
    await world.pass_until(hooks.store.note_source(SourceRow("shop", trouble="There is no table.")))
    await looked(world, hooks, 4)
    assert await firing(hooks) == []
    await looked(world, hooks, 3)
    assert await firing(hooks) == [(AlertKind.OUTBOX_LATE, "shop")]
