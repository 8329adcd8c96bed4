"""Clients that send or read too slowly, or open too many connections, keep nobody else out."""

import asyncio
import json
import resource
import socket
from collections import Counter
from contextlib import ExitStack

import pytest

from hookline.api.limits.connections import MOST_TURNED_AWAY, Clients
from hookline.api.protocol import HEAD_WITHIN_S
from hookline.api.server import KEEP_ALIVE_S
from hookline.rules.client_connections import ConnectionLimits, Full
from hookline.rules.request_pace import BYTES_PER_S, GRACE_S
from server_process import ServerProcess
from tests.security.serving import KEY, asking, head, served, until

pytestmark = pytest.mark.anyio

PUBLISH = {"type": "order.paid", "payload": 1}
FORM = "content-type: application/x-www-form-urlencoded"
SLOW_BODIES = {
    "publish": head("POST", "/v1/events", body_bytes=100),
    "batch": head("POST", "/v1/events/batch", body_bytes=100),
    "call": head("POST", "/v1/endpoints", body_bytes=100),
    "form": head("POST", "/login", FORM, "content-length: 100", "sec-fetch-site: same-origin"),
    "chunks": head("POST", "/v1/events", "content-type: application/json", "transfer-encoding: chunked"),
}


@pytest.mark.parametrize("kind", SLOW_BODIES)
async def test_a_body_that_drips_is_answered_408_and_the_connection_closed(tmp_path, kind):
    async with served(tmp_path) as server:
        line = await server.line()
        line.send(SLOW_BODIES[kind] + (b"1\r\n{\r\n" if kind == "chunks" else b"{"))
        await until(lambda: not server.connections[0]._is_in_head)
        begins = 1_000.0
        server.server.hang_up_on_the_late(begins)
        line.send(b"1\r\n \r\n" if kind == "chunks" else b" ")
        await until(lambda: server.connections[0]._body_bytes > 0)
        server.server.hang_up_on_the_late(begins + GRACE_S)
        assert not server.connections[0].transport.is_closing()
        server.server.hang_up_on_the_late(begins + GRACE_S + 1)
        answer = await line.answer()
        assert (answer.status, answer.code) == (408, "request_timeout")
        assert answer.headers["content-type"] == "application/problem+json"
        assert answer.headers["connection"] == "close"
        assert await line.end() == b""
        await until(lambda: not server.connections and not server.server.server_state.tasks)


async def test_a_body_that_nobody_waits_for_any_more_cannot_hold_its_connection(tmp_path):
    async with served(tmp_path) as server:
        line = await server.line()
        line.send(head("GET", "/healthz", body_bytes=1_000) + b"x")
        assert (await line.answer()).status == 200
        server.server.hang_up_on_the_late(1_000.0)
        server.server.hang_up_on_the_late(1_000.0 + GRACE_S + 1)
        assert await line.end() == b""


async def test_a_body_that_moves_has_the_time_it_takes(tmp_path):
    payload = b'{"type":"order.paid","payload":"%b"}' % (b"x" * 20 * BYTES_PER_S)
    async with served(tmp_path) as server:
        line = await server.line()
        line.send(head("POST", "/v1/events", body_bytes=len(payload)))
        await until(lambda: not server.connections[0]._is_in_head)
        server.server.hang_up_on_the_late(1_000.0)
        line.send(payload[:-1])
        await until(lambda: server.connections[0]._body_bytes == len(payload) - 1)
        server.server.hang_up_on_the_late(1_000.0 + GRACE_S + 19)
        line.send(payload[-1:])
        assert (await line.answer()).status == 202
        # What the first body took is not held against the next.
        line.send(head("POST", "/v1/events", body_bytes=100) + b"{")
        await until(lambda: not server.connections[0]._is_in_head)
        server.server.hang_up_on_the_late(9_000.0)
        assert not server.connections[0].transport.is_closing()


async def test_a_client_that_does_not_read_its_answers_is_cut_off(tmp_path):
    """What waits for it has a bound: only the answer that is being sent."""
    async with served(tmp_path) as server:
        line = await server.line(receive_buffer=4_096)
        size = server.hooks.settings.payload_limit_bytes
        published = await line.ask("POST", "/v1/events", {"type": "big", "payload": "x" * (size - 2)})
        [connection] = server.connections
        line.writer.transport.pause_reading()
        line.send(asking("GET", f"/v1/events/{json.loads(published.body)['id']}") * 100)
        await until(lambda: connection.flow.write_paused)
        unread = connection.transport.get_write_buffer_size()
        assert unread <= 2 * size
        patience = GRACE_S + unread / BYTES_PER_S
        server.server.hang_up_on_the_late(1_000.0)
        server.server.hang_up_on_the_late(1_000.0 + patience - 1)
        assert server.connections == [connection]
        server.server.hang_up_on_the_late(1_000.0 + 2 * patience + 1)
        await until(lambda: not server.connections and not server.server.server_state.tasks)


async def test_an_answer_that_is_closing_does_not_wait_for_its_reader_for_ever(tmp_path):
    async with served(tmp_path) as server:
        line = await server.line(receive_buffer=4_096)
        await line.ask("GET", "/healthz")
        [connection] = server.connections
        line.writer.transport.pause_reading()
        connection.transport.write(b"x" * (16 << 20))  # more than the sockets take
        connection.timeout_keep_alive_handler()
        assert connection.transport.is_closing()
        server.server.hang_up_on_the_late(1_000.0)
        assert server.connections == [connection]
        server.server.hang_up_on_the_late(1_000.0 + GRACE_S + (16 << 20) / BYTES_PER_S + 1)
        await until(lambda: not server.connections)


async def test_a_stream_that_is_not_read_ends_and_gives_its_place_back(tmp_path):
    async with served(tmp_path, dev=True, api_key=None) as server:
        line = await server.line(receive_buffer=4_096)
        line.send(asking("GET", "/live?page=overview", key=None))
        await line.reader.readuntil(b"data: ")
        [connection] = server.connections
        held = server.dashboard._streams._held
        assert held.total() == 1
        line.writer.transport.pause_reading()
        connection.transport.write(b"x" * (16 << 20))
        server.server.hang_up_on_the_late(1_000.0)
        server.server.hang_up_on_the_late(1_000.0 + GRACE_S + (17 << 20) / BYTES_PER_S)
        await until(lambda: not server.connections and not held.total())


async def test_who_reads_is_not_cut_off_however_much_there_is(tmp_path):
    async with served(tmp_path) as server:
        line = await server.line()
        await line.ask("GET", "/healthz")
        [connection] = server.connections
        for n in range(5):
            line.writer.transport.pause_reading()
            connection.transport.write(b"x" * (16 << 20))
            server.server.hang_up_on_the_late(1_000.0 * n)
            line.writer.transport.resume_reading()
            await line.reader.readexactly(16 << 20)
            await until(lambda: not connection.transport.get_write_buffer_size())
            server.server.hang_up_on_the_late(1_000.0 * n + 1)
        assert (await line.ask("GET", "/healthz")).status == 200


async def test_an_idle_connection_has_an_end(tmp_path):
    async with served(tmp_path) as server:
        for request in (asking("GET", "/healthz"), asking("POST", "/v1/events", PUBLISH)):
            line = await server.line()
            line.send(request)
            await line.answer()
        for connection in server.connections:
            timer = connection.timeout_keep_alive_task
            assert timer is not None
            assert timer.when() <= asyncio.get_running_loop().time() + KEEP_ALIVE_S
        new = await server.line()
        await until(lambda: len(server.connections) == 3)
        server.server.hang_up_on_the_late(asyncio.get_running_loop().time() + HEAD_WITHIN_S + 1)
        assert await new.end() == b""
        assert len(server.connections) == 2


# --- too many connections ---


async def test_a_connection_over_the_cap_is_told_so_and_the_others_go_on(tmp_path):
    async with served(tmp_path, max_connections=3) as server:
        lines = [await server.line() for _ in range(3)]
        for line in lines:
            assert (await line.ask("GET", "/healthz")).status == 200
        for request in (asking("GET", "/healthz"), asking("POST", "/v1/events", PUBLISH), b"GET / HT"):
            surplus = await server.line()
            surplus.send(request)
            answer = await surplus.answer()
            assert (answer.status, answer.code) == (503, "overloaded")
            assert answer.headers["content-type"] == "application/problem+json"
            assert (answer.headers["retry-after"], answer.headers["connection"]) == ("1", "close")
            assert json.loads(answer.body)["request_id"] == answer.headers["request-id"]
            assert await surplus.end() == b""
        for line in lines:
            assert (await line.ask("POST", "/v1/events", PUBLISH)).status == 202
        lines[0].writer.close()
        await until(lambda: server.api.clients.open == 2)
        assert (await (await server.line()).ask("GET", "/healthz")).status == 200
        assert server.hooks.connections_refused == {"server": 3}
        metrics = (await lines[1].ask("GET", "/metrics")).body.decode()
        assert 'hookline_connections_refused_total{limit="server"} 3.0' in metrics
        assert 'hookline_connections_refused_total{limit="address"} 0.0' in metrics


async def test_a_flood_of_connections_over_the_cap_is_not_held_either(tmp_path):
    async with served(tmp_path, max_connections=1) as server:
        server.api.clients.linger_s = 3_600.0
        line = await server.line()
        assert (await line.ask("GET", "/healthz")).status == 200
        surplus = [await server.line() for _ in range(MOST_TURNED_AWAY + 20)]
        for each in surplus[MOST_TURNED_AWAY:]:
            assert await each.end() == b""
        assert server.api.clients.turned_away == MOST_TURNED_AWAY
        assert (await surplus[0].ask("GET", "/healthz")).status == 503
        assert len(server.connections) == 1
        assert (await line.ask("GET", "/healthz")).status == 200
        for each in surplus:
            each.writer.close()
        await until(lambda: not server.api.clients.turned_away)


async def test_who_is_turned_away_and_says_nothing_is_not_waited_for(tmp_path):
    async with served(tmp_path, max_connections=1) as server:
        server.api.clients.linger_s = 0.01
        await (await server.line()).ask("GET", "/healthz")
        assert await (await server.line()).end() == b""
        assert not server.api.clients.turned_away


def test_one_address_gets_a_part_and_this_machine_all():
    refused: Counter[str] = Counter()
    clients = Clients(ConnectionLimits(most=10, most_of_one=4), refused)
    assert [clients.enter("192.0.2.1") for _ in range(5)] == [None] * 4 + [Full.ADDRESS]
    # One customer's IPv6 network counts as one address, whatever it calls itself.
    assert [clients.enter(f"2001:db8::{n}") for n in range(5)] == [None] * 4 + [Full.ADDRESS]
    assert clients.enter("192.0.2.2") is None
    clients.leave("192.0.2.1")
    assert clients.enter("192.0.2.1") is None
    assert [clients.enter("127.0.0.1") for _ in range(2)] == [None, Full.SERVER]
    assert refused == {"address": 2, "server": 1}
    for address in ["192.0.2.1"] * 4 + [f"2001:db8::{n}" for n in range(4)]:
        clients.leave(address)
    assert [clients.enter("127.0.0.1") for _ in range(8)] == [None] * 8
    assert not clients._from["192.0.2.1"]


async def test_half_open_requests_keep_nobody_from_being_answered(tmp_path):
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft < 2_048:
        resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, 2_048), hard))
    begun = [
        b"GET /v1/events HTTP/1.1\r\nhost: x\r\nx-slow: ",
        head("POST", "/v1/events", body_bytes=100) + b"{",
        head("POST", "/v1/endpoints", body_bytes=100) + b"{",
        head("POST", "/login", FORM, "content-length: 100", "sec-fetch-site: same-origin") + b"k",
    ]
    with ServerProcess(cwd=tmp_path, env={"HOOKLINE_API_KEY": KEY}) as process, ExitStack() as stack:
        for n in range(500):
            client = stack.enter_context(socket.create_connection(("127.0.0.1", process.port), timeout=120))
            client.sendall(begun[n % len(begun)])
        reader, writer = await asyncio.open_connection("127.0.0.1", process.port)
        for number in range(100):
            request = asking("GET", "/healthz") if number % 2 else asking("POST", "/v1/events", PUBLISH)
            writer.write(request)
            answered = await reader.readuntil(b"\r\n\r\n")
            assert answered.split()[1] == (b"200" if number % 2 else b"202")
            length = int(answered.lower().partition(b"content-length:")[2].split()[0])
            await reader.readexactly(length)
        writer.close()
