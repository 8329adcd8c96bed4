"""What happens when this machine has no descriptor, port or memory left for a connection."""

import asyncio
import errno
import os
import resource
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator

import pytest

from hookline.pipeline.sending.client import REST_S
from hookline.pipeline.sending.net import is_shortage
from hookline.testing.clock import ManualClock
from pipeline.sending.raw_server import RawServer, always
from pipeline.sending.sending import OK, Names, Posts

pytestmark = pytest.mark.anyio

NOWHERE = "2001:db8::1"  # for documentation

MakePosts = Callable[..., Posts]

SHORTAGES = [
    OSError(number, os.strerror(number))
    for number in (errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.EADDRNOTAVAIL, errno.ENOMEM)
]
SHORTAGES += [MemoryError()]


class Short(Names):
    """Fails to connect with this error, as long as one is set."""

    def __init__(self, error: Exception | None, **names: list[str] | Exception | None) -> None:
        super().__init__(**names)
        self.error = error

    async def connect(self, protocol: object, address: str, port: int) -> asyncio.Transport:
        if self.error is None:
            return await super().connect(protocol, address, port)
        self.dialled.append(address)
        raise self.error


@pytest.mark.parametrize("error", SHORTAGES, ids=repr)
async def test_a_shortage_of_ours_is_no_answer_of_the_receivers_and_the_sender_rests(
    make_posts: MakePosts, error: Exception
) -> None:
    net, clock = Short(error, two_test=["127.0.0.1", "127.0.0.2"]), ManualClock()
    posts = make_posts(net, clock=clock)
    async with RawServer(always(OK)) as server:
        url = f"http://two.test:{server.port}/"
        answer = await posts.post(url)
        assert (answer.short, answer.sent, answer.error, answer.status) == (True, False, None, None)
        assert net.dialled == ["127.0.0.1"], "the next address would fail in the same way"
        assert (await posts.post(url)).short
        assert net.dialled == ["127.0.0.1"], "nothing is opened while it rests"
        assert posts.sender.shortages == 1
        net.error = None
        clock.advance(REST_S)
        assert (await posts.post(url)).status == 200


async def test_a_shortage_in_a_lookup_says_nothing_about_the_name(make_posts: MakePosts) -> None:
    clock = ManualClock()
    net = Names(a_test=OSError(errno.EMFILE, "Too many open files"))
    posts = make_posts(net, clock=clock)
    assert (await posts.post("http://a.test/")).short
    clock.advance(REST_S)
    async with RawServer(always(OK)) as server:
        net._names["a.test"] = ["127.0.0.1"]
        assert (await posts.post(f"http://a.test:{server.port}/")).status == 200
        assert net.lookups == ["a.test", "a.test"], "it was not remembered"


async def test_requests_on_open_connections_go_on_while_the_sender_rests(make_posts: MakePosts) -> None:
    net = Short(None)
    posts = make_posts(net, clock=ManualClock())
    async with RawServer(always(OK)) as server:
        for _ in range(2):
            begun = [posts.begin(f"http://127.0.0.1:{server.port}/") for _ in range(40)]
            assert [answer.status for answer in await asyncio.gather(*begun)] == [200] * 40
        net.error = OSError(errno.EMFILE, "Too many open files")
        assert (await posts.post(f"http://127.0.0.2:{server.port}/")).short
        assert posts.sender.idle == 8, "some that were idle are closed, and not all"
        assert (await posts.post(f"http://127.0.0.1:{server.port}/")).status == 200


async def test_idle_connections_make_room_before_another_is_opened(make_posts: MakePosts) -> None:
    names = {f"h{n}_test": ["127.0.0.1"] for n in range(24)}
    posts = make_posts(Names(**names), most_open=5)
    async with RawServer(always(OK)) as server:
        for n in range(19):
            assert (await posts.post(f"http://h{n}.test:{server.port}/")).status == 200
            assert posts.sender.open_sockets <= 5
        assert posts.sender.idle == 5
        begun = [posts.begin(f"http://h{n}.test:{server.port}/") for n in range(19, 24)]
        assert [answer.status for answer in await asyncio.gather(*begun)] == [200] * 5
        assert (server.connections, posts.sender.idle) == (24, 5)


@pytest.fixture
def no_descriptors() -> Iterator[Callable[[], None]]:
    """Takes all descriptors that this process may have; given back after the test."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    taken: list[int] = []

    def take() -> None:
        resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, len(os.listdir("/proc/self/fd")) + 50), hard))
        while True:
            try:
                taken.append(os.open("/dev/null", os.O_RDONLY))
            except OSError:
                return

    yield take
    for each in taken:
        os.close(each)
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


async def test_the_machine_without_descriptors_is_seen_as_such(
    make_posts: MakePosts, no_descriptors: Callable[[], None]
) -> None:
    clock = ManualClock()
    posts = make_posts(clock=clock)
    async with RawServer(always(OK)) as server:
        no_descriptors()
        by_address = await posts.post(f"http://127.0.0.1:{server.port}/")
        clock.advance(REST_S)
        by_name = await posts.post(f"http://localhost:{server.port}/")
        assert (by_address.short, by_name.short, posts.sender.shortages) == (True, True, 2)


DIAL = """
import asyncio, errno, sys
from hookline.pipeline.sending.net import SystemNet, is_shortage

try:
    asyncio.run(SystemNet().connect(asyncio.Protocol, sys.argv[1], 9))
except OSError as error:
    print(errno.errorcode[error.errno], is_shortage(error))
"""


def test_an_address_this_machine_has_no_way_to_is_no_shortage() -> None:
    """Such an address cannot be reached, however many ports there are, and the kernel's error may be the same."""
    alone = ["unshare", "--net", sys.executable, "-c"]  # a network with nothing in it
    if subprocess.run([*alone, "pass"], capture_output=True, check=False).returncode:
        pytest.skip("a network namespace cannot be made here: that takes root and unshare")
    ended = subprocess.run([*alone, DIAL, NOWHERE], capture_output=True, text=True, check=True, timeout=60)
    assert ended.stdout.split() == ["ENETUNREACH", "False"]


def test_what_the_other_side_does_is_no_shortage() -> None:
    others = [ConnectionRefusedError(), TimeoutError(), socket.gaierror(socket.EAI_NONAME, "x"), ValueError()]
    assert not any(map(is_shortage, others))
    assert all(map(is_shortage, [*SHORTAGES, socket.gaierror(socket.EAI_MEMORY, "x")]))
