"""A delivery that kills its worker ends as a dead letter; the rest of its lane is delivered."""

import asyncio

import pytest

from hookline.errors import StoreUnavailable
from hookline.model import Reason, State
from hookline.pipeline.intake.drafts import Draft
from tests.receiver import Answer, Receiver
from tests.world import World

pytestmark = pytest.mark.anyio

SOON = {"heartbeat_s": 0.4, "takeover_s": 1.5}  # a death is noticed after this


async def test_a_delivery_under_which_five_workers_died_is_given_up(world: World, receiver: Receiver):
    hooks = await world.start()
    await hooks.create_endpoint(url=receiver.url(), events=["*"], max_in_flight=3, circuit=None)
    poison = asyncio.Event()  # never set: the worker that sends the poison dies while it is under way

    def answers_for(body: bytes) -> Answer:
        return Answer(hold=poison) if body == b'"poison"' else Answer(200)

    receiver.answer = answers_for
    drafts = [Draft("order.paid", b"%d" % n) for n in range(30)]
    drafts.insert(4, Draft("order.paid", b'"poison"'))
    await hooks.accept(drafts)
    deaths = 0
    while True:
        running, died = hooks, deaths

        async def is_over(running=running) -> bool:
            counts = await running.store.counts()
            return counts.get(State.DEAD, 0) == 1 and counts.get(State.PENDING, 0) == 0

        async def is_poisoned_or_over(died=died, is_over=is_over) -> bool:
            return receiver.bodies().count(b'"poison"') > died or await is_over()

        await world.until(is_poisoned_or_over)
        if await is_over():
            break
        deaths += 1
        await world.crash(hooks)
        hooks = await world.start()
    assert deaths == 5
    counts = await hooks.store.counts()
    assert (counts[State.DELIVERED], counts[State.DEAD]) == (30, 1)
    (dead,) = [found for found in await _all(hooks) if found.state is State.DEAD]
    assert (dead.reason, dead.attempts) == (Reason.CRASH_LIMIT, 0)


async def test_it_is_also_given_up_when_there_is_no_room_to_read_all_suspects_at_once(
    world: World, receiver: Receiver
):
    hooks = await world.start(max_in_flight=8)
    for name in "abcd":
        await hooks.create_endpoint(
            url=receiver.url(f"/{name}"), events=[f"order.{name}"], max_in_flight=8, circuit=None
        )
    # A lane that answers is trusted step by step, until all eight may be under way at once.
    await hooks.accept([Draft(f"order.{name}", b'"first"') for name in "abcd" for _ in range(8)])
    await _until_none_is_pending(world, hooks)
    never = asyncio.Event()
    receiver.answer = lambda body: Answer(hold=never)
    await hooks.accept([Draft("order.a", b'"before"') for _ in range(7)] + [Draft("order.a", b'"poison"')])
    await receiver.wait_for(lambda: b'"poison"' in receiver.bodies())  # no time passes, so none is overdue
    await hooks.accept([Draft(f"order.{name}", b'"after"') for name in "bcd" for _ in range(8)])
    receiver.answer = lambda body: Answer(hold=never) if body == b'"poison"' else Answer(200)
    deaths = 0
    while not (await hooks.store.counts()).get(State.DEAD, 0):
        deaths += 1
        await world.crash(hooks)
        hooks = await world.start(max_in_flight=8)

        async def is_poisoned_or_over(running=hooks, died=deaths) -> bool:
            return (
                receiver.bodies().count(b'"poison"') > died
                or (await running.store.counts()).get(State.DEAD, 0) == 1
            )

        await world.until(is_poisoned_or_over)
    assert deaths == 5
    await _until_none_is_pending(world, hooks)


async def test_a_death_with_an_innocent_lane_costs_nothing_but_a_repeat(world: World, receiver: Receiver):
    hooks = await world.start()
    await hooks.create_endpoint(url=receiver.url(), events=["*"], max_in_flight=3)
    receiver.answers["/"] = [Answer(hold=asyncio.Event()), Answer(200)]
    await hooks.accept([Draft("order.paid", b"%d" % n) for n in range(30)])
    await world.until(lambda: receiver.requests)
    await world.crash(hooks)
    hooks = await world.start()

    async def is_over() -> bool:
        return (await hooks.store.counts()).get(State.DELIVERED, 0) == 30

    await world.until(is_over)
    assert len(receiver.requests) <= 30 + 3


async def test_suspects_that_could_not_be_marked_are_read_again(world: World, receiver: Receiver):
    hooks = await world.start()
    await hooks.create_endpoint(url=receiver.url(), events=["*"], max_in_flight=3)
    receiver.answers["/"] = [Answer(hold=asyncio.Event()), Answer(200)]
    await hooks.accept([Draft("order.paid", b"%d" % n) for n in range(30)])
    await world.until(lambda: receiver.requests)
    await world.crash(hooks)
    hooks = await world.start()
    mark, failures = hooks.store.mark, []

    async def fails_once(worker, suspects, *, now):
        if not failures:
            failures.append(suspects)
            raise StoreUnavailable("cut off before they were marked")
        return await mark(worker, suspects, now=now)

    hooks.store.mark = fails_once

    async def is_over() -> bool:
        return (await hooks.store.counts()).get(State.DELIVERED, 0) == 30

    await world.until(is_over)
    assert failures


async def test_what_is_suspected_most_waits_for_the_less_suspect_of_other_lanes(
    world: World, receiver: Receiver
):
    world.step = 0.002  # a turn ends by the clock, however long the database takes
    hooks = await world.start(**SOON)
    for name in "ab":
        await hooks.create_endpoint(url=receiver.url(f"/{name}"), events=[f"order.{name}"], circuit=None)
    receiver.answer = lambda body: Answer(hold=asyncio.Event())
    await hooks.accept([Draft("order.a", b'"often"')])
    for deaths in range(3):
        await world.until(lambda deaths=deaths: len(receiver.bodies("/a")) > deaths)
        if deaths == 2:
            await hooks.accept([Draft("order.b", b"%d" % n) for n in range(6)])
            await world.until(lambda: receiver.bodies("/b"))
        await world.crash(hooks)
        hooks = await world.start(**SOON)
    before = len(receiver.requests)
    receiver.answer = None
    await _until_none_is_pending(world, hooks)
    assert [each.path for each in receiver.requests[before:]] == ["/b"] * 6 + ["/a"]


async def test_an_endpoint_that_hangs_keeps_the_suspects_of_others_waiting_for_a_moment_only(
    world: World, receiver: Receiver
):
    world.step = 0.01
    hooks = await world.start(**SOON)
    for name in "ab":
        await hooks.create_endpoint(
            url=receiver.url(f"/{name}"), events=[f"order.{name}"], circuit=None, timeout_ms=30_000
        )
    receiver.answer = lambda body: Answer(hold=asyncio.Event())
    await hooks.accept([Draft("order.b", b'"once"')])
    for deaths in range(2):
        await world.until(lambda deaths=deaths: len(receiver.bodies("/b")) > deaths)
        if deaths == 1:
            await hooks.accept([Draft("order.a", b'"hangs"')])
            await world.until(lambda: receiver.bodies("/a"))
        await world.crash(hooks)
        hooks = await world.start(**SOON)
    await world.until(lambda: len(receiver.bodies("/a")) == 2)
    since = world.clock.monotonic()
    await world.until(lambda: len(receiver.bodies("/b")) == 3)
    assert world.clock.monotonic() - since < 15, "it does not wait for the end of the other's request"


async def test_one_that_goes_alone_and_endpoints_that_hang_do_not_stop_the_worker_for_longer_than_a_moment(
    world: World, receiver: Receiver
):
    world.step = 0.01
    hooks = await world.start(**SOON)
    for name in "abc":
        await hooks.create_endpoint(
            url=receiver.url(f"/{name}"), events=[f"order.{name}"], circuit=None, timeout_ms=60_000
        )
    receiver.answer = lambda body: Answer(hold=asyncio.Event())
    await hooks.accept([Draft("order.a", b'"alone"')])
    for deaths in range(3):
        await world.until(lambda deaths=deaths: len(receiver.bodies("/a")) > deaths)
        if deaths == 2:
            await hooks.accept([Draft("order.b", b'"hangs"')])
            await world.until(lambda: receiver.bodies("/b"))
        await world.crash(hooks)
        hooks = await world.start(**SOON)
    await world.until(lambda: len(receiver.bodies("/b")) == 2)
    since = world.clock.monotonic()
    await world.until(lambda: len(receiver.bodies("/a")) == 4)
    receiver.answer = None
    await hooks.accept([Draft("order.c", b'"other"')])
    await world.until(lambda: receiver.bodies("/c"))
    assert world.clock.monotonic() - since < 20, "neither waits for the end of another's request"


async def test_a_suspect_that_is_being_marked_when_its_circuit_opens_is_sent_once_when_it_closes(
    world: World, receiver: Receiver
):
    hooks = await world.start()
    await hooks.create_endpoint(
        url=receiver.url(),
        events=["*"],
        max_in_flight=4,
        timeout_ms=60_000,
        circuit={"consecutive_failures": 1, "cooldown_s": 0.5},
        retry={"schedule": [0, 1, 1, 1], "jitter": "none"},
    )
    # A lane that answers is trusted step by step, until four may be under way at once.
    await hooks.accept([Draft("order.paid", b'"first"') for _ in range(8)])
    await _until_none_is_pending(world, hooks)
    receiver.answer = lambda body: Answer(hold=asyncio.Event())
    await hooks.accept([Draft("order.paid", b"%d" % n) for n in range(4)])
    await receiver.wait_for(lambda: len(receiver.requests) == 12)
    await world.crash(hooks)
    fails = asyncio.Event()
    receiver.answer = lambda body: Answer(500, hold=fails) if body == b"2" else Answer(200)
    hooks = await world.start()
    mark, marked, go_on = hooks.store.mark, asyncio.Event(), asyncio.Event()

    async def slowly(worker, suspects, *, now):
        found = await mark(worker, suspects, now=now)
        if b"2" in receiver.bodies()[12:]:  # it is the last one's turn
            marked.set()
            await go_on.wait()
        return found

    hooks.store.mark = slowly
    await world.until(marked.is_set)
    finish = hooks.worker.dispatcher.finish

    def at_the_same_time(health, host):
        go_on.set()
        finish(health, host)

    hooks.worker.dispatcher.finish = at_the_same_time
    fails.set()
    await world.until(go_on.is_set)
    receiver.answer = None
    await _until_none_is_pending(world, hooks)
    assert sorted(receiver.bodies()[12:]) == [b"0", b"1", b"2", b"2", b"3"]


async def test_lanes_of_the_dead_are_left_to_others_too(shared_world: World, receiver: Receiver):
    world = shared_world
    receiver.answer = lambda body: Answer(hold=asyncio.Event())
    world.step = 0.01  # three beat, and none may be taken for dead because the database is busy
    # One that lives and has no room: whether it takes what is left to it does not depend on timing.
    peer = await world.start(max_in_flight=1)
    await peer.create_endpoint(url=receiver.url("/peer"), events=["peer"], circuit=None, timeout_ms=30_000)
    await peer.accept([Draft("peer", b"%d" % n) for n in range(20)])
    await world.until(lambda: receiver.bodies("/peer"))
    dying = await world.start()
    for n in range(8):
        await dying.create_endpoint(url=receiver.url(f"/{n}"), events=[f"order.{n}"], timeout_ms=30_000)
    await dying.accept([Draft(f"order.{n}", b'"suspect"') for n in range(8)])
    await world.until(lambda: receiver.bodies().count(b'"suspect"') == 8)
    survivor = await world.start()
    take, suspects = survivor.store.take, []

    async def counted(worker, *, limit, now):
        taken = await take(worker, limit=limit, now=now)
        suspects.append(sum(lane.suspect for lane in taken))
        return taken

    survivor.store.take = counted
    await world.crash(dying)
    await world.until(lambda: receiver.bodies().count(b'"suspect"') == 16)
    assert [number for number in suspects if number] == [1, 3, 4]


async def test_a_task_that_is_cancelled_before_its_first_step_keeps_no_other_from_being_run(
    world: World, receiver: Receiver
):
    hooks = await world.start()
    await hooks.create_endpoint(url=receiver.url(), events=["*"])
    await hooks.accept([Draft("order.paid", b"1")])
    await world.until(lambda: hooks.worker.ownership.lanes)
    (lane,) = hooks.worker.ownership.lanes.values()
    hooks.worker.events.tasks.run(lane, asyncio.sleep(0))
    hooks.worker.events.tasks.cancel(lane)
    ran = asyncio.Event()

    async def run() -> None:
        ran.set()

    def is_run() -> bool:
        hooks.worker.events.tasks.run(lane, run())
        return ran.is_set()

    await world.until(is_run)


async def _until_none_is_pending(world: World, hooks) -> None:
    async def is_over() -> bool:
        return not (await hooks.store.counts()).get(State.PENDING, 0)

    await world.until(is_over)


async def _all(hooks):
    from hookline.store.contract import DeliveryFilter

    return await hooks.store.list_deliveries(DeliveryFilter(), after=None, limit=200)
