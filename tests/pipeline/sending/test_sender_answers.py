"""How the sender reads answers, whole and broken."""

import asyncio
from typing import Any

import pytest

from hookline.model import ErrorKind
from pipeline.sending.raw_server import Conversation, RawServer, always
from pipeline.sending.sending import OK, Posts, until

pytestmark = pytest.mark.anyio

LINE = b"HTTP/1.1 200 OK\r\n"
CHUNKED = LINE + b"Transfer-Encoding: chunked\r\n\r\n"

# The answer, the expected reading of it (status, body, truncated), and whether the connection is used again.
GOOD = {
    "with a length": (OK, (200, b"ok", False), True),
    "empty": (LINE + b"Content-Length: 0\r\n\r\n", (200, b"", False), True),
    "204": (b"HTTP/1.1 204 No Content\r\n\r\n", (204, b"", False), True),
    "204 that claims a body": (
        b"HTTP/1.1 204 No Content\r\nContent-Length: 9\r\n\r\n",
        (204, b"", False),
        False,
    ),
    "304 that claims a body": (b"HTTP/1.1 304 Same\r\nContent-Length: 9\r\n\r\n", (304, b"", False), False),
    "204 of length 0": (b"HTTP/1.1 204 No\r\nContent-Length: 0\r\n\r\n", (204, b"", False), True),
    "205 with a body": (
        b"HTTP/1.1 205 Reset\r\nContent-Length: 2\r\n\r\nok",
        (205, b"ok", False),
        False,
    ),
    "500": (b"HTTP/1.1 500 Oops\r\nContent-Length: 4\r\n\r\noops", (500, b"oops", False), True),
    "no reason phrase": (b"HTTP/1.1 200\r\nContent-Length: 0\r\n\r\n", (200, b"", False), True),
    "a status nobody knows": (b"HTTP/1.1 799 Huh\r\nContent-Length: 0\r\n\r\n", (799, b"", False), True),
    "chunked": (CHUNKED + b"2\r\nok\r\n0\r\n\r\n", (200, b"ok", False), True),
    "chunked with extensions": (CHUNKED + b"2;a=b\r\nok\r\n0;c\r\n\r\n", (200, b"ok", False), True),
    "chunked with trailers": (CHUNKED + b"2\r\nok\r\n0\r\nX: y\r\n\r\n", (200, b"ok", False), True),
    "100 first": (b"HTTP/1.1 100 Continue\r\n\r\n" + OK, (200, b"ok", False), True),
    "103 first": (b"HTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n" + OK, (200, b"ok", False), True),
    "an upgrade offered": (
        LINE + b"Upgrade: h2c\r\nConnection: upgrade\r\nContent-Length: 2\r\n\r\nok",
        (200, b"ok", False),
        True,
    ),
    "gzip, untouched": (
        LINE + b"Content-Encoding: gzip\r\nContent-Length: 4\r\n\r\n\x1f\x8b\x08\x00",
        (200, b"\x1f\x8b\x08\x00", False),
        True,
    ),
    "more than is kept": (
        LINE + b"Content-Length: 5000\r\n\r\n" + b"x" * 5000,
        (200, b"x" * 4096, True),
        True,
    ),
    "connection: close": (
        LINE + b"Connection: close\r\nContent-Length: 2\r\n\r\nok",
        (200, b"ok", False),
        False,
    ),
    "HTTP/1.0": (b"HTTP/1.0 200 OK\r\nContent-Length: 2\r\n\r\nok", (200, b"ok", False), False),
    "HTTP/1.0 with keep-alive": (
        b"HTTP/1.0 200 OK\r\nConnection: keep-alive\r\nContent-Length: 2\r\n\r\nok",
        (200, b"ok", False),
        False,
    ),
    "two answers": (OK + b"HTTP/1.1 500 Oops\r\nContent-Length: 0\r\n\r\n", (200, b"ok", False), False),
    "surplus bytes": (OK + b"surplus", (200, b"ok", False), False),
    "a surplus line end": (OK + b"\r\n", (200, b"ok", False), False),
    "a surplus line end after chunks": (CHUNKED + b"2\r\nok\r\n0\r\n\r\n\r\n", (200, b"ok", False), False),
    "204 with chunks": (
        b"HTTP/1.1 204 No\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        (204, b"", False),
        False,
    ),
    "larger than is read": (
        LINE + b"Content-Length: 9000000\r\n\r\n" + b"x" * 70_000,
        (200, b"x" * 4096, True),
        False,
    ),
}

# The answer, after which the connection is closed, and the expected reading of it.
CUT = {
    "no length": (LINE + b"\r\nbody", (200, b"body", False)),
    "not chunked last": (LINE + b"Transfer-Encoding: gzip\r\n\r\nbody", (200, b"body", False)),
    "less than the length": (LINE + b"Content-Length: 9\r\n\r\nbody", (200, b"body", True)),
    "in a chunk": (CHUNKED + b"9\r\nbody", (200, b"body", True)),
    "before the last chunk": (CHUNKED + b"4\r\nbody\r\n", (200, b"body", True)),
    "right after the head": (LINE + b"Content-Length: 9\r\n\r\n", (200, b"", True)),
}

BAD = {
    "garbage": b"\x00\x01\x02\x03 nonsense",
    "another protocol": b"220 mail.example ESMTP\r\n",
    "RTSP": b"RTSP/1.0 200 OK\r\nContent-Length: 0\r\n\r\n",
    "HTTP/2": b"HTTP/2.0 200 OK\r\nContent-Length: 0\r\n\r\n",
    "HTTP/0.9": b"HTTP/0.9 200 OK\r\nContent-Length: 0\r\n\r\n",
    "a line end first": b"\r\n" + OK,
    "bare line feeds": b"HTTP/1.1 200 OK\nContent-Length: 0\n\n",
    "status 000": b"HTTP/1.1 000 OK\r\nContent-Length: 0\r\n\r\n",
    "two digits": b"HTTP/1.1 20 OK\r\nContent-Length: 0\r\n\r\n",
    "101": b"HTTP/1.1 101 Switching\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\nabc",
    "101 without upgrade": b"HTTP/1.1 101 Switching\r\n\r\nabc",
    "two lengths": LINE + b"Content-Length: 2\r\nContent-Length: 3\r\n\r\nok",
    "a list of lengths": LINE + b"Content-Length: 2, 2\r\n\r\nok",
    "length and chunks": LINE + b"Content-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    "chunks and length": LINE + b"Transfer-Encoding: chunked\r\nContent-Length: 2\r\n\r\n0\r\n\r\n",
    "a negative length": LINE + b"Content-Length: -1\r\n\r\n",
    "an endless length": LINE + b"Content-Length: 99999999999999999999999\r\n\r\n",
    "a space before the colon": LINE + b"Content-Length : 2\r\n\r\nok",
    "a folded field": LINE + b"A: b\r\n c\r\nContent-Length: 0\r\n\r\n",
    "NUL in a field": LINE + b"A: b\x00c\r\nContent-Length: 0\r\n\r\n",
    "a bad chunk size": CHUNKED + b"zz\r\nok\r\n0\r\n\r\n",
    "a chunk that is too long": CHUNKED + b"2\r\nokay\r\n0\r\n\r\n",
    "a huge field": LINE + b"A: " + b"x" * 70_000 + b"\r\nContent-Length: 0\r\n\r\n",
    "a head without end": LINE + b"A: b\r\n" * 20_000,
    "too many fields": LINE + b"A: b\r\n" * 300 + b"Content-Length: 0\r\n\r\n",
    "too many interim answers": b"HTTP/1.1 100 Continue\r\n\r\n" * 20 + OK,
    "interim answers without end": b"HTTP/1.1 100 Continue\r\n\r\n" * 4000,
}


@pytest.mark.parametrize("name", GOOD)
async def test_a_whole_answer_is_read_and_the_connection_used_again_only_if_nothing_is_left(
    posts: Posts, name: str
) -> None:
    said, expected, used_again = GOOD[name]
    async with RawServer(always(said)) as server:
        for _ in range(2):
            answer = await posts.post(server.url)
            assert (answer.status, answer.body, answer.truncated) == expected
            assert (answer.error, answer.detail, answer.sent) == (None, None, True)
        assert server.connections == (1 if used_again else 2)


@pytest.mark.parametrize("name", [name for name in GOOD if name != "larger than is read"])
async def test_an_answer_that_drips_in_byte_by_byte_is_the_same_answer(posts: Posts, name: str) -> None:
    said, expected, _ = GOOD[name]
    said = said if len(said) < 1000 else said[:1000] + b"x" * (len(said) - 1000)

    async def script(peer: Conversation) -> None:
        await peer.request()
        await peer.drip(said[:300])
        await peer.say(said[300:])
        await peer.gone()

    async with RawServer(script) as server:
        answer = await posts.post(server.url)
        assert (answer.status, answer.body, answer.truncated) == expected


@pytest.mark.parametrize("name", CUT)
async def test_the_end_of_the_connection_ends_the_body_and_the_status_counts(posts: Posts, name: str) -> None:
    said, expected = CUT[name]
    async with RawServer(always(said, then_close=True)) as server:
        answer = await posts.post(server.url)
        assert (answer.status, answer.body, answer.truncated, answer.error) == (*expected, None)
        assert posts.sender.idle == 0


async def test_a_reset_in_the_body_cuts_it_off_and_the_status_counts(posts: Posts) -> None:
    async def script(peer: Conversation) -> None:
        await peer.request()
        await peer.say(LINE + b"\r\nbody")
        await resumed.wait()
        peer.reset()

    resumed = asyncio.Event()
    async with RawServer(script) as server:
        answered = posts.begin(server.url)
        await until(lambda: any(c.first_byte is not None for c in posts.sender._open))
        resumed.set()
        answer = await answered
        assert (answer.status, answer.truncated, answer.error) == (200, True, None)


@pytest.mark.parametrize("name", BAD)
async def test_what_is_no_answer_is_a_protocol_error_and_the_connection_is_closed(
    posts: Posts, name: str
) -> None:
    async with RawServer(always(BAD[name])) as server:
        answer = await posts.post(server.url)
        assert (answer.status, answer.error, answer.body) == (None, ErrorKind.PROTOCOL, b"")
        assert answer.detail
        assert posts.sender.idle == 0


async def test_a_connection_cut_in_the_head_is_a_reset(posts: Posts) -> None:
    async with RawServer(always(b"HTTP/1.1 200 OK\r\nContent-", then_close=True)) as server:
        assert (await posts.post(server.url)).error is ErrorKind.RESET
        assert server.connections == 1


@pytest.mark.parametrize("how", ["close", "reset"])
async def test_a_fresh_connection_that_ends_without_an_answer_is_a_reset_and_is_not_tried_again(
    posts: Posts, how: str
) -> None:
    async def script(peer: Conversation) -> None:
        await peer.request()
        getattr(peer, how)()

    async with RawServer(script) as server:
        assert (await posts.post(server.url)).error is ErrorKind.RESET
        assert server.connections == 1


async def test_an_endless_body_ends_at_the_read_cap(posts: Posts) -> None:
    async def script(peer: Conversation) -> None:
        await peer.request()
        await peer.say(CHUNKED)
        while True:
            await peer.say(b"400\r\n" + b"x" * 1024 + b"\r\n")

    async with RawServer(script) as server:
        answer = await posts.post(server.url)
        assert (answer.status, answer.body, answer.truncated, answer.error) == (200, b"x" * 4096, True, None)
        await server.over.wait()


async def test_chunk_framing_without_a_body_ends_at_the_read_cap_too(posts: Posts) -> None:
    async with RawServer(always(CHUNKED + b"1;" + b"x" * 100_000)) as server:
        answer = await posts.post(server.url)
        assert (answer.status, answer.body, answer.truncated) == (200, b"", True)


async def test_fields_are_kept_as_they_came_without_the_space_around_them(posts: Posts) -> None:
    said = LINE + b"Retry-After:  5  \r\nX-Odd: \xff\r\nEmpty:\r\nContent-Length: 0\r\n\r\n"
    async with RawServer(always(said)) as server:
        answer = await posts.post(server.url)
        expected: Any = (
            (b"Retry-After", b"5"),
            (b"X-Odd", b"\xff"),
            (b"Empty", b""),
            (b"Content-Length", b"0"),
        )
        assert answer.headers == expected


async def test_fields_of_interim_answers_and_trailers_are_not_fields_of_the_answer(posts: Posts) -> None:
    said = b"HTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n" + CHUNKED + b"2\r\nok\r\n0\r\nTrailer: y\r\n\r\n"
    async with RawServer(always(said)) as server:
        answer = await posts.post(server.url)
        assert (answer.headers, answer.body) == (((b"Transfer-Encoding", b"chunked"),), b"ok")
