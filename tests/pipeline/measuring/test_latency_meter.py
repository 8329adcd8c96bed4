"""What was measured agrees with the attempts that count, whatever happens to the process and its database."""

from collections import Counter

import pytest

from hookline import ids
from hookline.errors import StoreUnavailable
from hookline.ids import delivery_of
from hookline.model import NO_TIMINGS, EventId, Outcome, State, Timings
from hookline.pipeline.intake.drafts import Draft
from hookline.pipeline.measuring.latency_cells import LATENCY_COUNTS
from hookline.pipeline.measuring.latency_meter import (
    ADDED_UP_AT,
    FLUSH_EVERY,
    MOST_NEW,
    LatencyMeter,
    measure,
)
from hookline.rules.latency_buckets import (
    NOTHING,
    LatencyKind,
    add_encoded,
    bucket_of,
    by_answer,
    decompress,
    of_kind,
)
from hookline.store.contract import EVERY_ENDPOINT, Verdict
from hookline.testing.clock import ManualClock
from tests.factories import NOW, a_settlement, an_attempt
from tests.receiver import Answer, Receiver
from tests.refusing import refuse, relent
from tests.world import World

pytestmark = pytest.mark.anyio

DAY = 86_400.0


class Scene:
    """A running hookline with one endpoint, and the events that were published."""

    def __init__(self, world: World, hooks, endpoint) -> None:
        self.world = world
        self.hooks = hooks
        self.endpoint = endpoint
        self.events: list[EventId] = []

    async def publish(self, number: int, *, first: int = 0) -> None:
        drafts = [Draft("order.paid", b"%d" % n) for n in range(first, first + number)]
        accepted = await self.world.pass_until(self.hooks.accept(drafts))
        self.events += [event.id for event in accepted]

    async def until_delivered(self, number: int) -> None:
        async def are_they() -> bool:
            return (await self.hooks.store.counts())[State.DELIVERED] == number

        await self.world.until(are_they)

    async def attempts(self) -> Counter:
        """The attempts that count, by their bucket, from the table of attempts."""
        found: Counter = Counter()
        for event in self.events:
            for attempt in await self.hooks.store.attempts(delivery_of(event, 0)):
                if not attempt.late:
                    found[bucket_of(attempt.duration)] += 1
        return found

    async def counted(self, endpoint=None) -> dict[int, int]:
        """Everything that is in minutes."""
        now = self.world.clock.now()
        id = endpoint or self.endpoint
        parts = await self.hooks.store.latency_window([id], since=now - DAY, until=now + DAY)
        found: dict[int, int] = {}
        for part in parts:
            for data in (part.cell.response, part.cell.rest):
                add_encoded(found, decompress(data) if part.is_hour else data)
        return found

    async def are_equal(self) -> bool:
        counted = await self.counted()
        return of_kind(counted, LatencyKind.RESPONSE) == await self.attempts()

    async def judge(self) -> None:
        """The minutes agree with the attempts, by endpoint and together."""
        counted = await self.counted()
        assert of_kind(counted, LatencyKind.RESPONSE) == await self.attempts()
        assert await self.counted(EVERY_ENDPOINT) == counted
        assert NOTHING not in counted


@pytest.fixture
async def scene(world: World, receiver: Receiver) -> Scene:
    hooks = await world.start()
    retry = {"schedule": [0, 1, 1, 1], "jitter": "none"}
    endpoint = await hooks.create_endpoint(url=receiver.url(), events=["*"], max_in_flight=50, retry=retry)
    return Scene(world, hooks, ids.read("endpoint", endpoint.id))


async def let_pass(world: World, seconds: float) -> None:
    until = world.clock.now() + seconds
    await world.until(lambda: world.clock.now() >= until)


async def test_what_was_settled_is_in_minutes_after_ten_seconds(scene: Scene, receiver: Receiver):
    receiver.answer = lambda body: Answer(500 if body == b"7" and len(receiver.requests) < 30 else 200)
    await scene.publish(30)
    await scene.until_delivered(30)
    await let_pass(scene.world, FLUSH_EVERY + 1)
    await scene.world.until(scene.are_equal)
    await scene.judge()
    answers = by_answer(await scene.counted())
    assert answers["200"] == 30
    assert sum(answers.values()) == len(receiver.requests)


async def test_a_drain_writes_what_was_measured_itself(scene: Scene):
    """Nobody has to bury it for that."""
    store, flushed = scene.hooks.store, []
    flush = store.flush_latencies

    async def note(*given, **named):
        flushed.append(await flush(*given, **named))
        return flushed[-1]

    store.flush_latencies = note
    await scene.publish(20)
    await scene.until_delivered(20)
    before = len(flushed)
    assert await scene.world.stop(scene.hooks)
    assert flushed[before:] == [True]
    scene.hooks = await scene.world.start()
    await scene.judge()


async def test_nothing_settled_is_lost_with_a_process(scene: Scene):
    """The next one counts what the dead one settled and did not write."""
    await scene.publish(20)
    await scene.until_delivered(20)
    await scene.world.crash(scene.hooks)
    scene.hooks = await scene.world.start()
    await scene.world.until(scene.are_equal)
    await scene.judge()


async def test_attempts_whose_answer_was_lost_count_once(scene: Scene):
    store = scene.hooks.store
    settle, calls = store.settle, []

    async def lose_every_other_answer(*given, **named):
        verdicts = await settle(*given, **named)
        calls.append(named.get("log"))
        if len(calls) % 2:
            raise StoreUnavailable("the answer was lost")
        return verdicts

    store.settle = lose_every_other_answer
    await scene.publish(40)
    await scene.until_delivered(40)
    assert await scene.world.stop(scene.hooks)
    assert len({log.n for log in calls}) == len(calls) // 2, "a batch that is sent again keeps its number"
    scene.hooks = await scene.world.start()
    await scene.judge()


async def test_a_worker_that_was_taken_for_dead_counts_nothing_twice(scene: Scene):
    """The answer of its last batch is lost, it is buried, and sends the batch again under its new id."""
    store, buried = scene.hooks.store, []
    settle = store.settle

    async def be_buried_after_the_commit(worker, batch, **named):
        verdicts = await settle(worker, batch, **named)
        if batch and not buried:
            [row] = [each for each in (await store.pulse(seen=0)).workers if each.id == worker]
            assert await store.bury(worker, beat=row.beat, now=scene.world.clock.now())
            await store.free(worker, now=scene.world.clock.now())
            while await store.fold_latencies(worker, math=LATENCY_COUNTS, now=scene.world.clock.now()):
                pass
            await store.retire(worker)
            buried.append(worker)
            raise StoreUnavailable("the answer was lost")
        return verdicts

    store.settle = be_buried_after_the_commit
    await scene.publish(20)
    await scene.until_delivered(20)
    await scene.world.until(lambda: scene.hooks.worker.settler.worker() not in buried)
    await scene.publish(10, first=20)
    await scene.until_delivered(30)
    assert await scene.world.stop(scene.hooks)
    scene.hooks = await scene.world.start()
    await scene.judge()


async def test_one_that_is_set_aside_counts_when_it_is_written(scene: Scene, receiver: Receiver):
    await refuse(scene.hooks.store, "deliveries", "last_status = 299")
    receiver.answer = lambda body: Answer(299 if body == b"7" else 200)
    await scene.publish(20)
    await scene.until_delivered(19)
    await let_pass(scene.world, FLUSH_EVERY + 1)
    await scene.world.until(scene.are_equal)
    await relent(scene.hooks.store, "deliveries")
    await scene.until_delivered(20)
    assert await scene.world.stop(scene.hooks)
    scene.hooks = await scene.world.start()
    await scene.judge()
    assert by_answer(await scene.counted()) == {"200": 19, "299": 1}


async def test_one_that_is_written_without_evidence_counts_once(scene: Scene, receiver: Receiver):
    await refuse(scene.hooks.store, "attempts", "response_body IS NOT NULL")
    receiver.answer = lambda body: Answer(200, body=b"thanks" if body == b"7" else b"")
    await scene.publish(20)
    await scene.until_delivered(20)
    assert await scene.world.stop(scene.hooks)
    scene.hooks = await scene.world.start()
    await scene.judge()
    assert by_answer(await scene.counted()) == {"200": 20}


async def test_a_database_that_is_away_at_the_flush_costs_nothing(scene: Scene):
    store, failures = scene.hooks.store, []
    flush = store.flush_latencies

    async def fail_twice(*given, **named):
        if len(failures) < 2:
            failures.append(None)
            raise StoreUnavailable("away")
        return await flush(*given, **named)

    store.flush_latencies = fail_twice
    await scene.publish(20)
    await scene.until_delivered(20)
    await let_pass(scene.world, 3 * FLUSH_EVERY + 1)
    await scene.world.until(scene.are_equal)
    assert len(failures) == 2


async def test_phases_are_counted_for_new_connections_only(scene: Scene, receiver: Receiver):
    for n in range(3):
        await scene.publish(1, first=n)
        await scene.until_delivered(n + 1)
    assert await scene.world.stop(scene.hooks)
    scene.hooks = await scene.world.start()
    counted = await scene.counted()
    samples = {kind.name: sum(of_kind(counted, kind).values()) for kind in LatencyKind}
    assert samples["CONNECT"] == 1
    assert samples["TLS"] == 0
    assert {samples[name] for name in ("RESPONSE", "QUEUE_WAIT", "END_TO_END", "FIRST_BYTE", "ANSWER")} == {3}


# --- the meter alone ---


class Kept:
    """A store that keeps what is flushed."""

    def __init__(self) -> None:
        self.flushed: list = []
        self.is_alive = True

    async def new_latency_source(self) -> int:
        return 1

    async def flush_latencies(self, worker, cells, **named) -> bool:
        self.flushed.append(
            (worker, {(cell.endpoint_id, cell.at): cell.attempts for cell in cells}, named["n"])
        )
        return self.is_alive


ENDPOINT = b"e" * 16


def settlements(number: int):
    return [a_settlement(b"%016d" % n, ENDPOINT) for n in range(number)]


def a_meter(clock: ManualClock, worker=lambda: b"w" * 16):
    store = Kept()
    return LatencyMeter(store, clock, worker=worker), store


def settle(meter: LatencyMeter, number: int, *, worker=b"w" * 16, verdict=Verdict.APPLIED):
    meter.begin()
    batch = meter.measure(settlements(number))
    meter.settled(batch, [verdict] * number, worker=worker)
    return batch


async def test_nothing_is_counted_before_the_answer():
    clock = ManualClock()
    meter, store = a_meter(clock)
    meter.measure(settlements(5))
    await meter.flush()
    assert store.flushed == []


async def test_a_minute_that_was_written_is_not_counted_on_when_the_clock_goes_back():
    clock = ManualClock()
    meter, store = a_meter(clock)
    clock.advance(60 - clock.now() % 60)
    minute = clock.now()
    clock.advance(59.99)
    settle(meter, 3)
    clock.advance(0.02)
    await meter.flush()
    clock.advance(-0.05)
    assert clock.now() < minute + 60
    settle(meter, 2)
    await meter.flush()
    counted = Counter()
    for _, cells, _ in store.flushed:
        counted.update({at: attempts for (id, at), attempts in cells.items() if id == ENDPOINT})
    assert counted == {minute: 3, minute + 60: 2}


async def test_cells_are_written_whole_until_their_minute_is_over():
    clock = ManualClock()
    meter, store = a_meter(clock)
    clock.advance(60 - clock.now() % 60)
    minute = clock.now()
    for number in (3, 2):
        settle(meter, number)
        await meter.flush()
    assert [cells[ENDPOINT, minute] for _, cells, _ in store.flushed] == [3, 5]
    clock.advance(60)
    settle(meter, 1)
    await meter.flush()
    assert store.flushed[-1][1] == {(ENDPOINT, minute + 60): 1, (EVERY_ENDPOINT, minute + 60): 1}


async def test_a_busy_minute_is_added_up_without_loss_whenever_it_is_asked_for():
    clock = ManualClock()
    meter, store = a_meter(clock)
    minute = clock.now() // 60 * 60
    number = (
        ADDED_UP_AT // 10
    )  # of attempts with up to five keys each: several times more than is kept uncounted
    for n in range(1, 31):
        settle(meter, number)
        if n % 7 == 0:
            answers = by_answer(meter.since_start())
            assert answers == {"200": n * number}
    await meter.flush()
    assert store.flushed[-1][1] == {
        (ENDPOINT, minute): 30 * number,
        (EVERY_ENDPOINT, minute): 30 * number,
    }


async def test_what_waits_to_be_counted_is_bounded_over_all_endpoints():
    clock = ManualClock()
    meter, store = a_meter(clock)
    endpoints = MOST_NEW // 20
    for n in range(endpoints):  # five keys an attempt: five times as many as may wait
        meter.begin()
        batch = meter.measure([a_settlement(b"%016d" % m, b"%016d" % n) for m in range(20)])
        meter.settled(batch, [Verdict.APPLIED] * 20, worker=b"w" * 16)
        assert meter._life._number_new == sum(map(len, meter._life._new.values())) <= MOST_NEW
    assert by_answer(meter.since_start()) == {"200": 20 * endpoints}
    await meter.flush()
    counted = store.flushed[-1][1]
    assert sum(counted.values()) == 2 * 20 * endpoints
    assert meter._life._number_new == 0


async def test_a_worker_with_a_new_id_begins_anew():
    clock, workers = ManualClock(), [b"a" * 16]
    meter, store = a_meter(clock, worker=lambda: workers[-1])
    settle(meter, 3, worker=workers[-1])
    workers.append(b"b" * 16)
    await meter.flush()
    assert store.flushed == [], "the cells of the first life are folded from its log"
    settle(meter, 2, worker=workers[-1])
    await meter.flush()
    [(worker, cells, n)] = store.flushed
    assert (worker, n) == (b"b" * 16, 2)
    assert set(cells.values()) == {2}


async def test_the_sum_since_the_start_forgets_nothing():
    """Not what is over and written, and not what was counted under an earlier id."""
    clock, workers = ManualClock(), [b"a" * 16]
    meter, _ = a_meter(clock, worker=lambda: workers[-1])

    def attempts() -> int:
        return sum(of_kind(meter.since_start(), LatencyKind.RESPONSE).values())

    settle(meter, 3, worker=workers[-1])
    assert attempts() == 3
    await meter.flush()
    assert attempts() == 3
    clock.advance(120)
    settle(meter, 2, worker=workers[-1])
    await meter.flush()
    assert attempts() == 5
    clock.advance(120)
    settle(meter, 4, worker=workers[-1])
    workers.append(b"b" * 16)
    settle(meter, 1, worker=workers[-1])
    assert attempts() == 10
    workers.append(b"c" * 16)
    await meter.flush()
    assert attempts() == 10


async def test_what_was_applied_under_an_earlier_id_is_left_to_others():
    clock, workers = ManualClock(), [b"a" * 16]
    meter, store = a_meter(clock, worker=lambda: workers[-1])
    meter.begin()
    batch = meter.measure(settlements(3))
    workers.append(b"b" * 16)
    meter.settled(batch, [Verdict.REPEATED, Verdict.REPEATED, Verdict.LATE], worker=workers[-1])
    await meter.flush()
    assert [cells for _, cells, _ in store.flushed] == [{}]


async def test_a_log_of_late_attempts_alone_is_deleted_too():
    clock = ManualClock()
    meter, store = a_meter(clock)
    batch = settle(meter, 3, verdict=Verdict.LATE)
    assert meter.flush_in() == FLUSH_EVERY
    await meter.flush()
    assert [(cells, n) for _, cells, n in store.flushed] == [({}, batch.log.n)]
    assert meter.flush_in() == float("inf")


async def test_nothing_is_written_where_nothing_was_settled():
    clock = ManualClock()
    meter, store = a_meter(clock)
    assert meter.flush_in() == float("inf")
    await meter.flush()
    assert store.flushed == []


def test_odd_times_are_measured_somehow():
    """A clock that went back, or a duration that no clock shows, must not keep a settlement from being written."""
    odd = [float("nan"), float("inf"), -1.0, 0.0]
    batch = [
        a_settlement(
            b"%016d" % n,
            ENDPOINT,
            attempt=an_attempt(
                b"%016d" % n,
                duration=seconds,
                outcome=Outcome.TRANSIENT,
                status=None,
                timings=Timings(seconds, seconds, seconds, seconds),
            ),
            waited_since=NOW - seconds,
            published_at=NOW - seconds,
        )
        for n, seconds in enumerate(odd)
    ]
    endpoints, words, pairs = measure(batch)
    assert (len(endpoints), len(words), len(pairs)) == (1, 24, 24)
    assert all(0 <= word <= 0xFFFF for word in words + pairs)


def test_a_reused_connection_has_no_phases():
    [one] = settlements(1)
    assert one.attempt.timings == NO_TIMINGS
    assert measure([one])[2] == []
