"""Only time ends the rest that a receiver asks for with Retry-After."""

import pytest

from hookline.ids import read
from hookline.model import CircuitState, EndpointId, State
from tests.receiver import Answer, Receiver
from tests.world import World

pytestmark = pytest.mark.anyio

ASKED = 120.0
RETRY = {"schedule": [0, 1, 1, 1, 1, 1], "jitter": "none"}


class Resting:
    """An endpoint that asked for a rest, with two events for it."""

    def __init__(self, world: World, receiver: Receiver) -> None:
        self.world = world
        self.receiver = receiver

    async def begin(self, answers: list[Answer], requests: int, **endpoint) -> None:
        self.world.step = 0.2
        self.hooks = await self.world.start()
        made = await self.hooks.create_endpoint(
            url=self.receiver.url(), events=["*"], retry=RETRY, max_in_flight=1, **endpoint
        )
        self.id = EndpointId(read("endpoint", made.id))
        self.receiver.answers["/"] = answers
        self.events = [await self.hooks.publish("order.paid", {"n": n}) for n in range(2)]
        await self.world.until(lambda: len(self.receiver.requests) == requests)
        self.asked_at = self.world.clock.now()
        await self.world.until(self.is_written)
        self.requests = requests

    async def lane(self):
        [lane] = await self.hooks.store.lanes([self.id])
        return lane

    async def is_written(self) -> bool:
        return (await self.lane()).rest_until >= self.asked_at + ASKED - 2 * self.world.step

    async def first(self):
        return await self.world.delivery(self.hooks, self.events[0].id)

    async def waits_for(self) -> list[str | None]:
        deliveries = [await self.world.delivery(self.hooks, event.id) for event in self.events]
        reports = await self.hooks.reports.deliveries(deliveries, now=self.world.clock.now())
        return [report.waiting_for for report in reports]

    async def pass_most_of_it(self) -> None:
        until = self.asked_at + ASKED - 10
        await self.world.until(lambda: self.world.clock.now() >= until)
        assert len(self.receiver.requests) == self.requests, "it asked to be left alone"

    async def end(self) -> None:
        for event in self.events:
            await self.world.until_state(self.hooks, event.id, State.DELIVERED)
        assert self.world.clock.now() < self.asked_at + 2 * ASKED


@pytest.fixture
def resting(world: World, receiver: Receiver) -> Resting:
    return Resting(world, receiver)


async def nothing(resting: Resting) -> None:
    """Nobody does anything."""


async def retry(resting: Resting) -> None:
    await resting.hooks.deliveries.retry((await resting.first()).id)


async def another_url(resting: Resting) -> None:
    await resting.hooks.update_endpoint(
        (await resting.hooks.reports.endpoint(*await resting.hooks.store.endpoints_by_id([resting.id]))).id,
        url=resting.receiver.url("/new"),
    )


async def reset(resting: Resting) -> None:
    await resting.hooks.endpoints.reset_circuit(resting.id)


DEEDS = [nothing, retry, another_url, reset]


async def move(resting: Resting) -> None:
    """The lane goes to another owner."""
    await resting.world.stop(resting.hooks)
    resting.hooks = await resting.world.start()


@pytest.mark.parametrize("ordering", ["parallel", "strict"])
@pytest.mark.parametrize("deed", DEEDS)
async def test_an_operator_does_not_end_it_before_or_after_the_lane_moved(
    resting: Resting, deed, ordering: str
):
    answers = [Answer(429, {"retry-after": str(int(ASKED))}), Answer(200)]
    await resting.begin(answers, requests=1, ordering=ordering)
    await resting.world.pass_until(deed(resting))
    assert await resting.waits_for() == ["receiver", "order" if ordering == "strict" else "receiver"]
    await move(resting)
    await resting.world.pass_until(deed(resting))
    assert await resting.waits_for() == ["receiver", "order" if ordering == "strict" else "receiver"]
    await resting.pass_most_of_it()
    assert (await resting.waits_for())[0] == "receiver"
    await resting.end()


async def test_a_circuit_closed_by_hand_leaves_it(resting: Resting):
    answers = [Answer(500), Answer(429, {"retry-after": str(int(ASKED))}), Answer(200)]
    circuit = {"consecutive_failures": 1, "cooldown_s": 1, "max_cooldown_s": 1}
    await resting.begin(answers, requests=2, circuit=circuit)
    await resting.world.pass_until(reset(resting))

    async def is_closed() -> bool:
        return (await resting.lane()).circuit.state is CircuitState.CLOSED

    await resting.world.until(is_closed)
    await resting.pass_most_of_it()
    assert "receiver" in await resting.waits_for()
    await resting.end()


async def test_a_probe_waits_for_it_too(resting: Resting):
    answers = [Answer(500), Answer(429, {"retry-after": str(int(ASKED))}), Answer(200)]
    circuit = {"consecutive_failures": 1, "cooldown_s": 1, "max_cooldown_s": 1}
    await resting.begin(answers, requests=2, circuit=circuit)
    await resting.pass_most_of_it()
    await resting.end()


async def test_a_lane_is_not_taken_again_and_again_while_it_rests(resting: Resting):
    answers = [Answer(429, {"retry-after": str(int(ASKED))}), Answer(200)]
    await resting.begin(answers, requests=1, ordering="strict")
    await resting.world.pass_until(retry(resting))
    await resting.world.until(lambda: not resting.hooks.worker.ownership.lanes)
    take, taken = resting.hooks.store.take, []

    async def counted(*given, **named):
        found = await take(*given, **named)
        taken.extend(found)
        return found

    resting.hooks.store.take = counted
    await resting.pass_most_of_it()
    assert len(taken) <= 1
