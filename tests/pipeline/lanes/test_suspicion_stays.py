"""What was under way when a worker died is marked before it is sent again, whatever comes between."""

import asyncio

import pytest

from hookline import ids
from hookline.errors import StoreUnavailable
from hookline.model import State
from hookline.pipeline.intake.drafts import Draft
from hookline.store.contract import Want
from tests.receiver import Answer, Receiver
from tests.world import World

pytestmark = pytest.mark.anyio

ONCE_AN_HOUR = {"schedule": [0, 3600], "jitter": "none"}


async def test_a_lane_that_is_let_go_before_its_suspects_were_sent(world: World, receiver: Receiver):
    hooks = await world.start()
    await hooks.create_endpoint(url=receiver.url(), events=["*"])
    receiver.answer = lambda body: _no_answer()
    await hooks.accept([Draft("order.paid", b"1")])
    await world.until(lambda: len(receiver.requests) == 1)
    await world.crash(hooks)
    leaving = await world.start()
    asked = asyncio.Event()

    async def fails(worker, suspects, *, now):
        asked.set()
        raise StoreUnavailable("cut off before they were marked")

    leaving.store.mark = fails
    await world.until(asked.is_set)
    assert await world.stop(leaving)
    heir = await world.start()
    await world.until(lambda: len(receiver.requests) == 2)
    assert await _marks(heir) == {b"1": 1}
    await world.crash(heir)


async def test_a_lane_whose_circuit_opens_before_all_its_suspects_were_sent(world: World, receiver: Receiver):
    hooks = await world.start()
    await hooks.create_endpoint(
        url=receiver.url(),
        events=["*"],
        max_in_flight=2,
        retry=ONCE_AN_HOUR,
        circuit={"consecutive_failures": 1, "cooldown_s": 1},
    )
    receiver.answer = lambda body: Answer(200) if body == b"0" else _no_answer()
    await hooks.accept([Draft("order.paid", b"0")])  # after it answered well, two may be under way at once
    await world.until(lambda: len(receiver.requests) == 1)
    await hooks.accept([Draft("order.paid", b"1"), Draft("order.paid", b"2")])
    await world.until(lambda: len(receiver.requests) == 3)
    await world.crash(hooks)
    receiver.answer = lambda body: Answer(500) if body == b"1" else _no_answer()
    heir = await world.start()
    await world.until(lambda: receiver.bodies().count(b"2") == 2)
    assert (await _marks(heir))[b"2"] == 1
    await world.crash(heir)


async def test_one_that_was_sent_while_those_before_it_were_not_settled(world: World, receiver: Receiver):
    """As far as a lane reaches: with a cap of one, many may be answered and not settled before what is under way."""
    hooks = await world.start()
    await hooks.create_endpoint(url=receiver.url(), events=["*"], max_in_flight=1)
    never = asyncio.Event()

    async def hangs(worker, settlements, *, notes, now):
        await never.wait()

    hooks.store.settle = hangs
    receiver.answer = lambda body: Answer(200) if body != b"9" else _no_answer()
    await hooks.accept([Draft("order.paid", b"%d" % n) for n in range(10)])
    await world.until(lambda: b"9" in receiver.bodies())
    await world.crash(hooks)
    heir = await world.start()
    await world.until(lambda: receiver.bodies().count(b"9") == 2)
    assert (await _marks(heir))[b"9"] == 1
    await world.crash(heir)


def _no_answer() -> Answer:
    return Answer(hold=asyncio.Event())


async def _marks(hooks) -> dict[bytes, int]:
    """The marks of what is pending, by its payload."""
    (endpoint,) = [lane.endpoint_id for lane in hooks.worker.ownership.lanes.values()]
    rows = await hooks.store.load([Want(endpoint, 100, 100)], known=[], now=hooks.clock.now())
    return {row.payload: row.marks for row in rows}


async def test_the_late_answer_to_a_dead_owner_ends_nobody_elses_turn(world: World, receiver: Receiver):
    """The dead owner and the next one may be the same process, which then knows the delivery twice."""
    hooks = await world.start()
    await hooks.create_endpoint(url=receiver.url(), events=["*"])
    hold = asyncio.Event()
    receiver.answers["/"] = [Answer(200, hold=hold), Answer(200)]
    (published,) = await hooks.accept([Draft("order.paid", b"1")])
    await world.until(lambda: len(receiver.requests) == 1)
    mark, asked, go_on = hooks.store.mark, asyncio.Event(), asyncio.Event()

    async def slow(worker, suspects, *, now):
        asked.set()
        await go_on.wait()
        return await mark(worker, suspects, now=now)

    hooks.store.mark = slow
    while True:  # it may beat between the check and the burial, and then it is not buried
        (row,) = (await hooks.store.pulse(seen=0)).workers
        if await hooks.store.bury(row.id, beat=row.beat, now=world.clock.now()):
            break
    await world.until(asked.is_set)
    hold.set()
    await world.until(lambda: hooks.worker.settler.late == 1)
    go_on.set()
    await world.until_state(hooks, ids.show("event", published.id), State.DELIVERED)
    assert len(receiver.requests) == 2
