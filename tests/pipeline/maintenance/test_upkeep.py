"""Each maintenance task has its turn, whatever happens to the others."""

import pytest
import structlog

from hookline.errors import StoreRefused, StoreUnavailable
from hookline.model import State
from hookline.pipeline.intake.drafts import Draft
from tests.receiver import Receiver
from tests.world import World

pytestmark = pytest.mark.anyio


class Calls:
    """Counts the calls of a verb, and can make it fail."""

    def __init__(self, store, verb: str, error: Exception | None = None) -> None:
        self.count = 0
        self.error = error
        carry_out = getattr(store, verb)

        async def call(*given, **named):
            self.count += 1
            if self.error is not None:
                raise self.error
            return await carry_out(*given, **named)

        setattr(store, verb, call)


MINUTES = 0.25  # seconds of a step where minutes are to pass; still well below a heartbeat
ERRORS = [ValueError("unforeseen"), StoreRefused("no rights"), StoreUnavailable("away")]


@pytest.mark.parametrize("error", ERRORS, ids=lambda error: type(error).__name__)
async def test_a_chore_that_always_fails_keeps_no_other_from_its_turn(
    world: World, receiver: Receiver, error: Exception
):
    hooks = await world.start()
    await hooks.create_endpoint(url=receiver.url(), events=["*"])
    await hooks.publish("order.paid", {})
    await world.until(lambda: receiver.requests)
    world.step = MINUTES
    failing = Calls(hooks.store, "cancel_deleted", error)
    owned, sweep = Calls(hooks.store, "owned"), Calls(hooks.store, "sweep")
    with structlog.testing.capture_logs() as logged:
        await world.until(lambda: sweep.count >= 2 and owned.count >= 30)
    assert failing.count > 60, "tried again after a rest"
    assert sum(line["log_level"] != "debug" for line in logged) <= 12
    assert sum(line["event"] == "loop.failed" for line in logged) == 0


@pytest.mark.parametrize("error", ERRORS, ids=lambda error: type(error).__name__)
async def test_a_chore_whose_own_turn_failed_is_tried_soon_again(
    world: World, receiver: Receiver, error: Exception
):
    hooks = await world.start()
    world.step = MINUTES
    sweep = Calls(hooks.store, "sweep", error)
    await world.until(lambda: sweep.count >= 3)
    assert world.clock.monotonic() < 2 * 300, "not after another five minutes"
    sweep.error = None
    seen = sweep.count
    await world.until(lambda: sweep.count > seen)


async def test_a_deleted_endpoints_backlog_is_cancelled_in_bounded_steps_beside_everything_else(
    world: World, receiver: Receiver
):
    hooks = await world.start()
    endpoint = await hooks.create_endpoint(url=receiver.url(), events=["gone"])
    await hooks.create_endpoint(url=receiver.url("/lives"), events=["lives"])
    await hooks.accept([Draft("gone", b"1")])
    await world.until(lambda: receiver.requests)
    cancel, seen = hooks.store.cancel_deleted, []
    sweep = Calls(hooks.store, "sweep")

    async def endless(*, limit, now):
        """More and more of it, however much is cancelled."""
        seen.append(sweep.count)
        await cancel(limit=limit, now=now)
        return limit

    hooks.store.cancel_deleted = endless
    world.step = MINUTES
    await world.pass_until(hooks.delete_endpoint(endpoint.id))
    owned = Calls(hooks.store, "owned")
    await world.until(lambda: sweep.count >= 1)
    assert len(seen) > 100, "it went on all the time"
    assert owned.count >= 20, "and so did what sees to the lanes"
    alive = await world.pass_until(hooks.publish("lives", {}))
    await world.until_state(hooks, alive.id, State.DELIVERED)
