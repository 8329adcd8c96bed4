"""Which address is dialled, and how a failure to reach it is named."""

import asyncio
import socket
import ssl
from collections.abc import Callable, Iterator

import pytest

from hookline.model import ErrorKind
from hookline.pipeline.sending.tls_contexts import default_context
from pipeline.sending.certificates import Authority
from pipeline.sending.raw_server import Conversation, RawServer, always
from pipeline.sending.sending import OK, Names, Posts

pytestmark = pytest.mark.anyio

MakePosts = Callable[..., Posts]


@pytest.fixture
def closed_port() -> Iterator[int]:
    """Bound and not listening: it refuses, and nobody else gets the port."""
    with socket.socket() as closed:
        closed.bind(("0.0.0.0", 0))
        yield closed.getsockname()[1]


async def test_a_refused_connection_is_named_so(posts: Posts, closed_port: int) -> None:
    answer = await posts.post(f"http://127.0.0.1:{closed_port}/")
    assert (answer.error, answer.status, answer.sent) == (ErrorKind.CONNECT_REFUSED, None, True)


async def test_the_next_address_is_tried_when_one_refuses(make_posts: MakePosts) -> None:
    net = Names(two_test=["127.0.0.9", "127.0.0.1"])
    posts = make_posts(net)
    async with RawServer(always(OK)) as server:
        answer = await posts.post(f"http://two.test:{server.port}/")
        assert answer.status == 200
        assert (net.lookups, net.dialled) == (["two.test"], ["127.0.0.9", "127.0.0.1"])
        assert answer.timings.dns is not None
        assert b"\r\nHost: two.test:%d\r\n" % server.port in server.requests[0]


async def test_only_so_many_addresses_of_a_name_are_dialled(make_posts: MakePosts, closed_port: int) -> None:
    net = Names(many_test=[f"127.0.1.{number}" for number in range(1, 100)])
    answer = await make_posts(net).post(f"http://many.test:{closed_port}/")
    assert (answer.error, len(net.dialled)) == (ErrorKind.CONNECT_REFUSED, 8)


async def test_one_bad_address_rejects_the_name_and_nothing_is_dialled(make_posts: MakePosts) -> None:
    net = Names(two_test=["127.0.0.1", "127.0.0.66"])
    posts = make_posts(net)
    posts.blocked = {"127.0.0.66"}
    async with RawServer(always(OK)) as server:
        answer = await posts.post(f"http://two.test:{server.port}/")
        assert answer.error is ErrorKind.BLOCKED_ADDRESS
        assert (net.dialled, server.connections) == ([], 0)


async def test_a_literal_address_is_vetted_and_never_looked_up(make_posts: MakePosts) -> None:
    net = Names()
    posts = make_posts(net)
    posts.blocked = {"127.0.0.1", "::1"}
    for host in ("127.0.0.1", "[::1]"):
        assert (await posts.post(f"http://{host}:1/")).error is ErrorKind.BLOCKED_ADDRESS
    assert (net.lookups, net.dialled) == ([], [])


async def test_a_peer_that_is_not_the_vetted_address_gets_nothing(make_posts: MakePosts) -> None:
    class Diverted(Names):
        async def connect(self, protocol: object, address: str, port: int) -> asyncio.Transport:
            return await super().connect(protocol, "127.0.0.1", port)

    posts = make_posts(Diverted(safe_test=["192.0.2.1"]))
    async with RawServer(always(OK)) as server:
        assert (await posts.post(f"http://safe.test:{server.port}/")).error is ErrorKind.BLOCKED_ADDRESS
        await server.over.wait()
        assert server.requests == []


@pytest.mark.parametrize(
    "found", [socket.gaierror(-2, "Name or service not known"), UnicodeError("label too long"), []]
)
async def test_a_name_without_an_address_is_a_dns_error(
    make_posts: MakePosts, found: Exception | list[str]
) -> None:
    answer = await make_posts(Names(no_test=found)).post("http://no.test/")
    assert (answer.error, answer.sent) == (ErrorKind.DNS, True)


async def test_a_name_is_looked_up_by_the_machine(posts: Posts) -> None:
    async with RawServer(always(OK)) as server:
        answer = await posts.post(f"http://localhost:{server.port}/")
        assert (answer.status, answer.timings.dns is not None) == (200, True)


async def test_an_address_that_cannot_be_reached_is_a_failed_connection(make_posts: MakePosts) -> None:
    class Unplugged(Names):
        async def connect(self, protocol: object, address: str, port: int) -> asyncio.Transport:
            raise OSError(101, "Network is unreachable")

    answer = await make_posts(Unplugged()).post("http://192.0.2.1/")
    assert answer.error is ErrorKind.CONNECT_FAILED


async def test_what_nobody_thought_of_is_an_internal_error(make_posts: MakePosts) -> None:
    class Broken(Names):
        async def connect(self, protocol: object, address: str, port: int) -> asyncio.Transport:
            raise ZeroDivisionError

    assert (await make_posts(Broken()).post("http://192.0.2.1/")).error is ErrorKind.INTERNAL


async def test_a_server_that_speaks_first_gets_nothing_useful_from_us(posts: Posts) -> None:
    async def script(peer: Conversation) -> None:
        await peer.say(b"220 mail.example ESMTP\r\n")
        await peer.gone()

    async with RawServer(script) as server:
        assert (await posts.post(server.url)).error in (ErrorKind.PROTOCOL, ErrorKind.RESET)
        assert posts.sender.idle == 0


async def test_requests_over_tls_are_timed_and_share_connections(
    make_posts: MakePosts, authority: Authority
) -> None:
    posts = make_posts(Names(good_test=["127.0.0.1"]), context=authority.client())
    async with RawServer(always(OK), context=authority.server("good.test", "127.0.0.1")) as server:
        first = await posts.post(f"https://good.test:{server.port}/")
        second = await posts.post(f"https://good.test:{server.port}/", body=b"x" * 1_000_000)
        assert (first.status, second.status, server.connections) == (200, 200, 1)
        assert first.timings.tls is not None
        assert second.timings.tls is None
        assert (await posts.post(server.url)).status == 200


@pytest.mark.parametrize(
    ("names", "options"),
    [
        (("other.test",), {}),
        (("127.0.0.2",), {}),
        (("good.test",), {"expired": True}),
        (("good.test",), {"self_signed": True}),
    ],
)
async def test_a_certificate_that_does_not_hold_is_a_tls_error_and_nothing_is_sent(
    make_posts: MakePosts, authority: Authority, names: tuple[str, ...], options: dict[str, bool]
) -> None:
    posts = make_posts(Names(good_test=["127.0.0.1"]), context=authority.client())
    async with RawServer(always(OK), context=authority.server(*names, **options)) as server:
        answer = await posts.post(f"https://good.test:{server.port}/")
        assert (answer.error, answer.status) == (ErrorKind.TLS, None)
        assert answer.detail
        assert server.requests == []
        assert posts.sender.open_sockets == 0


async def test_the_default_context_trusts_no_stranger(make_posts: MakePosts, authority: Authority) -> None:
    posts = make_posts(Names(good_test=["127.0.0.1"]))
    async with RawServer(always(OK), context=authority.server("good.test")) as server:
        assert (await posts.post(f"https://good.test:{server.port}/")).error is ErrorKind.TLS


@pytest.mark.parametrize("said", [b"HTTP/1.1 400 Bad Request\r\n\r\n", b""])
async def test_a_server_that_speaks_no_tls_is_a_tls_error(
    make_posts: MakePosts, authority: Authority, said: bytes
) -> None:
    async def script(peer: Conversation) -> None:
        await peer._reader.read(1)
        await peer.say(said)

    posts = make_posts(context=authority.client())
    async with RawServer(script) as server:
        assert (await posts.post(f"https://127.0.0.1:{server.port}/")).error is ErrorKind.TLS
        assert posts.sender.open_sockets == 0


async def test_the_default_context_checks_names_and_refuses_old_tls() -> None:
    context = default_context()
    assert context.minimum_version >= ssl.TLSVersion.TLSv1_2
    assert (context.check_hostname, context.verify_mode) == (True, ssl.CERT_REQUIRED)
