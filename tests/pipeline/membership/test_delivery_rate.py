"""A worker reports how fast it delivers."""

import pytest

from hookline.pipeline.membership.delivery_rate import RateMeter
from hookline.testing.clock import ManualClock

pytestmark = pytest.mark.anyio


def test_the_rate_is_that_since_the_look_before():
    clock, count = ManualClock(), [100]
    pace = RateMeter(clock, lambda: count[0])
    clock.advance(2.0)
    count[0] += 50
    assert pace.per_s() == pytest.approx(25.0)
    clock.advance(2.0)
    assert pace.per_s() == 0.0
    assert pace.per_s() == 0.0  # two reads at once


async def test_a_beat_tells_how_much_was_delivered(world, receiver):
    hooks = await world.start()
    await hooks.create_endpoint(url=receiver.url(), events=["*"])
    for n in range(20):
        await hooks.publish("a", n)
    await world.until(lambda: hooks.worker.settler.delivered == 20)
    rates = []

    async def is_told() -> bool:
        [worker] = await hooks.store.list_workers(after=None, limit=9)
        rates.append(worker.load.delivered_per_s)
        return max(rates) > 0

    await world.until(is_told)
    assert max(rates) <= 20 / hooks.settings.heartbeat_s + 1e-6
