"""When a connection is used again, and what happens if it was closed meanwhile."""

import asyncio
from collections.abc import Callable

import pytest

from hookline.clock import SystemClock
from hookline.model import ErrorKind
from hookline.pipeline.sending.pool import PoolLimits
from pipeline.sending.raw_server import Conversation, RawServer, always
from pipeline.sending.sending import OK, Posts, until

pytestmark = pytest.mark.anyio

MakePosts = Callable[..., Posts]


async def test_requests_in_a_row_share_one_connection(posts: Posts) -> None:
    async with RawServer(always(OK)) as server:
        timings = [(await posts.post(server.url)).timings for _ in range(5)]
        assert server.connections == 1
        assert timings[0].connect is not None
        assert [(each.dns, each.connect, each.tls) for each in timings[1:]] == [(None, None, None)] * 4
        assert all(each.first_byte is not None for each in timings)


async def test_paths_of_one_destination_share_connections_and_destinations_do_not(posts: Posts) -> None:
    async with RawServer(always(OK)) as one, RawServer(always(OK)) as other:
        await posts.post(one.url + "/a")
        await posts.post(one.url + "/b?c=d")
        await posts.post(other.url)
        assert (one.connections, other.connections) == (1, 1)
        assert [request.split(b"\r\n")[0] for request in one.requests] == [
            b"POST /hooks/a HTTP/1.1",
            b"POST /hooks/b?c=d HTTP/1.1",
        ]


async def test_the_request_on_the_wire_is_the_head_the_fields_and_the_body_untouched(posts: Posts) -> None:
    async with RawServer(always(OK)) as server:
        await posts.post(server.url, body=b'{"a":\n1}', headers=b"x-one: 1\r\nx-two: 2\r\n")
        assert server.requests == [
            b"POST /hooks HTTP/1.1\r\nHost: 127.0.0.1:%d\r\nContent-Length: 8\r\nx-one: 1\r\nx-two: 2\r\n\r\n"
            b'{"a":\n1}' % server.port
        ]


async def test_a_large_body_arrives_whole(posts: Posts) -> None:
    body = bytes(range(256)) * 4096
    async with RawServer(always(OK)) as server:
        assert (await posts.post(server.url, body=body)).status == 200
        assert server.requests[0].endswith(b"\r\n\r\n" + body)


async def test_a_stale_connection_is_replaced_at_once_and_only_once(posts: Posts) -> None:
    async def script(peer: Conversation) -> None:
        await peer.request()
        if peer.number in (1, 3):
            await peer.say(OK)
            await peer.request()  # the next request reaches a server that closes without an answer

    async with RawServer(script) as server:
        assert (await posts.post(server.url)).status == 200
        again = await posts.post(server.url)
        assert (again.error, server.connections, len(server.requests)) == (ErrorKind.RESET, 2, 3)
        assert (await posts.post(server.url)).status == 200
        assert server.connections == 3


async def test_a_stale_connection_costs_the_request_nothing_but_time(posts: Posts) -> None:
    async def script(peer: Conversation) -> None:
        await peer.request()
        await peer.say(OK)
        if peer.number == 1:
            await peer.request()
            peer.reset()
        else:
            await peer.gone()

    async with RawServer(script) as server:
        await posts.post(server.url)
        answer = await posts.post(server.url)
        assert (answer.status, answer.error, server.connections) == (200, None, 2)
        assert answer.timings.connect is not None


async def test_a_kept_connection_that_ends_after_a_byte_of_the_answer_is_not_tried_again(
    posts: Posts,
) -> None:
    async def script(peer: Conversation) -> None:
        await peer.request()
        await peer.say(OK)
        await peer.request()
        await peer.say(b"H")

    async with RawServer(script) as server:
        await posts.post(server.url)
        assert (await posts.post(server.url)).error is ErrorKind.RESET
        assert server.connections == 1


async def test_a_gate_shut_before_the_second_try_does_not_claim_that_nothing_was_sent(posts: Posts) -> None:
    async def script(peer: Conversation) -> None:
        await peer.request()
        await peer.say(OK)
        await peer.request()
        posts.is_open = False

    async with RawServer(script) as server:
        await posts.post(server.url)
        answer = await posts.post(server.url)
        assert (answer.sent, answer.error, len(server.requests)) == (True, ErrorKind.RESET, 2)


async def test_an_idle_connection_closed_by_the_peer_is_let_go(posts: Posts) -> None:
    async with RawServer(always(OK, then_close=True)) as server:
        await posts.post(server.url)
        await until(lambda: posts.sender.open_sockets == 0)
        assert posts.sender.idle == 0
        assert (await posts.post(server.url)).status == 200
        assert server.connections == 2


async def test_bytes_on_an_idle_connection_close_it(make_posts: MakePosts) -> None:
    posts = make_posts(pool=PoolLimits(idle=1_000.0))  # it is not age that closes it
    idle = asyncio.Event()

    async def script(peer: Conversation) -> None:
        await peer.request()
        await peer.say(OK)
        await idle.wait()
        await peer.say(OK)
        await peer.gone()

    async with RawServer(script) as server:
        await posts.post(server.url)
        assert posts.sender.idle == 1
        idle.set()
        await until(lambda: posts.sender.open_sockets == 0)
        assert posts.sender.idle == 0


async def test_an_idle_connection_is_closed_when_its_time_is_over(make_posts: MakePosts) -> None:
    posts = make_posts(pool=PoolLimits(idle=0.2))
    async with RawServer(always(OK)) as server:
        await posts.post(server.url)
        assert posts.sender.idle == 1
        await server.over.wait()
        await until(lambda: posts.sender.open_sockets == 0)
        assert posts.sender._sweeper is None or posts.sender.idle == 0


async def test_an_old_connection_is_not_kept(make_posts: MakePosts) -> None:
    posts = make_posts(pool=PoolLimits(age=0.0))
    async with RawServer(always(OK)) as server:
        await posts.post(server.url)
        await posts.post(server.url)
        assert server.connections == 2


async def test_connections_kept_are_bounded_for_a_destination_and_in_all(make_posts: MakePosts) -> None:
    posts = make_posts(pool=PoolLimits(per_destination=2, total=3))
    async with RawServer(always(OK)) as one, RawServer(always(OK)) as other:
        await asyncio.gather(*(posts.begin(one.url) for _ in range(5)))
        assert posts.sender.idle == 2
        await asyncio.gather(*(posts.begin(other.url) for _ in range(5)))
        assert posts.sender.idle == 3
        await posts.post(other.url)
        assert other.connections == 5  # the oldest was closed, not those just used


async def test_an_answer_before_the_body_was_taken_closes_the_connection(posts: Posts) -> None:
    async def script(peer: Conversation) -> None:
        await peer._reader.readuntil(b"\r\n\r\n")
        await peer.say(b"HTTP/1.1 413 Too Large\r\nContent-Length: 0\r\n\r\n")
        await peer.gone()

    async with RawServer(script) as server:
        answer = await posts.post(server.url, body=b"x" * 20_000_000)
        assert (answer.status, answer.error) == (413, None)
        assert posts.sender.idle == 0


async def test_the_next_request_may_be_sent_from_inside_the_answer(posts: Posts) -> None:
    from hookline.pipeline.sending import Request, SendResult, parse

    async with RawServer(always(OK)) as server:
        answers: list[SendResult] = []
        finished = asyncio.Event()

        def done(answer: SendResult) -> None:
            answers.append(answer)
            if len(answers) < 100:
                posts.sender.send(Request(parse(server.url), b"", b"{}", 5.0), done)
            else:
                finished.set()

        posts.sender.send(Request(parse(server.url), b"", b"{}", 5.0), done)
        async with asyncio.timeout(120):
            await finished.wait()
        assert server.connections == 1
        assert {answer.status for answer in answers} == {200}


async def test_no_task_and_no_timer_is_made_for_a_request_on_a_kept_connection(posts: Posts) -> None:
    async with RawServer(always(OK)) as server:
        await posts.post(server.url)
        tasks, sweeper = asyncio.all_tasks(), posts.sender._sweeper
        answered = posts.begin(server.url)
        assert asyncio.all_tasks() == tasks
        assert posts.sender._sweeper is sweeper
        assert (await answered).status == 200


async def test_the_sweep_rests_when_there_is_nothing_to_watch(make_posts: MakePosts) -> None:
    posts = make_posts(clock=SystemClock(), pool=PoolLimits(age=0.0))
    async with RawServer(always(OK)) as server:
        await posts.post(server.url)
        await until(lambda: posts.sender._sweeper is None)
        assert (await posts.post(server.url)).status == 200
