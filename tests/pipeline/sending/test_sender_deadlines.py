"""Everything ends by its deadline.

Each figure is long enough for a busy machine to connect to itself, and a busy machine may exceed it by seconds; a
request without a deadline would hang for good. That a request ends 0.2 s after its deadline is judged where time is not
the machine's: by the simulation (`deadline` in docs/simulation.md).
"""

import asyncio
import socket
from collections.abc import Callable

import pytest

from hookline.model import ErrorKind
from pipeline.sending.certificates import Authority
from pipeline.sending.raw_server import Conversation, RawServer, Script
from pipeline.sending.sending import OK, Names, Posts

pytestmark = pytest.mark.anyio

MakePosts = Callable[..., Posts]
FIGURE = 1.0
EARLIEST = FIGURE - 0.002  # the loop's timers count whole milliseconds, the clock does not
OTHER = 30.0  # a deadline that is not the one to be kept
LATEST = OTHER  # which of the two was kept is judged, not how exactly


async def _silent(peer: Conversation) -> None:
    await peer.request()
    await peer.gone()


async def _half_a_head(peer: Conversation) -> None:
    await peer.request()
    await peer.say(b"HTTP/1.1 200 OK\r\nContent-")
    await peer.gone()


async def _dripping_head(peer: Conversation) -> None:
    await peer.request()
    await peer.drip(b"HTTP/1.1 200 OK\r\nA: " + b"x" * 1000, pause=0.02)


async def _interims(peer: Conversation) -> None:
    await peer.request()
    await peer.drip(b"HTTP/1.1 102 Processing\r\n\r\n" * 1000, pause=0.02)


async def _no_reading(peer: Conversation) -> None:
    await asyncio.Event().wait()


@pytest.mark.parametrize("script", [_silent, _half_a_head, _dripping_head, _interims, _no_reading])
async def test_a_receiver_that_does_not_answer_costs_its_deadline_and_no_more(
    posts: Posts, script: Script
) -> None:
    async with RawServer(script) as server:
        answer = await posts.post(server.url, timeout=FIGURE, body=b"x" * 8_000_000)
        assert (answer.status, answer.error, answer.sent) == (None, ErrorKind.TIMEOUT, True)
        assert EARLIEST <= answer.duration < LATEST
        assert posts.sender.in_flight == 0


async def test_a_body_that_drips_past_the_deadline_is_a_timeout_with_its_status(posts: Posts) -> None:
    async def script(peer: Conversation) -> None:
        await peer.request()
        await peer.say(b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\nbegun")
        await peer.drip(b"x" * 900, pause=0.02)

    async with RawServer(script) as server:
        answer = await posts.post(server.url, timeout=FIGURE)
        assert (answer.status, answer.error, answer.truncated) == (200, ErrorKind.TIMEOUT, True)
        assert answer.body.startswith(b"begun")
        assert EARLIEST <= answer.duration < LATEST


async def test_the_retry_of_a_stale_connection_has_the_same_deadline(posts: Posts) -> None:
    async def script(peer: Conversation) -> None:
        await peer.request()
        if peer.number == 1:
            await peer.say(OK)
            await peer.request()
            await asyncio.sleep(FIGURE / 2)
        else:
            await peer.gone()

    async with RawServer(script) as server:
        await posts.post(server.url)
        answer = await posts.post(server.url, timeout=FIGURE)
        assert (answer.error, server.connections) == (ErrorKind.TIMEOUT, 2)
        assert EARLIEST <= answer.duration < LATEST


async def test_a_lookup_that_never_ends_is_a_dns_error_at_the_deadline(make_posts: MakePosts) -> None:
    posts = make_posts(Names(slow_test=None))
    answer = await posts.post("http://slow.test/", timeout=FIGURE)
    assert answer.error is ErrorKind.DNS
    assert EARLIEST <= answer.duration < LATEST


async def test_a_lookup_that_never_ends_is_a_dns_error_when_its_budget_is_spent(
    make_posts: MakePosts,
) -> None:
    posts = make_posts(Names(slow_test=None), lookup_timeout=FIGURE)
    answer = await posts.post("http://slow.test/", timeout=OTHER)
    assert answer.error is ErrorKind.DNS
    assert EARLIEST <= answer.duration < LATEST


@pytest.fixture
def black_hole() -> object:
    """A port that drops our SYNs: its queue of connections is full."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen(0)
        fillers = []
        for _ in range(4):
            filler = socket.socket()
            filler.setblocking(False)
            filler.connect_ex(listener.getsockname())
            fillers.append(filler)
        yield listener.getsockname()[1]
        for filler in fillers:
            filler.close()


async def test_an_address_that_swallows_packets_is_a_connect_timeout(
    make_posts: MakePosts, black_hole: int
) -> None:
    posts = make_posts(connect_timeout=FIGURE)
    answer = await posts.post(f"http://127.0.0.1:{black_hole}/", timeout=OTHER)
    assert answer.error is ErrorKind.CONNECT_TIMEOUT
    assert EARLIEST <= answer.duration < LATEST


async def test_a_deadline_before_the_connect_timeout_wins(posts: Posts, black_hole: int) -> None:
    answer = await posts.post(f"http://127.0.0.1:{black_hole}/", timeout=FIGURE)
    assert answer.error is ErrorKind.CONNECT_TIMEOUT
    assert EARLIEST <= answer.duration < LATEST


async def test_an_address_that_swallows_packets_leaves_the_next_one_its_share(
    make_posts: MakePosts, black_hole: int
) -> None:
    share = 2.0  # in which a busy machine surely connects to itself

    class Hole(Names):
        async def connect(self, protocol: object, address: str, port: int) -> asyncio.Transport:
            return await super().connect(
                protocol, "127.0.0.1", black_hole if address == "127.0.0.9" else port
            )

    posts = make_posts(Hole(two_test=["127.0.0.9", "127.0.0.1"]), connect_timeout=2 * share)

    async def script(peer: Conversation) -> None:
        await peer.request()
        await peer.say(OK)

    async with RawServer(script) as server:
        answer = await posts.post(f"http://two.test:{server.port}/")
        assert answer.status == 200
        assert share - 0.002 <= answer.duration < share + 5.0


async def test_a_tls_handshake_that_hangs_is_a_tls_error(make_posts: MakePosts, authority: Authority) -> None:
    async def script(peer: Conversation) -> None:
        await peer.gone()

    for options, timeout in (({"connect_timeout": FIGURE}, OTHER), ({}, FIGURE)):
        posts = make_posts(context=authority.client(), **options)
        async with RawServer(script) as server:
            answer = await posts.post(f"https://127.0.0.1:{server.port}/", timeout=timeout)
            assert answer.error is ErrorKind.TLS
            assert EARLIEST <= answer.duration < LATEST
            assert posts.sender.open_sockets == 0


async def test_five_hundred_hanging_requests_are_all_let_go_at_their_deadline(make_posts: MakePosts) -> None:
    posts = make_posts(connect_timeout=OTHER)
    async with RawServer(_silent) as server:
        # Five seconds, so that all of them are connected by then on a busy machine too.
        answers = await asyncio.gather(*(posts.begin(server.url, timeout=5.0) for _ in range(500)))
        assert {answer.error for answer in answers} == {ErrorKind.TIMEOUT}
        assert max(answer.duration for answer in answers) < OTHER
