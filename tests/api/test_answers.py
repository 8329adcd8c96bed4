"""What the API answers when the fault is not the caller's, or the request is not yet HTTP."""

import asyncio
import json
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from hookline.api.app import Api
from hookline.api.problem import describe, headers_for
from hookline.api.protocol import HEAD_WITHIN_S, Protocol
from hookline.api.server import ApiServer
from hookline.app import Hookline
from hookline.config import Settings
from hookline.errors import (
    HooklineError,
    IdempotencyConflict,
    Invalid,
    NotFound,
    Overloaded,
    StorageFull,
    StoreUnavailable,
    TooLarge,
    Unreadable,
    WrongState,
)
from hookline.pipeline.intake.drafts import Done, Draft, Result

pytestmark = pytest.mark.anyio


class Broken(Hookline):
    """Fails where no handler expects it."""

    def submit(self, drafts: list[Draft], done: Done) -> None:
        raise RuntimeError("canary")

    async def accept(self, drafts: list[Draft]) -> list[Result]:
        raise RuntimeError("canary")


@asynccontextmanager
async def serving(hookline: Hookline) -> AsyncIterator[tuple[ApiServer, int]]:
    listener = socket.create_server(("127.0.0.1", 0))
    port = listener.getsockname()[1]
    async with hookline:
        server = ApiServer(Api(hookline), hookline.clock)
        task = asyncio.create_task(server.serve(sockets=[listener]))
        await server.is_listening.wait()
        yield server, port
        server.leave()
        await task


async def test_an_error_of_ours_says_nothing_about_itself(tmp_path, capsys):
    broken = Broken(f"sqlite:///{tmp_path}/x.db", settings=Settings(dev=True))
    body = b'{"type":"a","payload":1}'
    async with serving(broken) as (_, port):
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(
            b"POST /v1/events HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n"
            b"connection: close\r\ncontent-length: %d\r\n\r\n%b" % (len(body), body)
        )
        answer = await reader.read()
        writer.close()
    assert answer.startswith(b"HTTP/1.1 500 ")
    problem = json.loads(answer.partition(b"\r\n\r\n")[2])
    assert problem["code"] == "internal"
    assert b"canary" not in answer
    printed = capsys.readouterr()
    assert "canary" in printed.out + printed.err
    assert problem["request_id"] in printed.out + printed.err


async def test_a_head_that_does_not_end_is_hung_up_on_and_an_idle_connection_is_not(tmp_path):
    hookline = Hookline(f"sqlite:///{tmp_path}/x.db", settings=Settings(dev=True))
    async with serving(hookline) as (server, port):
        slow_reader, slow_writer = await asyncio.open_connection("127.0.0.1", port)
        idle_reader, idle_writer = await asyncio.open_connection("127.0.0.1", port)
        request = b"GET /healthz HTTP/1.1\r\nhost: localhost\r\n\r\n"
        slow_writer.write(request[:-2])
        idle_writer.write(request)
        await idle_reader.readuntil(b'{"status":"ok"}')
        assert len(server.server_state.connections) == 2
        later = asyncio.get_running_loop().time() + HEAD_WITHIN_S + 1
        for connection in list(server.server_state.connections):
            assert isinstance(connection, Protocol)
            connection.hang_up_if_late(later)
        assert await slow_reader.read() == b""
        idle_writer.write(request)
        await idle_reader.readuntil(b'{"status":"ok"}')
        slow_writer.close()
        idle_writer.close()


@pytest.mark.parametrize(
    ("error", "status", "code"),
    [
        (Invalid("x", pointer="/a"), 422, "invalid_field"),
        (Invalid("x", code="fanout_limit"), 422, "fanout_limit"),
        (Unreadable("x"), 400, "invalid_json"),
        (TooLarge("A payload", limit_bytes=1), 413, "too_large"),
        (NotFound("event", "evt_x"), 404, "not_found"),
        (WrongState("cancelled", "dead"), 409, "wrong_state"),
        (IdempotencyConflict("k"), 422, "idempotency_conflict"),
        (StoreUnavailable("canary"), 503, "unavailable"),
        (StorageFull("canary"), 503, "storage_full"),
        (Overloaded("x"), 503, "overloaded"),
        (HooklineError("canary"), 500, "internal"),
        (RuntimeError("canary"), 500, "internal"),
    ],
)
async def test_each_error_has_its_code(error, status, code):
    problem = describe(error, request_id="req_1")
    assert (problem.status, problem.code, problem.request_id) == (status, code, "req_1")
    assert "canary" not in problem.detail
    assert ((b"retry-after", b"1") in headers_for(problem)) == (status == 503)
