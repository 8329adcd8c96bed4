"""A settlement that cannot be written costs nobody else anything."""

import pytest

from hookline.model import State
from hookline.pipeline.drafts import Draft
from tests.receiver import Receiver
from tests.world import World

pytestmark = pytest.mark.anyio


async def test_one_that_the_store_cannot_take_does_not_keep_the_others_from_being_settled(
    world: World, receiver: Receiver
):
    hooks = await world.start()
    await hooks.create_endpoint(url=receiver.url(), events=["*"], max_in_flight=20)
    settle, refused = hooks.store.settle, 0

    async def settle_but_one(worker, batch, **more):
        nonlocal refused
        if any(settlement.attempt.number == 1 and is_bad(settlement) for settlement in batch) and refused < 3:
            refused += len(batch) == 1
            raise ValueError("cannot be written")
        return await settle(worker, batch, **more)

    events = await hooks.accept([Draft("order.paid", b"%d" % n) for n in range(20)])

    def is_bad(settlement) -> bool:
        return settlement.attempt.delivery_id[:13] == events[7].id[:13]

    hooks.store.settle = settle_but_one

    async def is_over() -> bool:
        return (await hooks.store.counts())[State.DELIVERED] == 20

    await world.until(is_over)
    assert refused == 3
    assert len(receiver.requests) == 20 + 3, "only that one was sent again"
    assert hooks.worker.holdings.buffers.counts == [0, 0, 0, 0]
