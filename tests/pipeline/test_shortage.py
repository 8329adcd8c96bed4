"""A worker without descriptors counts no failure against an endpoint, and goes on when there are some."""

import asyncio
import errno
import os

import pytest

from hookline.app import Hookline
from hookline.config import Settings
from hookline.model import CircuitState
from hookline.pipeline.sending.net import SystemNet
from hookline.store.contract import DeliveryFilter
from tests.receiver import Answer, Receiver

pytestmark = pytest.mark.anyio

ENDPOINTS = 20
EVENTS = 5


class Scarce(SystemNet):
    """No connection can be opened while `is_short`; counts the tries."""

    def __init__(self) -> None:
        self.is_short = True
        self.refused = 0
        self.tried = asyncio.Event()

    async def connect(self, protocol, address, port):
        if self.is_short:
            self.refused += 1
            if self.refused >= 3:
                self.tried.set()
            raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))
        return await super().connect(protocol, address, port)


async def test_a_shortage_is_no_attempt_and_opens_no_circuit(database, receiver: Receiver, capsys):
    net = Scarce()
    async with Hookline(database, settings=Settings(dev=True), net=net) as hooks:
        for n in range(ENDPOINTS):
            await hooks.create_endpoint(
                url=receiver.url(f"/{n}"), events=["*"], ordering="strict" if n % 4 == 0 else "parallel"
            )
        for n in range(EVENTS):
            await hooks.publish("order.paid", n)
        await asyncio.wait_for(net.tried.wait(), 60)  # it rested, tried again, and fell short again
        found = await hooks.store.list_deliveries(DeliveryFilter(), after=None, limit=200)
        assert [each.attempts for each in found] == [0] * ENDPOINTS * EVENTS
        net.is_short = False
        await receiver.wait_for_requests(ENDPOINTS * EVENTS)
        assert all(
            receiver.bodies(f"/{n}") == [b"%d" % n for n in range(EVENTS)] for n in range(0, ENDPOINTS, 4)
        )
        lanes = await hooks.store.lanes([each.endpoint_id for each in found])
        assert {each.circuit.state for each in lanes} == {CircuitState.CLOSED}
        assert {each.circuit.failures for each in lanes} == {0}
        assert hooks.shortages == net.refused
    assert capsys.readouterr().out.count("sender.short") == 1


async def test_a_redirect_that_falls_short_begins_again_and_is_not_charged(database, receiver: Receiver):
    net = Scarce()
    net.is_short = False
    receiver.answers["/first"] = [
        Answer(308, {"location": f"http://127.0.0.2:{receiver.port}/second"}),
        Answer(200),
    ]

    class FallsShortOnce(Scarce):
        async def connect(self, protocol, address, port):
            self.is_short = address == "127.0.0.2"
            return await super().connect(protocol, address, port)

    async with Hookline(database, settings=Settings(dev=True), net=FallsShortOnce()) as hooks:
        await hooks.create_endpoint(url=receiver.url("/first"), events=["*"], max_redirects=1)
        await hooks.publish("order.paid", 1)
        await receiver.wait_for_requests(2)
        assert [each.path for each in receiver.requests] == ["/first", "/first"]
        async with asyncio.timeout(60):
            while True:
                [found] = await hooks.store.list_deliveries(DeliveryFilter(), after=None, limit=1)
                if found.attempts:
                    break
                await asyncio.sleep(0.01)
        assert (found.attempts, found.last_status) == (1, 200)
