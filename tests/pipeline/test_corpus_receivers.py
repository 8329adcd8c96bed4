"""What happens to a delivery when its receiver behaves as badly as receivers do.

Each test is named by the id of its row in tests/corpus/bad-input.jsonl (area `receiver`), and runs from publish
to settlement. This file has the rows about bytes and time; test_corpus_answers.py those about meaning.
"""

import gzip
import json
import re
import socket
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import structlog

from hookline.app import Hookline
from hookline.config import Settings
from hookline.model import Attempt, Delivery, ErrorKind, Outcome, State
from pipeline.sending.raw_server import Conversation, RawServer, Script, always
from pipeline.sending.sending import OK, until
from tests.own_memory import Memory
from tests.world import World

pytestmark = pytest.mark.anyio

CORPUS = Path(__file__).parents[1] / "corpus" / "bad-input.jsonl"
TWICE = {"schedule": [0, 1], "jitter": "none"}
LINE = b"HTTP/1.1 200 OK\r\n"
TIMEOUT = 1.0  # the shortest there is
LATEST = 30.0  # who drips would take a minute; how exactly the deadline is kept is judged by the simulation
ROOM_BYTES = 10 << 20


def test_every_row_of_the_corpus_about_receivers_has_its_test():
    rows = [json.loads(line) for line in CORPUS.read_text().splitlines()]
    wanted = {row["id"] for row in rows if row["area"] == "receiver"}
    sources = "".join(path.read_text() for path in Path(__file__).parent.glob("test_corpus_*.py"))
    assert set(re.findall(r"^(?:async )?def test_(R\d\d)_", sources, re.MULTILINE)) == wanted
    assert len(wanted) == 20


async def attempts_of(
    world: World, url: str, number: int, **endpoint: object
) -> tuple[Delivery, list[Attempt]]:
    """An event's delivery to this URL and its attempts, when there are so many."""
    hooks = await world.start()
    await hooks.create_endpoint(url=url, events=["*"], **{"retry": TWICE, "circuit": None, **endpoint})
    event = await world.pass_until(hooks.publish("order.paid", {"id": 42}))

    async def are_there() -> bool:
        delivery = await world.delivery(hooks, event.id)
        return len(await hooks.store.attempts(delivery.id)) >= number

    await world.until(are_there)
    delivery = await world.delivery(hooks, event.id)
    return delivery, list(await hooks.store.attempts(delivery.id))


def errors(attempts: list[Attempt]) -> list[ErrorKind | None]:
    assert all(attempt.outcome is Outcome.TRANSIENT for attempt in attempts)
    return [attempt.error for attempt in attempts]


# --- connections that break ---


async def test_R01_a_refused_connection_is_tried_again(world: World) -> None:
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))  # bound but not listening: it refuses, and nobody else gets the port
        _, attempts = await attempts_of(world, f"http://127.0.0.1:{closed.getsockname()[1]}/", 2)
    assert errors(attempts) == [ErrorKind.CONNECT_REFUSED] * 2


@pytest.mark.parametrize("how", ["reset in the request", "reset after it", "closed before the status line"])
async def test_R01_a_connection_that_breaks_is_tried_again(world: World, how: str) -> None:
    async def script(peer: Conversation) -> None:
        if how == "reset in the request":
            await peer._reader.readexactly(10)
            peer.reset()
            return
        await peer.request()
        if how == "reset after it":
            peer.reset()

    async with RawServer(script) as server:
        _, attempts = await attempts_of(world, server.url, 2)
        assert errors(attempts) == [ErrorKind.RESET] * 2
        assert server.connections == 2


# --- time, on the machine's own clock ---


@pytest.fixture
async def hooks(database: str) -> AsyncIterator[Hookline]:
    async with Hookline(database, settings=Settings(dev=True)) as hooks:
        yield hooks


async def timed_out(hooks: Hookline, script: Script) -> list[Attempt]:
    """Two deliveries to such a receiver: returns the attempts, which must end by their deadlines."""
    async with RawServer(script) as server:
        fields = {"timeout_ms": int(TIMEOUT * 1_000), "retry": {"schedule": [0, 3_600]}}
        await hooks.create_endpoint(url=server.url, events=["*"], **fields)
        events = [await hooks.publish("order.paid", n) for n in range(2)]
        world = World("")  # for its way of finding deliveries
        deliveries = [await world.delivery(hooks, event.id) for event in events]

        async def found() -> list[Attempt]:
            return [each for d in deliveries for each in await hooks.store.attempts(d.id)]

        while len(attempts := await found()) < 2:
            await until(lambda: hooks._sender.in_flight == 0)
        assert hooks._sender.open_sockets == 0
        states = [(await world.delivery(hooks, event.id)).state for event in events]
        assert states == [State.PENDING] * 2
    durations = [attempt.duration for attempt in attempts]
    assert min(durations) >= TIMEOUT - 0.002
    assert max(durations) <= LATEST
    return attempts


async def test_R02_a_receiver_that_never_answers_costs_its_deadline(hooks: Hookline) -> None:
    async def script(peer: Conversation) -> None:
        await peer.request()
        await peer.gone()

    assert errors(await timed_out(hooks, script)) == [ErrorKind.TIMEOUT] * 2


async def test_R03_headers_that_drip_do_not_put_the_deadline_off(hooks: Hookline) -> None:
    async def script(peer: Conversation) -> None:
        await peer.request()
        await peer.say(LINE)
        await peer.drip(b"A: " + b"x" * 100, pause=0.5)

    assert errors(await timed_out(hooks, script)) == [ErrorKind.TIMEOUT] * 2


async def test_R04_a_body_that_drips_past_the_deadline_is_not_delivered(hooks: Hookline) -> None:
    async def script(peer: Conversation) -> None:
        await peer.request()
        await peer.say(LINE + b"Content-Length: 1000\r\n\r\n")
        await peer.drip(b"x" * 1000, pause=0.5)

    attempts = await timed_out(hooks, script)
    assert errors(attempts) == [ErrorKind.TIMEOUT] * 2
    assert [attempt.status for attempt in attempts] == [200] * 2


# --- size ---


async def test_R05_a_huge_body_is_not_read_to_its_end(world: World) -> None:
    written = 0

    async def script(peer: Conversation) -> None:
        nonlocal written
        await peer.request()
        await peer.say(LINE + b"Content-Length: 1000000000\r\n\r\n")
        while True:
            await peer.say(b"x" * 65_536)
            written += 65_536

    async with RawServer(script) as server:
        delivery, [attempt] = await attempts_of(world, server.url, 1)
        assert delivery.state is State.DELIVERED
        assert (attempt.response_body, attempt.response_truncated) == (b"x" * 4_096, True)
        await server.over.wait()
        assert written < 100_000_000, "the rest of what the kernel's buffers took, not the whole"


@pytest.mark.parametrize("encoding", ["gzip", "br", "zstd"])
async def test_R06_a_compressed_bomb_stays_as_it_came(world: World, encoding: str) -> None:
    bomb = gzip.compress(bytes(60 << 20), compresslevel=9)
    said = (
        LINE + b"Content-Encoding: %b\r\nContent-Length: %d\r\n\r\n" % (encoding.encode(), len(bomb)) + bomb
    )
    async with RawServer(always(said)) as server:
        memory = Memory()
        delivery, [attempt] = await attempts_of(world, server.url, 1)
        assert delivery.state is State.DELIVERED
        assert attempt.response_body == bomb[:4_096]
        assert memory.growth_bytes <= ROOM_BYTES
        assert b"accept-encoding: identity" in server.requests[0]


async def test_R07_a_body_that_ends_early_leaves_the_status_to_decide(world: World) -> None:
    async with RawServer(always(LINE + b"Content-Length: 9\r\n\r\nbody", then_close=True)) as server:
        delivery, [attempt] = await attempts_of(world, server.url, 1)
        assert delivery.state is State.DELIVERED
        assert (attempt.response_body, attempt.response_truncated) == (b"body", True)
        assert world._running[0]._sender.idle == 0


# --- framing ---


@pytest.mark.parametrize(
    ("said", "state"),
    [
        (b"HTTP/1.1 204 No Content\r\nContent-Length: 4\r\n\r\nbody", State.DELIVERED),
        (b"HTTP/1.1 204 No Content\r\nContent-Length: 4\r\n\r\n", State.DELIVERED),
        (b"HTTP/1.1 204 No Content\r\n\r\nbody", State.DELIVERED),
        (b"HTTP/1.1 205 Reset Content\r\nContent-Length: 4\r\n\r\nbody", State.DELIVERED),
        (b"HTTP/1.1 304 Not Modified\r\nContent-Length: 4\r\n\r\nbody", State.DEAD),
        (b"HTTP/1.1 304 Not Modified\r\nContent-Length: 4\r\n\r\n", State.DEAD),
    ],
)
async def test_R08_a_body_where_none_belongs_is_no_beginning_of_the_next_answer(
    world: World, said: bytes, state: State
) -> None:
    async with RawServer(always(said)) as server:
        delivery, [attempt] = await attempts_of(world, server.url, 1)
        assert (delivery.state, attempt.error) in (
            (State.DELIVERED, None),
            (State.DEAD, ErrorKind.HTTP_3XX),
        )
        assert delivery.state is state
        hooks = world._running[0]
        assert hooks._sender.idle == 0
        again = await world.pass_until(hooks.publish("order.paid", {}))
        await world.until_state(hooks, again.id, state)
        assert server.connections == 2


async def test_R08_a_reply_that_promises_a_body_and_sends_none_is_a_timeout(world: World) -> None:
    async with RawServer(always(LINE + b"Content-Length: 9\r\n\r\n")) as server:
        _, attempts = await attempts_of(world, server.url, 2)
        assert errors(attempts) == [ErrorKind.TIMEOUT] * 2
        assert server.connections == 2


@pytest.mark.parametrize(
    "said",
    [
        b"just text, as in HTTP/0.9",
        b"<html>hello</html>",
        b"HTTP/1.1 99\r\nContent-Length: 0\r\n\r\n",
        b"HTTP/1.1 200OK\r\nContent-Length: 0\r\n\r\n",
        b"HTTP/1.1 1000 Much\r\nContent-Length: 0\r\n\r\n",
        b"HTTP/1.1 -200 Less\r\nContent-Length: 0\r\n\r\n",
        b"HTTP/0.9 200 OK\r\nContent-Length: 0\r\n\r\n",
    ],
)
async def test_R09_what_is_no_status_line_is_a_protocol_error(world: World, said: bytes) -> None:
    async with RawServer(always(said)) as server:
        _, attempts = await attempts_of(world, server.url, 2)
        assert errors(attempts) == [ErrorKind.PROTOCOL] * 2


@pytest.mark.parametrize("head", [b"A: b\r\n" * 200_000, b"A: " + b"x" * 1_000_000 + b"\r\n"])
async def test_R10_a_head_without_end_is_a_protocol_error(world: World, head: bytes) -> None:
    async with RawServer(always(LINE + head + b"Content-Length: 0\r\n\r\n")) as server:
        memory = Memory()
        _, attempts = await attempts_of(world, server.url, 2)
        assert errors(attempts) == [ErrorKind.PROTOCOL] * 2
        assert memory.growth_bytes <= ROOM_BYTES


@pytest.mark.parametrize(
    ("said", "error"),
    [
        (LINE + b"A: 1\r\nA: 2\r\nServer: x\r\nServer: y\r\nContent-Length: 0\r\n\r\n", None),
        (LINE + b"A: 1\r\n 2\r\nContent-Length: 0\r\n\r\n", ErrorKind.PROTOCOL),
        (b"HTTP/1.1 200 OK\nContent-Length: 0\n\n", ErrorKind.PROTOCOL),
        (LINE + b"A: 1\nContent-Length: 0\r\n\r\n", ErrorKind.PROTOCOL),
    ],
)
async def test_R15_odd_header_lines_are_read_or_refused(
    world: World, said: bytes, error: ErrorKind | None
) -> None:
    async with RawServer(always(said)) as server:
        _, [attempt, *_] = await attempts_of(world, server.url, 1)
        assert attempt.error is error
        assert (attempt.status == 200) is (error is None)


@pytest.mark.parametrize("first", [b"100 Continue\r\n\r\n", b"103 Early Hints\r\nLink: </x>\r\n\r\n"])
async def test_R17_an_interim_reply_is_waited_out(world: World, first: bytes) -> None:
    async with RawServer(always(b"HTTP/1.1 " + first + OK)) as server:
        delivery, [attempt] = await attempts_of(world, server.url, 1)
        assert (delivery.state, attempt.status) == (State.DELIVERED, 200)


async def test_R18_a_connection_closed_under_the_next_request_is_replaced_within_the_same_attempt(
    world: World,
) -> None:
    async def script(peer: Conversation) -> None:
        await peer.request()
        await peer.say(OK)
        if peer.number == 1:
            await peer.request()  # and closes without a byte of an answer
        else:
            await peer.gone()

    world.step = 0.005  # the connection must not idle for too long while the database works
    async with RawServer(script) as server:
        await attempts_of(world, server.url, 1)
        hooks = world._running[0]
        with structlog.testing.capture_logs() as logs:
            event = await world.pass_until(hooks.publish("order.paid", {}))
            delivery = await world.until_state(hooks, event.id, State.DELIVERED)
        assert (server.connections, len(server.requests)) == (2, 3)
        assert server.requests[1] == server.requests[2]
        assert [attempt.number for attempt in await hooks.store.attempts(delivery.id)] == [1]
        assert [line["host"] for line in logs if line["event"] == "connection.replaced"] == ["127.0.0.1"]


async def test_R18_after_a_byte_of_the_answer_it_is_a_failed_attempt(world: World) -> None:
    async def script(peer: Conversation) -> None:
        await peer.request()
        await peer.say(OK)
        await peer.request()
        await peer.say(b"H" if peer.number == 1 else OK)

    async with RawServer(script) as server:
        await attempts_of(world, server.url, 1)
        hooks = world._running[0]
        event = await world.pass_until(hooks.publish("order.paid", {}))
        delivery = await world.until_state(hooks, event.id, State.DELIVERED)
        first, second = await hooks.store.attempts(delivery.id)
        assert (first.error, second.error) == (ErrorKind.RESET, None)
