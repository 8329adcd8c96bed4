"""A name that is not found, or not soon, holds up no other."""

import asyncio
import socket

import pytest

from hookline.pipeline.sending.net import SystemNet
from hookline.pipeline.sending.resolver import REMEMBERED, NameNotFound, Names
from hookline.rules.lookups import AT_ONCE, FOUND_S, GIVEN_UP_S, NOT_FOUND_S, LookupResult
from hookline.testing.clock import ManualClock
from pipeline.sending.sending import until

pytestmark = pytest.mark.anyio


class Resolver(SystemNet):
    """Answers when the test says so."""

    def __init__(self) -> None:
        self.asked: list[str] = []
        self.found: dict[str, list[str] | Exception] = {}
        self.hanging: dict[str, asyncio.Event] = {}

    def hang(self, host: str) -> asyncio.Event:
        return self.hanging.setdefault(host, asyncio.Event())

    async def resolve(self, host: str, port: int) -> list[str]:
        self.asked.append(host)
        if host in self.hanging:
            await self.hanging[host].wait()
        found = self.found.get(host, ["192.0.2.1"])
        if isinstance(found, Exception):
            raise found
        return found


@pytest.fixture
def net() -> Resolver:
    return Resolver()


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


async def test_requests_for_one_name_share_a_lookup_and_its_answer_for_a_while(net, clock):
    names = Names(net, clock)
    hanging = net.hang("a.test")
    waiting = [asyncio.create_task(names.find("a.test", 443)) for _ in range(10)]
    await asyncio.sleep(0)
    hanging.set()
    assert await asyncio.gather(*waiting) == [["192.0.2.1"]] * 10
    clock.advance(FOUND_S - 0.1)
    await names.find("a.test", 80)
    assert net.asked == ["a.test"]
    net.found["a.test"] = ["192.0.2.2"]
    clock.advance(0.2)
    assert await names.find("a.test", 443) == ["192.0.2.2"]
    await names.close()


@pytest.mark.parametrize("failure", [socket.gaierror(-2, "Name or service not known"), UnicodeError("no")])
async def test_a_failure_is_remembered_shortly(net, clock, failure):
    assert NOT_FOUND_S <= 30
    names = Names(net, clock)
    net.found["a.test"] = failure
    for _ in range(3):
        with pytest.raises(NameNotFound, match="no"):
            await names.find("a.test", 443)
    assert net.asked == ["a.test"]
    net.found["a.test"] = ["192.0.2.1"]
    clock.advance(NOT_FOUND_S)
    assert await names.find("a.test", 443) == ["192.0.2.1"]


async def test_a_lookup_that_hangs_costs_its_budget_once_and_is_taken_when_it_comes_back(net, clock):
    names = Names(net, clock, budget=0.05)
    hanging = net.hang("slow.test")
    with pytest.raises(NameNotFound, match="in time"):
        await names.find("slow.test", 443)
    names._budget = 30.0  # whoever asks now is answered at once
    with pytest.raises(NameNotFound, match="in time"):
        await names.find("slow.test", 443)
    assert net.asked == ["slow.test"]
    hanging.set()
    await asyncio.gather(*names._tasks)
    assert await names.find("slow.test", 443) == ["192.0.2.1"]
    assert net.asked == ["slow.test"]


async def test_a_lookup_that_never_comes_back_is_given_up(net, clock):
    names = Names(net, clock, budget=0.05)
    net.hang("slow.test")
    with pytest.raises(NameNotFound):
        await names.find("slow.test", 443)
    del net.hanging["slow.test"]
    clock.advance(GIVEN_UP_S + 1)
    assert await names.find("slow.test", 443) == ["192.0.2.1"]
    await names.close()


async def test_names_that_hang_hold_up_neither_known_names_nor_others_than_their_own_kind(net, clock):
    names = Names(net, clock, budget=60.0)
    assert await names.find("known.test", 443) == ["192.0.2.1"]
    clock.advance(FOUND_S)
    most = AT_ONCE[LookupResult.UNTRIED]
    for number in range(most + 50):
        net.hang(f"hang{number}.test")
    waiting = [asyncio.create_task(names.find(f"hang{number}.test", 443)) for number in range(most + 50)]
    await until(lambda: len(net.asked) == 1 + most, ceiling=60)
    assert await names.find("known.test", 443) == ["192.0.2.1"]
    assert len(net.asked) == 2 + most, "more are looked up at once than there are places"
    # A lookup whose turn comes when nobody waits any more is never made.
    for task in waiting:
        task.cancel()
    await asyncio.gather(*waiting, return_exceptions=True)
    for hanging in net.hanging.values():
        hanging.set()
    await asyncio.gather(*names._tasks)
    assert len(net.asked) == 2 + most


async def test_who_waited_for_a_place_in_vain_says_nothing_about_its_name(net, clock):
    names = Names(net, clock, budget=60.0)
    most = AT_ONCE[LookupResult.UNTRIED]
    for number in range(most):
        net.hang(f"hang{number}.test")
    waiting = [asyncio.create_task(names.find(f"hang{number}.test", 443)) for number in range(most)]
    await until(lambda: len(net.asked) == most, ceiling=60)
    names._budget = 0.05
    with pytest.raises(NameNotFound):
        await names.find("new.test", 443)
    assert "new.test" not in names._answers
    net.hanging["hang0.test"].set()
    await waiting[0]
    names._budget = 60.0
    assert await names.find("new.test", 443) == ["192.0.2.1"]
    await names.close()
    await asyncio.gather(*waiting, return_exceptions=True)


async def test_not_every_name_is_remembered(net, clock):
    names = Names(net, clock)
    for number in range(REMEMBERED + 10):
        names._remember(f"{number}.test", ["192.0.2.1"])
    assert len(names._answers) == REMEMBERED


async def test_the_machine_is_asked_on_a_thread_that_nobody_waits_for():
    assert "127.0.0.1" in await SystemNet().resolve("localhost", 80)
    with pytest.raises(OSError, match=r"."):
        await SystemNet().resolve("nowhere.invalid", 80)
    with pytest.raises(UnicodeError):
        await SystemNet().resolve("a" * 64 + ".test", 80)
