"""Receivers that behave worse than broken ones: each harms its own delivery and nothing else.

After each of them its attempt is recorded with a kind of error or a status, no connection that may hold something else
is kept, and an innocent endpoint of the same worker gets its event.
"""

import asyncio
import contextlib
import gzip
import socket
import ssl
from collections.abc import AsyncIterator, Awaitable
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from hookline.app import Hookline
from hookline.config import Settings
from hookline.ids import delivery_of, read
from hookline.model import Attempt, Delivery, ErrorKind, EventId, Outcome, State
from hookline.pipeline.sending.pool import PoolLimits
from hookline.pipeline.sending.tls_contexts import default_context
from pipeline.sending.certificates import Authority
from pipeline.sending.raw_server import Conversation, RawServer, Script, always
from pipeline.sending.sending import OK, until
from tests.own_memory import Memory
from tests.receiver import Receiver

pytestmark = pytest.mark.anyio

LINE = b"HTTP/1.1 200 OK\r\n"
CHUNKED = LINE + b"Transfer-Encoding: chunked\r\n\r\n"
ONCE = {"schedule": [0, 3_600], "jitter": "none"}
LARGE = "x" * 900_000  # more than the buffers of a socket whose peer does not read
ROOM_BYTES = 64 << 20  # for a group of receivers, of which some send for as long as we read
ENDLESS = 100_000_000  # bytes after which who sends without end gives up

PROTOCOL = (None, ErrorKind.PROTOCOL)
RESET = (None, ErrorKind.RESET)
TIMEOUT = (None, ErrorKind.TIMEOUT)
TLS = (None, ErrorKind.TLS)
FINE = (200, None)


class Nasty(NamedTuple):
    """What a receiver does, and what may become of its delivery."""

    script: Script
    ends: tuple[tuple[int | None, ErrorKind | None], ...]
    is_kept: bool | None = False  # the connection, afterwards; None: it may be
    payload: str = "{}"


def says(data: bytes, *ends: Any, is_kept: bool | None = False, then_close: bool = False) -> Nasty:
    """A receiver that sends these bytes for an answer."""
    return Nasty(always(data, then_close=then_close), ends, is_kept)


def pours(begin: bytes, more: bytes, *ends: Any) -> Nasty:
    """A receiver that sends without end."""

    async def script(peer: Conversation) -> None:
        await peer.request()
        await peer.say(begin)
        block = more * max(1, 16_384 // len(more))
        for _ in range(ENDLESS // len(block)):
            await peer.say(block)

    return Nasty(script, ends)


def drips(begin: bytes, more: bytes, *ends: Any) -> Nasty:
    """A receiver that sends a byte now and then for ever."""

    async def script(peer: Conversation) -> None:
        await peer.request()
        await peer.say(begin)
        while True:
            await peer.drip(more, pause=0.1)

    return Nasty(script, ends)


def does(script: Script, *ends: Any, is_kept: bool | None = False, payload: str = "{}") -> Nasty:
    return Nasty(script, ends, is_kept, payload)


# --- heads ---

HEADS = {
    "a hundred 100 Continue": says(b"HTTP/1.1 100 Continue\r\n\r\n" * 100 + OK, PROTOCOL),
    "103 without end": pours(b"", b"HTTP/1.1 103 Early Hints\r\nLink: </x>\r\n\r\n", PROTOCOL),
    "101 to another protocol": says(
        b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: upgrade\r\n\r\n\x81\x05hello",
        PROTOCOL,
    ),
    "an interim answer with a body": says(
        b"HTTP/1.1 100 Continue\r\nContent-Length: 5\r\n\r\nhello" + OK, PROTOCOL
    ),
    "two lengths": says(LINE + b"Content-Length: 2\r\nContent-Length: 40\r\n\r\nok" + OK, PROTOCOL),
    "the same length twice": says(LINE + b"Content-Length: 2\r\nContent-Length: 2\r\n\r\nok", PROTOCOL),
    "length, then chunks": says(
        LINE + b"Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", PROTOCOL
    ),
    "chunks, then length": says(
        LINE + b"Transfer-Encoding: chunked\r\nContent-Length: 5\r\n\r\n0\r\n\r\n", PROTOCOL
    ),
    "a length with a sign": says(LINE + b"Content-Length: +2\r\n\r\nok", PROTOCOL),
    "a length in hex": says(LINE + b"Content-Length: 0x2\r\n\r\nok", PROTOCOL),
    "a length below zero": says(LINE + b"Content-Length: -2\r\n\r\nok", PROTOCOL),
    "a length of 2^64": says(LINE + b"Content-Length: 18446744073709551616\r\n\r\nok", PROTOCOL),
    "a folded line": says(LINE + b"A: b\r\n\tContent-Length: 2\r\n\r\nok", PROTOCOL),
    "bare line feeds": says(LINE.replace(b"\r", b"") + b"Content-Length: 2\n\nok", PROTOCOL),
    "a bare line feed in a field": says(LINE + b"A: b\nContent-Length: 2\r\n\r\nok", PROTOCOL),
    "bare carriage returns": says(LINE.replace(b"\n", b"") + b"Content-Length: 2\r\rok", PROTOCOL),
    "a bare carriage return in a field": says(LINE + b"A: b\rContent-Length: 2\r\n\r\nok", PROTOCOL),
    "NUL in a field": says(LINE + b"A: b\x00c\r\nContent-Length: 0\r\n\r\n", PROTOCOL),
    "NUL in the name of a field": says(LINE + b"A\x00b: c\r\nContent-Length: 0\r\n\r\n", PROTOCOL),
    "NUL in the status line": says(
        b"HTTP/1.1 200 O\x00K\r\nContent-Length: 0\r\n\r\n", PROTOCOL, FINE, is_kept=None
    ),
    "a space before the colon": says(LINE + b"Content-Length : 2\r\n\r\nok", PROTOCOL),
    "no colon": says(LINE + b"Content-Length 2\r\n\r\nok", PROTOCOL),
    "status 000": says(b"HTTP/1.1 000 None\r\nContent-Length: 0\r\n\r\n", PROTOCOL),
    "status 99": says(b"HTTP/1.1 99 Few\r\nContent-Length: 0\r\n\r\n", PROTOCOL),
    "status 999": says(
        b"HTTP/1.1 999 Many\r\nContent-Length: 0\r\n\r\n", (999, ErrorKind.PROTOCOL), is_kept=True
    ),
    "status 1000": says(b"HTTP/1.1 1000 Many\r\nContent-Length: 0\r\n\r\n", PROTOCOL),
    "status 2OO": says(b"HTTP/1.1 2OO OK\r\nContent-Length: 0\r\n\r\n", PROTOCOL),
    "HTTP/0.9": says(b"<html>hello</html>", PROTOCOL, then_close=True),
    "HTTP/1.9": says(b"HTTP/1.9 200 OK\r\nContent-Length: 0\r\n\r\n", PROTOCOL),
    "a preface of HTTP/2": says(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", PROTOCOL),
    "a frame of HTTP/2": says(b"\x00\x00\x12\x04\x00\x00\x00\x00\x00" + b"\x00" * 18, PROTOCOL),
    "a request for an answer": says(b"POST / HTTP/1.1\r\nHost: us\r\nContent-Length: 0\r\n\r\n", PROTOCOL),
    "a TLS alert in plain HTTP": says(b"\x15\x03\x01\x00\x02\x02\x28", PROTOCOL, then_close=True),
    "a line without end": pours(LINE + b"A: ", b"x", PROTOCOL),
    "a name without end": pours(LINE, b"x", PROTOCOL),
    "a status line without end": pours(b"HTTP/1.1 200 ", b"x", PROTOCOL),
    "fields without end": pours(LINE, b"A: b\r\n", PROTOCOL),
    "10,000 fields": says(LINE + b"A: b\r\n" * 10_000 + b"Content-Length: 0\r\n\r\n", PROTOCOL),
    "257 fields": says(LINE + b"A: b\r\n" * 256 + b"Content-Length: 0\r\n\r\n", PROTOCOL),
    "a cookie": says(
        LINE + b"Set-Cookie: a=b; Domain=.com\r\nContent-Length: 2\r\n\r\nok", FINE, is_kept=True
    ),
    "HSTS, Alt-Svc and a refresh": says(
        LINE
        + b'Strict-Transport-Security: max-age=9\r\nAlt-Svc: h2=":1"\r\nRefresh: 0;url=http://127.0.0.1:1/\r\n'
        b"Content-Length: 2\r\n\r\nok",
        FINE,
        is_kept=True,
    ),
}

# --- bodies ---

BOMB = gzip.compress(bytes(8 << 20), compresslevel=9)
BODIES = {
    "a smuggled second answer": says(OK + b"HTTP/1.1 410 Gone\r\nContent-Length: 0\r\n\r\n", FINE),
    "a smuggled line end": says(OK + b"\r\n", FINE),
    "a smuggled NUL": says(OK + b"\x00", FINE),
    "megabytes of chunk extensions": says(CHUNKED + b"1;" + b"x" * 3_000_000, FINE),
    "an extension of each chunk": pours(CHUNKED, b"1;" + b"x" * 1_000 + b"\r\ny\r\n", FINE),
    "a chunk of 2^68 bytes": says(CHUNKED + b"fffffffffffffffff\r\nok", PROTOCOL),
    "a chunk below zero": says(CHUNKED + b"-2\r\nok\r\n0\r\n\r\n", PROTOCOL),
    "a chunk with a space before its size": says(CHUNKED + b" 2\r\nok\r\n0\r\n\r\n", PROTOCOL),
    "a chunk with a space after its size": says(
        CHUNKED + b"2 \r\nok\r\n0\r\n\r\n", PROTOCOL, FINE, is_kept=None
    ),
    "a chunk in 0x": says(CHUNKED + b"0x2\r\nok\r\n0\r\n\r\n", PROTOCOL),
    "a chunk of no size": says(CHUNKED + b"\r\nok\r\n0\r\n\r\n", PROTOCOL),
    "a chunk ended by a line feed": says(CHUNKED + b"2\nok\n0\n\n", PROTOCOL),
    "a chunk longer than its size": says(CHUNKED + b"2\r\nokay\r\n0\r\n\r\n", PROTOCOL),
    "trailers without end": pours(CHUNKED + b"2\r\nok\r\n0\r\n", b"T: x\r\n", FINE, PROTOCOL),
    "a trailer with a status": says(CHUNKED + b"2\r\nok\r\n0\r\nStatus: 500\r\n\r\n", FINE, is_kept=True),
    "chunks of one byte without end": pours(CHUNKED, b"1\r\nx\r\n", FINE),
    "a body without a length and without end": pours(LINE + b"\r\n", b"x", FINE),
    "an unknown coding": says(
        LINE + b"Transfer-Encoding: brotli\r\n\r\n" + b"x" * 100, FINE, then_close=True
    ),
    "chunked twice": says(
        LINE + b"Transfer-Encoding: chunked, chunked\r\n\r\n0\r\n\r\n", PROTOCOL, FINE, is_kept=None
    ),
    "chunked in HTTP/1.0": says(CHUNKED.replace(b"1.1", b"1.0") + b"2\r\nok\r\n0\r\n\r\n", PROTOCOL, FINE),
    "a bomb": says(
        LINE + b"Content-Encoding: gzip\r\nContent-Length: %d\r\n\r\n" % len(BOMB) + BOMB, FINE, is_kept=True
    ),
    "a bomb within a bomb": says(
        LINE + b"Content-Encoding: gzip, gzip, br\r\nContent-Length: %d\r\n\r\n" % len(BOMB) + BOMB,
        FINE,
        is_kept=True,
    ),
    "204 with a whole answer for a body": says(
        b"HTTP/1.1 204 No\r\nContent-Length: %d\r\n\r\n" % len(OK) + OK, (204, None)
    ),
    "304 with a whole answer for a body": says(
        b"HTTP/1.1 304 No\r\nContent-Length: %d\r\n\r\n" % len(OK) + OK, (304, ErrorKind.HTTP_3XX)
    ),
    "keep-alive in HTTP/1.0": says(
        b"HTTP/1.0 200 OK\r\nConnection: keep-alive\r\nContent-Length: 2\r\n\r\nok", FINE
    ),
}

# --- redirects and Retry-After ---


def moved(location: bytes, *ends: Any) -> Nasty:
    answer = b"HTTP/1.1 307 Moved\r\nContent-Length: 0\r\nLocation: " + location + b"\r\n\r\n"
    return says(answer, *ends, is_kept=(None, ErrorKind.PROTOCOL) not in ends)


def asks(value: bytes, status: int = 429) -> Nasty:
    kind = ErrorKind.HTTP_429 if status == 429 else ErrorKind.HTTP_5XX
    answer = b"HTTP/1.1 %d Wait\r\nContent-Length: 0\r\nRetry-After: %b\r\n\r\n" % (status, value)
    return says(answer, (status, kind), is_kept=True)


MOVED = (307, ErrorKind.HTTP_3XX)
MEANINGS = {
    "to itself, for ever": moved(b"", MOVED),
    "to a path of itself, for ever": moved(b"/again", MOVED),
    "to 40 KiB": moved(b"/" + b"x" * 40_000, MOVED),
    "to 100 KiB": moved(b"/" + b"x" * 100_000, PROTOCOL),
    "to a control character": moved(b"http://127.0.0.1/\x01", PROTOCOL, MOVED),
    "to an escape sequence": moved(b"http://127.0.0.1/\x1b[2J", PROTOCOL, MOVED),
    "to bytes that are no UTF-8": moved(b"http://127.0.0.1/\xff\xfe", MOVED),
    "to marks of direction": moved("http://127.0.0.1/\u202e\u2066".encode(), MOVED),
    "to a file": moved(b"file:///etc/passwd", MOVED),
    "to a script": moved(b"javascript:alert(1)", MOVED),
    "to a user with a password": moved(b"http://a:b@127.0.0.1/", MOVED),
    "to a broken address": moved(b"http://[::1", MOVED),
    "to port 0": moved(b"http://127.0.0.1:0/", MOVED),
    "wait for -5": asks(b"-5"),
    "wait for 1e309": asks(b"1e309"),
    "wait for NaN": asks(b"NaN"),
    "wait for Infinity": asks(b"Infinity", 503),
    "wait for 60 digits": asks(b"9" * 60),
    "wait for 5,000 digits": asks(b"9" * 5_000, 503),
    "wait until the year 9999": asks(b"Fri, 31 Dec 9999 23:59:59 GMT"),
    "wait until the year 99999": asks(b"Fri, 31 Dec 99999 23:59:59 GMT"),
    "wait until the year 9999 in a late zone": asks(b"Fri, 31 Dec 9999 23:59:59 -2359", 503),
    "wait until the year 0": asks(b"Sat, 01 Jan 0000 00:00:00 GMT"),
    "wait in a zone of 99 hours": asks(b"Thu, 01 Jan 2026 00:00:00 +9999"),
    "wait until February 30": asks(b"Mon, 30 Feb 2026 00:00:00 GMT"),
    "wait for Arabic digits": asks("\u0661\u0662".encode()),
    "wait for nothing": asks(b""),
    "wait for blanks": asks(b" \t "),
}

# --- connections ---


async def _answers_before_it_is_asked(peer: Conversation) -> None:
    await peer.say(OK + OK)
    await peer.request()
    await peer.gone()


async def _answers_before_it_has_read(peer: Conversation) -> None:
    await peer._reader.readexactly(100)
    await peer.say(OK)
    peer._writer.transport.pause_reading()
    await asyncio.sleep(3_600)


async def _closes_its_half_after_the_answer(peer: Conversation) -> None:
    await peer.request()
    await peer.say(OK)
    peer._writer.write_eof()
    await peer.gone()


async def _closes_its_half_before_the_answer(peer: Conversation) -> None:
    peer._writer.write_eof()
    await peer.request()
    await peer.gone()


async def _resets_in_the_body(peer: Conversation) -> None:
    await peer.request()
    await peer.say(LINE + b"Content-Length: 100000\r\n\r\n" + b"x" * 10_000)
    peer.reset()


async def _resets_at_once(peer: Conversation) -> None:
    peer.reset()


async def _resets_after_half_a_head(peer: Conversation) -> None:
    await peer.request()
    await peer.say(b"HTTP/1.1 2")
    peer.reset()


CONNECTIONS = {
    "an answer before the request": does(_answers_before_it_is_asked, FINE, RESET),
    "an answer before the body was read": does(
        _answers_before_it_has_read, FINE, is_kept=None, payload=LARGE
    ),
    "half closed after the answer": does(_closes_its_half_after_the_answer, FINE),
    "half closed before the answer": does(_closes_its_half_before_the_answer, RESET),
    "reset in the body": does(_resets_in_the_body, FINE, RESET),
    "reset at once": does(_resets_at_once, RESET),
    "reset in the head": does(_resets_after_half_a_head, RESET),
}

# --- time: each costs its deadline, and there are more of them than slots ---


async def _never_reads(peer: Conversation) -> None:
    peer._writer.transport.pause_reading()
    await asyncio.sleep(3_600)


async def _reads_a_byte_now_and_then(peer: Conversation) -> None:
    while await peer._reader.read(1):  # noqa: ASYNC110 - slowness is the point
        await asyncio.sleep(0.1)


async def _reads_and_is_silent(peer: Conversation) -> None:
    await peer.request()
    await peer.gone()


async def _hears_half(peer: Conversation) -> None:
    await peer.request()
    await peer.say(LINE + b"Content-Length: 100\r\n\r\nhalf")
    await peer.gone()


AFTER_200 = (200, ErrorKind.TIMEOUT)
TIMES = {
    "never reads": does(_never_reads, TIMEOUT, payload=LARGE),
    "reads a byte now and then": does(_reads_a_byte_now_and_then, TIMEOUT, payload=LARGE),
    "is silent": does(_reads_and_is_silent, TIMEOUT),
    "sends half of a body": does(_hears_half, AFTER_200),
    "drips its status line": drips(b"HTTP/1.1 ", b"2", TIMEOUT, PROTOCOL),
    "drips a field": drips(LINE + b"A: ", b"x", TIMEOUT),
    "drips fields": drips(LINE, b"A: b\r\n", TIMEOUT),
    "drips interim answers": drips(b"", b"HTTP/1.1 100 C\r\n\r\n", TIMEOUT, PROTOCOL),
    "drips a body": drips(LINE + b"Content-Length: 100000\r\n\r\n", b"x", AFTER_200),
    "drips a body without a length": drips(LINE + b"\r\n", b"x", AFTER_200),
    "drips chunks": drips(CHUNKED, b"1\r\nx\r\n", AFTER_200),
    "drips an extension": drips(CHUNKED + b"1;", b"x", AFTER_200),
    "drips a trailer": drips(CHUNKED + b"0\r\n", b"T: x\r\n", AFTER_200),
}
SLOTS = 4

GROUPS = {"heads": HEADS, "bodies": BODIES, "meanings": MEANINGS, "connections": CONNECTIONS}


@pytest.fixture
def anyio_backend() -> tuple[str, dict[str, bool]]:
    return "asyncio", {"use_uvloop": True}


@pytest.fixture(params=["sqlite", "postgres"])
def database(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path}/hooks.db"
    url: str = request.getfixturevalue("postgres_url")
    return url


@pytest.fixture
async def receiver() -> AsyncIterator[Receiver]:
    receiver = Receiver()
    await receiver.start()
    yield receiver
    await receiver.stop()


class Worker:
    """A hookline with an innocent endpoint."""

    def __init__(self, hooks: Hookline, receiver: Receiver) -> None:
        self.hooks = hooks
        self._receiver = receiver
        self._asked = 0

    async def begin(self) -> None:
        # Nothing is closed only because it was idle for long.
        self.hooks._sender._pool._limits = PoolLimits(idle=3_600.0)
        await self.hooks.create_endpoint(
            url=self._receiver.url("/innocent"), events=["*"], account="innocent"
        )

    async def try_innocent(self) -> None:
        """The innocent endpoint gets an event that is published now."""
        self._asked += 1
        await self.hooks.publish("order.paid", self._asked, account="innocent")
        said = str(self._asked).encode()
        await until(lambda: said in self._receiver.bodies("/innocent"))

    async def endpoint(self, url: str, account: str, **fields: Any) -> None:
        fields = {"retry": ONCE, "circuit": None, "timeout_ms": 1_000, **fields}
        await self.hooks.create_endpoint(url=url, events=["*"], account=account, **fields)

    async def attempts(self, account: str, payload: object = 0) -> list[Attempt]:
        """The attempts of a new event of this account, when there is one."""
        event = await self.hooks.publish("order.paid", payload, account=account)
        found: list[Attempt] = []
        async with asyncio.timeout(120):
            while not found:
                await asyncio.sleep(0.005)
                found = list(await self.hooks.store.attempts(self.delivery_id(event.id)))
        return found

    async def delivery(self, attempt: Attempt) -> Delivery:
        found = await self.hooks.store.delivery(attempt.delivery_id)
        assert found is not None
        return found

    @staticmethod
    def delivery_id(event: str) -> Any:
        return delivery_of(EventId(read("event", event)), 0)

    def kept(self, server: RawServer) -> int:
        """Connections to this receiver that wait for a next request."""
        pool = self.hooks._sender._pool
        return sum(len(idle) for (_, _, port, _), idle in pool._by_key.items() if port == server.port)


@pytest.fixture
async def worker(database: str, receiver: Receiver) -> AsyncIterator[Worker]:
    async with Hookline(database, settings=Settings(dev=True)) as hooks:
        worker = Worker(hooks, receiver)
        await worker.begin()
        yield worker


async def judge(worker: Worker, name: str, nasty: Nasty, server: RawServer, **fields: Any) -> Attempt:
    """One delivery to a nasty receiver, and what became of it."""
    account = name.replace(" ", "-").replace(",", "")[:60]
    account = "".join(
        letter for letter in account if letter.isascii() and (letter.isalnum() or letter in "_.-")
    )
    await worker.endpoint(server.url, account, **fields)
    [attempt] = await worker.attempts(account, nasty.payload)
    assert (attempt.status, attempt.error) in nasty.ends, name
    if attempt.error is not None and attempt.status is None:
        assert attempt.error_detail, name
    if nasty.is_kept is not None:
        await until(lambda: worker.kept(server) == int(nasty.is_kept))
    delivery = await worker.delivery(attempt)
    assert delivery.attempts == 1
    assert (delivery.state is State.DELIVERED) is (attempt.outcome is Outcome.ACCEPTED)
    return attempt


@pytest.mark.parametrize("group", GROUPS)
async def test_a_nasty_receiver_harms_its_own_delivery_and_nothing_else(worker: Worker, group: str) -> None:
    memory = Memory()
    for name, nasty in GROUPS[group].items():
        async with RawServer(nasty.script) as server:
            redirects = {"max_redirects": 3} if group == "meanings" else {}
            attempt = await judge(worker, name, nasty, server, **redirects)
            assert b"cookie" not in b"".join(server.requests).lower(), name
            if attempt.outcome is Outcome.THROTTLED:
                delivery = await worker.delivery(attempt)
                assert 3_599 <= delivery.due_at - attempt.at <= 86_400 + 60, name
        await worker.try_innocent()
        assert worker.hooks._sender.in_flight == 0
    assert memory.growth_bytes <= ROOM_BYTES


async def test_slots_that_receivers_hold_are_free_at_the_deadline(database: str, receiver: Receiver) -> None:
    """There are more of such receivers than slots: all of them, and an innocent one, have their turn."""
    memory = Memory()
    async with Hookline(database, settings=Settings(dev=True, max_in_flight=SLOTS)) as hooks:
        worker = Worker(hooks, receiver)
        await worker.begin()
        async with contextlib.AsyncExitStack() as servers:
            work: list[Awaitable[Attempt]] = []
            for name, nasty in TIMES.items():
                server = await servers.enter_async_context(RawServer(nasty.script))
                work.append(judge(worker, name, nasty, server))
            assert len(work) > 2 * SLOTS
            attempts = await asyncio.gather(*work)
            assert all(attempt.outcome is Outcome.TRANSIENT for attempt in attempts)
            await worker.try_innocent()
            await until(lambda: hooks._sender.in_flight == 0)
            assert hooks._sender.open_sockets == hooks._sender.idle
    assert memory.growth_bytes <= ROOM_BYTES


@pytest.mark.parametrize(
    "smuggled", [b"HTTP/1.1 410 Gone\r\nContent-Length: 0\r\n\r\n", b"\r\n", b"garbage", b"\x00"]
)
@pytest.mark.parametrize("when", ["with the answer", "while the connection is idle"])
async def test_a_smuggled_answer_is_never_taken_for_that_of_the_next_request(
    worker: Worker, smuggled: bytes, when: str
) -> None:
    is_idle = asyncio.Event()

    async def script(peer: Conversation) -> None:
        while True:
            await peer.request()
            if peer.number > 1:
                await peer.say(OK)
            elif when == "with the answer":
                await peer.say(OK + smuggled)
            else:
                await peer.say(OK)
                await is_idle.wait()
                await peer.say(smuggled)

    async with RawServer(script) as server:
        await worker.endpoint(server.url, "smuggler")
        [first] = await worker.attempts("smuggler")
        if when != "with the answer":
            await until(lambda: worker.kept(server) == 1)
            is_idle.set()
        await until(lambda: worker.kept(server) == 0)
        [second] = await worker.attempts("smuggler")
        assert [(each.status, each.response_body) for each in (first, second)] == [(200, b"ok")] * 2
        assert server.connections == 2
    await worker.try_innocent()


# --- TLS ---


@pytest.fixture
def authority(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Authority:
    """The only authority that the hooklines of this test trust, set by OpenSSL's own variable."""
    made = Authority(tmp_path)
    monkeypatch.setenv("SSL_CERT_FILE", str(made._root))
    return made


def beneath(peer: Conversation) -> socket.socket:
    """The socket under a connection's TLS, for bytes that are not encrypted."""
    found: socket.socket = peer._writer.get_extra_info("socket")
    return socket.socket(fileno=socket.dup(found.fileno()))


def breaks_tls(answer: bytes, garbage: bytes) -> Script:
    async def script(peer: Conversation) -> None:
        await peer.request()
        await peer.say(answer)
        with beneath(peer) as raw:
            raw.send(garbage)
        await peer.gone()

    return script


ALERT = b"\x15\x03\x03\x00\x02\x02\x28"  # fatal: handshake failure, in the clear
HEAD = LINE + b"Content-Length: 1000\r\n\r\nbegin"


async def test_tls_that_breaks_in_the_middle_ends_the_attempt(authority: Authority, worker: Worker) -> None:
    """The fixture of the worker comes after the authority, whose certificate it loads."""
    context = authority.server("127.0.0.1")
    cases = {
        "a clear alert before the answer": does(breaks_tls(b"", ALERT), RESET, TLS),
        "garbage before the answer": does(breaks_tls(b"", b"garbage garbage"), RESET, TLS),
        "a clear alert in the head": does(breaks_tls(b"HTTP/1.1 20", ALERT), RESET, TLS),
        "a clear alert in the body": does(breaks_tls(HEAD, ALERT), FINE, RESET, TLS),
        "a clear answer in the body": does(breaks_tls(HEAD, OK), FINE, RESET, TLS),
        "a clear answer after the answer": does(breaks_tls(OK, OK), FINE, RESET, TLS),
    }
    for name, nasty in cases.items():
        async with RawServer(nasty.script, context=context) as server:
            await judge(worker, name, nasty, server)
        await worker.try_innocent()


async def test_a_huge_chain_of_certificates_is_refused(
    authority: Authority, worker: Worker, tmp_path: Path
) -> None:
    context = authority.server("127.0.0.1")
    leaf = tmp_path / "127.0.0.1-False-False.pem"
    leaf.write_bytes(leaf.read_bytes() + authority._root.read_bytes() * 1_000)
    context.load_cert_chain(leaf)
    async with RawServer(always(OK), context=context) as server:
        await judge(worker, "huge chain", does(always(OK), TLS), server)
        assert server.requests == []
    await worker.try_innocent()


async def test_what_is_said_before_tls_begins_is_no_answer(authority: Authority, worker: Worker) -> None:
    async def script(peer: Conversation) -> None:
        await peer.say(OK)
        await peer.gone()

    async with RawServer(script) as server:
        server.url = server.url.replace("http:", "https:")
        await judge(worker, "clear", does(script, TLS, RESET), server)
    await worker.try_innocent()


def test_a_receiver_cannot_have_tls_negotiated_again() -> None:
    """Each negotiation costs us a signature's check, and one connection could ask for any number of them."""
    assert default_context().options & ssl.OP_NO_RENEGOTIATION
