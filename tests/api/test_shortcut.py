"""Publishes that arrive whole take a shortcut that the answers do not show."""

import asyncio
import json
import socket
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

import pytest

from hookline.api.app import Api
from hookline.api.server import ApiServer
from hookline.app import Hookline
from hookline.config import Settings
from hookline.errors import StoreUnavailable
from hookline.model import State
from hookline.pipeline.intake.drafts import Done, Draft

pytestmark = pytest.mark.anyio

EVENT = b'{"type":"order.paid","payload":{"n":%d}}'


class Held(Hookline):
    """Holds publishes back until the test lets them go on."""

    held: list[tuple[list[Draft], Done]] | None = None

    def submit(self, drafts: list[Draft], done: Done) -> None:
        if self.held is None:
            super().submit(drafts, done)
        else:
            self.held.append((drafts, done))

    def go_on(self) -> None:
        held, self.held = self.held or [], None
        for drafts, done in held:
            super().submit(drafts, done)


class Client:
    """One connection, driven by hand."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self.writer = writer

    def send(self, *requests: bytes) -> None:
        self.writer.write(b"".join(requests))

    async def answer(self) -> tuple[int, dict[str, str], dict]:
        head = (await self._reader.readuntil(b"\r\n\r\n")).decode().split("\r\n")
        headers = dict(line.lower().split(": ", 1) for line in head[1:-2])
        body = await self._reader.readexactly(int(headers["content-length"]))
        return int(head[0].split()[1]), headers, json.loads(body)

    async def is_closed(self) -> bool:
        return await self._reader.read() == b""


@asynccontextmanager
async def serving(hookline: Hookline) -> AsyncIterator[tuple[ApiServer, Client]]:
    listener = socket.create_server(("127.0.0.1", 0))
    async with hookline:
        server = ApiServer(Api(hookline), hookline.clock)
        task = asyncio.create_task(server.serve(sockets=[listener]))
        await server.is_listening.wait()
        client = Client(*await asyncio.open_connection(*listener.getsockname()))
        async with asyncio.timeout(120):
            yield server, client
        client.writer.close()
        server.leave()
        await task


@pytest.fixture
def hookline(tmp_path) -> Held:
    return Held(f"sqlite:///{tmp_path}/x.db", settings=Settings(dev=True))


def post(path: bytes, body: bytes, *headers: bytes) -> bytes:
    lines = b"".join(b"%b\r\n" % line for line in headers)
    return (
        b"POST %b HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n%bcontent-length: %d\r\n\r\n%b"
        % (path, lines, len(body), body)
    )


async def until(condition: Callable[[], object]) -> None:
    async with asyncio.timeout(120):
        while not condition():  # noqa: ASYNC110 - the server has no event for these
            await asyncio.sleep(0.001)


def has_begun(server: ApiServer) -> bool:
    """Has a part of a request arrived?"""
    for connection in server.server_state.connections:
        return connection._head_bytes > 0
    return False


async def test_requests_sent_without_waiting_are_answered_in_their_order(hookline: Held):
    async with serving(hookline) as (_, client):
        client.send(
            post(b"/v1/events", EVENT % 1),
            b"GET /healthz HTTP/1.1\r\nhost: localhost\r\n\r\n",
            post(b"/v1/events", b'{"type":"order.paid","payload":'),
            post(b"/v1/events/batch", b'{"events":[%b]}' % EVENT % 2),
            post(b"/v1/events", EVENT % 3),
        )
        answers = [await client.answer() for _ in range(5)]
    assert [status for status, _, _ in answers] == [202, 200, 400, 202, 202]
    assert "results" in answers[3][2]
    assert len({headers["request-id"] for _, headers, _ in answers}) == 5


async def test_a_request_behind_a_publish_waits_for_its_commit(hookline: Held):
    hookline.held = []
    async with serving(hookline) as (_, client):
        client.send(post(b"/v1/events", EVENT % 1))
        await until(lambda: hookline.held)
        client.send(b"GET /healthz HTTP/1.1\r\nhost: localhost\r\n\r\n")
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(asyncio.shield(first := asyncio.ensure_future(client.answer())), 0.1)
        hookline.go_on()
        assert (await first)[0] == 202
        assert (await client.answer())[0] == 200


async def test_a_publish_in_pieces_is_answered_like_a_whole_one(hookline: Held):
    request = post(b"/v1/events", EVENT % 1)
    async with serving(hookline) as (server, client):
        for cut in (10, len(request) - 20, len(request) - 1):
            client.send(request[:cut])
            await until(lambda: has_begun(server))
            client.send(request[cut:])
            status, headers, body = await client.answer()
            assert (status, headers["content-type"]) == (202, "application/json")
            assert body["deliveries"] == 0


async def test_a_head_that_is_known_says_how_long_the_body_is(hookline: Held):
    request, longer = post(b"/v1/events", EVENT % 1), post(b"/v1/events", EVENT % 10)
    async with serving(hookline) as (server, client):
        for _ in range(3):
            client.send(request)
            assert (await client.answer())[0] == 202
        assert len(server.config.app.heads) == 1
        client.send(request[:-5])
        await until(lambda: has_begun(server))
        client.send(request[-5:], request, longer, request)
        assert [(await client.answer())[0] for _ in range(4)] == [202] * 4
        client.send(request[:-1], b" ")  # of the same length, and no JSON any more
        assert (await client.answer())[0] == 400
        client.send(request)
        assert (await client.answer())[0] == 202


async def test_a_head_that_is_different_each_time_is_not_kept(hookline: Held):
    async with serving(hookline) as (server, client):
        for n in range(3):
            client.send(post(b"/v1/events", EVENT % 1, b"idempotency-key: k%d" % n))
            assert (await client.answer())[0] == 202
        client.send(post(b"/v1/events", EVENT % 1, b"idempotency-key: k0"))
        assert (await client.answer())[2]["duplicate"] is True
        assert not server.config.app.heads


async def test_a_connection_that_is_to_be_closed_is_closed_after_the_answer(hookline: Held):
    async with serving(hookline) as (_, client):
        client.send(post(b"/v1/events", EVENT % 1, b"connection: close"))
        status, headers, _ = await client.answer()
        assert (status, headers["connection"]) == (202, "close")
        assert await client.is_closed()


async def test_a_client_that_goes_away_does_not_take_its_event_with_it(hookline: Held):
    hookline.held = []
    async with serving(hookline) as (server, client):
        await hookline.create_endpoint(url="http://127.0.0.1:9999/", events=["*"], paused=True)
        client.send(post(b"/v1/events", EVENT % 1))
        await until(lambda: hookline.held)
        client.writer.transport.abort()
        await until(lambda: not server.server_state.connections)
        hookline.go_on()
        await hookline.publish("other", {})  # its commit comes after
        assert (await hookline.store.counts()).get(State.PENDING) == 2


async def test_a_server_that_stops_answers_the_publish_under_way_first(hookline: Held):
    hookline.held = []
    async with serving(hookline) as (server, client):
        client.send(post(b"/v1/events", EVENT % 1))
        await until(lambda: hookline.held)
        server.leave()
        await until(lambda: not any(each.cycle.keep_alive for each in server.server_state.connections))
        hookline.go_on()
        status, headers, _ = await client.answer()
        assert (status, headers["connection"]) == (202, "close")
        assert await client.is_closed()


async def test_a_commit_that_fails_is_a_problem_like_any_other(hookline: Held):
    hookline.held = []
    async with serving(hookline) as (_, client):
        client.send(post(b"/v1/events", EVENT % 1))
        await until(lambda: hookline.held)
        ((_, done),) = hookline.held
        hookline.held = None
        done(StoreUnavailable("gone"))
        status, headers, problem = await client.answer()
        assert (status, headers["content-type"]) == (503, "application/problem+json")
        assert headers["retry-after"]
        assert problem["code"] == "unavailable"
        assert problem["request_id"] == headers["request-id"]
        client.send(post(b"/v1/events", EVENT % 2))
        assert (await client.answer())[0] == 202
