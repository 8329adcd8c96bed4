"""Every request is answered once, whatever the caller, the gate or the end of the sender does."""

import asyncio
from collections.abc import Callable, Iterator

import pytest
import structlog

from hookline import failpoints
from hookline.model import ErrorKind
from hookline.pipeline.sending import Request, SendResult, Target, parse
from pipeline.sending.certificates import Authority
from pipeline.sending.raw_server import Conversation, RawServer, always
from pipeline.sending.sending import OK, Names, Posts

pytestmark = pytest.mark.anyio

MakePosts = Callable[..., Posts]


@pytest.fixture(autouse=True)
def _no_failpoints() -> Iterator[None]:
    yield
    failpoints.plant("")


async def test_nothing_is_written_while_the_gate_is_shut(posts: Posts) -> None:
    async with RawServer(always(OK)) as server:
        posts.is_open = False
        fresh = await posts.post(server.url)
        posts.is_open = True
        await posts.post(server.url)
        posts.is_open = False
        kept = await posts.post(server.url)
        for answer in (fresh, kept):
            assert (answer.sent, answer.status, answer.error) == (False, None, None)
        assert (len(server.requests), server.connections) == (1, 1)


async def test_the_gate_is_asked_after_the_connection_is_open_and_not_before(make_posts: MakePosts) -> None:
    class Shutting(Names):
        async def resolve(self, host: str, port: int) -> list[str]:
            posts.is_open = False
            return await super().resolve(host, port)

    posts = make_posts(Shutting(a_test=["127.0.0.1"]))
    async with RawServer(always(OK)) as server:
        assert (await posts.post(f"http://a.test:{server.port}/")).sent is False
        assert server.requests == []


async def test_an_answer_is_never_handed_over_from_inside_send(posts: Posts) -> None:
    posts.is_open = False
    async with RawServer(always(OK)) as server:
        await posts.post(server.url)
        answered = posts.begin(server.url)
        assert not answered.done()
        assert (await answered).sent is False


async def test_a_connection_opened_for_a_shut_gate_may_go_stale_too(posts: Posts) -> None:
    async def script(peer: Conversation) -> None:
        await peer.request()
        if peer.number == 2:
            await peer.say(OK)

    async with RawServer(script) as server:
        posts.is_open = False
        await posts.post(server.url)
        posts.is_open = True
        answer = await posts.post(server.url)
        assert (answer.status, server.connections) == (200, 2)


async def test_a_caller_that_fails_breaks_nothing_and_is_logged(posts: Posts) -> None:
    def done(answer: SendResult) -> None:
        called.set()
        raise ZeroDivisionError

    called = asyncio.Event()
    async with RawServer(always(OK)) as server:
        with structlog.testing.capture_logs() as logs:
            posts.sender.send(Request(parse(server.url), b"", b"{}", 5.0), done)
            await called.wait()
            assert (await posts.post(server.url)).status == 200
        assert [entry["event"] for entry in logs] == ["answer.refused"]
        assert server.connections == 1


@pytest.mark.parametrize("headers", [b"x: y", b"x: y\r\n\r\nGET / HTTP/1.1\r\n", b"\r\nGET / HTTP/1.1\r\n"])
async def test_header_lines_that_would_forge_a_request_are_not_sent(posts: Posts, headers: bytes) -> None:
    async with RawServer(always(OK)) as server:
        answer = await posts.post(server.url, headers=headers)
        assert (answer.error, server.requests) == (ErrorKind.INTERNAL, [])


@pytest.mark.parametrize(
    ("host", "path"), [("a.test", "/a b"), ("a.test", "/\r\nX: y"), ("a\r\nb", "/"), ("a.test", "/é")]
)
async def test_a_target_that_would_forge_a_request_is_not_sent(posts: Posts, host: str, path: str) -> None:
    answered: asyncio.Future[SendResult] = asyncio.get_running_loop().create_future()
    target = Target(url="http://a.test/", tls=False, host=host, port=80, path=path)
    posts.sender.send(Request(target, b"", b"", 5.0), answered.set_result)
    assert (await answered).error is ErrorKind.INTERNAL


@pytest.mark.parametrize(("name", "received"), [("send.before", 0), ("send.after", 1)])
async def test_a_failpoint_around_the_write_is_an_internal_error_of_that_request_alone(
    posts: Posts, name: str, received: int
) -> None:
    async with RawServer(always(OK)) as server:
        await posts.post(server.url)
        failpoints.plant(f"{name}=error@1")
        answer = await posts.post(server.url)
        assert (answer.error, answer.sent) == (ErrorKind.INTERNAL, True)
        assert (await posts.post(server.url)).status == 200
        assert len(server.requests) in (2, 2 + received)


OPENING = ["resolve.before", "resolve.after", "connect.before", "connect.after", "tls.before", "tls.after"]


@pytest.mark.parametrize("name", OPENING)
async def test_a_failpoint_while_a_connection_is_opened_is_an_internal_error_of_that_request_alone(
    make_posts: MakePosts, authority: Authority, name: str
) -> None:
    net = Names(a_test=["127.0.0.1"])
    posts = make_posts(net, context=authority.client())
    async with RawServer(always(OK), context=authority.server("a.test")) as server:
        url = f"https://a.test:{server.port}/"
        failpoints.plant(f"{name}=error@1")
        answer = await posts.post(url)
        assert (answer.error, server.requests) == (ErrorKind.INTERNAL, [])
        assert (await posts.post(url)).status == 200


async def test_a_failpoint_between_head_and_body_is_an_internal_error_of_that_request_alone(
    posts: Posts,
) -> None:
    async def first_without_its_body(peer: Conversation) -> None:
        await peer.request()
        if peer.number == 1:
            await peer.say(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\no")
            await peer.gone()
        await peer.say(OK)

    failpoints.plant("head.after=error@1")
    async with RawServer(first_without_its_body) as server:
        assert (await posts.post(server.url)).error is ErrorKind.INTERNAL
        assert (await posts.post(server.url)).status == 200


async def test_closing_answers_what_is_under_way_and_leaves_nothing_open(posts: Posts) -> None:
    reached = asyncio.Event()

    async def silent(peer: Conversation) -> None:
        await peer.request()
        reached.set()
        await peer.gone()

    async with RawServer(silent) as server, RawServer(always(OK)) as other:
        await posts.post(other.url)
        written = posts.begin(server.url)
        await reached.wait()
        opening = posts.begin(other.url.replace("127.0.0.1", "localhost"))
        await posts.sender.close()
        assert (written.result().error, written.result().sent) == (ErrorKind.INTERNAL, True)
        assert (opening.result().error, opening.result().sent) == (ErrorKind.INTERNAL, False)
        assert (posts.sender.in_flight, posts.sender.idle, posts.sender.open_sockets) == (0, 0, 0)


async def test_a_closed_sender_sends_nothing_and_says_so(posts: Posts) -> None:
    async with RawServer(always(OK)) as server:
        await posts.sender.close()
        answer = await posts.post(server.url)
        assert (answer.error, answer.sent, server.connections) == (ErrorKind.INTERNAL, False, 0)


async def test_closing_twice_is_closing_once(posts: Posts) -> None:
    await posts.sender.close()
    await posts.sender.close()
