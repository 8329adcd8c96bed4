"""Tests that an application sends the right webhooks.

It uses a real hookline and a real receiver, which stop when the test ends. The fixtures `hookline_server` and
`webhook_receiver` come with hookline. Run it: pytest examples/test_my_app.py
"""

import asyncio

from hookline import Hookline, SyncHooklineClient
from hookline.testing import HooklineServer, ManualClock, WebhookReceiver, running_hookline


class Shop:
    """An application that calls a hookline server."""

    def __init__(self, hooks: SyncHooklineClient) -> None:
        self._hooks = hooks

    def pay(self, order: int) -> None:
        self._hooks.publish("order.paid", {"id": order}, idempotency_key=f"order-{order}-paid")


def test_paying_tells_the_subscribers_once(
    hookline_server: HooklineServer, webhook_receiver: WebhookReceiver
) -> None:
    hookline_server.subscribe(webhook_receiver, "order.*")
    with SyncHooklineClient(hookline_server.url) as hooks:
        shop = Shop(hooks)
        shop.pay(42)
        shop.pay(42)
    hookline_server.settle()
    [request] = webhook_receiver.requests  # its signature was verified
    assert (request.event_type, request.json()) == ("order.paid", {"id": 42})


def test_a_receiver_that_fails_gets_it_again(
    hookline_server: HooklineServer, webhook_receiver: WebhookReceiver
) -> None:
    hookline_server.subscribe(webhook_receiver)
    webhook_receiver.answer(503, 500)
    with SyncHooklineClient(hookline_server.url) as hooks:
        Shop(hooks).pay(42)
    first, second, third = webhook_receiver.wait(3)
    assert first.event_id == second.event_id == third.event_id
    assert [first.status, second.status, third.status] == [503, 500, 200]


class Diary:
    """An application that runs hookline in its own process."""

    def __init__(self, hooks: Hookline) -> None:
        self._hooks = hooks

    async def note(self, text: str) -> None:
        await self._hooks.publish("diary.noted", {"text": text})


def test_a_day_of_retries_takes_no_time_on_a_manual_clock() -> None:
    async def story() -> None:
        clock = ManualClock()
        async with running_hookline(clock=clock, retry="patient") as hooks:
            with WebhookReceiver() as receiver:
                await hooks.subscribe(receiver, "diary.*")
                receiver.answer(500, 500, 500)
                began = clock.now()
                await Diary(hooks).note("Rain.")
                await hooks.settled()
                receiver.assert_received("diary.noted", {"text": "Rain."})
                assert clock.now() - began > 60

    asyncio.run(story())
