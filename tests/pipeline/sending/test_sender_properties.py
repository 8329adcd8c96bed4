"""Every behaviour of a receiver leads to exactly one answer."""

import asyncio
import gc
import os
import random
from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from hookline.clock import SystemClock
from hookline.model import ErrorKind
from hookline.pipeline.sending import HttpSender, Request, SendResult, parse
from hookline.pipeline.sending.net import SystemNet
from hookline.pipeline.sending.response import Limits
from hookline.pipeline.sending.tls_contexts import default_context
from pipeline.sending.raw_server import Conversation, RawServer, always
from pipeline.sending.sending import OK, Posts, until

CHUNKED = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"

PIECES = [
    OK,
    CHUNKED,
    b"HTTP/1.1 200 OK\r\n",
    b"HTTP/1.0 ",
    b"HTTP/1.1 100 Continue\r\n\r\n",
    b"HTTP/1.1 101 Switching\r\n\r\n",
    b"HTTP/1.1 204 No Content\r\n",
    b"HTTP/1.1 999 \r\n",
    b"Content-Length: 3\r\n",
    b"Connection: close\r\n",
    b"Transfer-Encoding: gzip\r\n",
    b"\r\n",
    b"\n",
    b"\r",
    b"3\r\nabc\r\n",
    b"0\r\n\r\n",
    b"0\r\nTrailer: x\r\n\r\n",
    b"abc",
    b"\x00",
]
ANSWERS = st.lists(st.sampled_from(PIECES) | st.binary(max_size=12), max_size=8).map(b"".join)
CUTS = st.lists(st.integers(0, 300), max_size=10)


CONTEXT = default_context()  # loading the CA certificates takes longer than a whole example


class Wire(asyncio.Transport):
    """The transport of a test that plays the network itself."""

    def __init__(self, written: asyncio.Event) -> None:
        super().__init__({"peername": ("192.0.2.1", 80)})
        self._written = written
        self._is_closing = False

    def write(self, data: Any) -> None:
        self._written.set()

    def get_write_buffer_size(self) -> int:
        return 0

    def is_closing(self) -> bool:
        return self._is_closing

    def abort(self) -> None:
        self._is_closing = True


class Memory(SystemNet):
    """A network on which every connection is a Wire."""

    def __init__(self) -> None:
        self.written = asyncio.Event()

    async def connect(self, protocol: Any, address: str, port: int) -> asyncio.Transport:
        self.protocol = protocol()
        self.wire = Wire(self.written)
        self.protocol.connection_made(self.wire)
        return self.wire


async def _answers(pieces: Sequence[bytes]) -> tuple[list[SendResult], bool]:
    """What a sender makes of these pieces before the peer closes, and whether the connection was kept until then."""
    net = Memory()
    sender = HttpSender(
        net,
        SystemClock(),
        gate=lambda: True,
        vet=lambda address, port: True,
        context=CONTEXT,
        limits=Limits(read_bytes=1_000_000),
    )
    answers: list[SendResult] = []
    sender.send(Request(parse("http://192.0.2.1/"), b"", b"", 5.0), answers.append)
    async with asyncio.timeout(120):
        await net.written.wait()
    for piece in pieces:
        if not net.wire.is_closing():
            net.protocol.data_received(piece)
    kept = sender.idle == 1
    net.protocol.eof_received()
    net.protocol.connection_lost(None)
    await sender.close()
    return answers, kept


def _meaning(answer: SendResult) -> tuple[object, ...]:
    return answer.status, answer.error, answer.headers, answer.body, answer.truncated


@settings(max_examples=400, deadline=None)
@given(ANSWERS, CUTS)
@example(OK + b"\r\n", [len(OK)])
@example(CHUNKED + b"0\r\n\r\n", [len(CHUNKED) + 3])
def test_any_bytes_in_any_pieces_are_one_answer_and_the_pieces_do_not_matter(
    data: bytes, cuts: list[int]
) -> None:
    edges = sorted({0, len(data), *(cut for cut in cuts if cut < len(data))})
    pieces = [data[start:end] for start, end in pairwise(edges)]

    async def both() -> tuple[Any, Any]:
        return await _answers([data] if data else []), await _answers(pieces)

    (whole, kept_whole), (split, _) = asyncio.run(both())
    assert len(whole) == len(split) == 1
    assert _meaning(whole[0]) == _meaning(split[0])
    if kept_whole:
        assert whole[0].error is None


@settings(max_examples=300, deadline=None)
@given(st.lists(st.binary(min_size=1, max_size=200), max_size=6))
def test_noise_is_one_answer(pieces: list[bytes]) -> None:
    answers, _ = asyncio.run(_answers(pieces))
    assert len(answers) == 1
    assert answers[0].error in (ErrorKind.PROTOCOL, ErrorKind.RESET, None)


@settings(max_examples=300, deadline=None)
@given(ANSWERS)
def test_a_connection_is_kept_only_if_the_answer_was_all_there_was(surplus: bytes) -> None:
    for answer in (OK, CHUNKED + b"2\r\nok\r\n0\r\n\r\n", b"HTTP/1.1 204 No\r\n\r\n"):
        _, kept = asyncio.run(_answers([answer + surplus]))
        assert kept is (surplus == b"")


def _open_files() -> int:
    return len(os.listdir("/proc/self/fd"))


@pytest.mark.anyio
async def test_five_hundred_requests_to_a_receiver_of_moods_leave_nothing_behind(
    make_posts: Callable[..., Posts],
) -> None:
    rng = random.Random(1)

    async def script(peer: Conversation) -> None:
        while True:
            mood = rng.randrange(9)
            if mood == 0:
                return
            await peer.request()
            match mood:
                case 1:
                    peer.reset()
                    return
                case 2:
                    await peer.say(b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nshort")
                    return
                case 3:
                    await peer.say(rng.randbytes(50))
                    return
                case 4:
                    await peer.gone()
                    return
                case 5:
                    await peer.say(OK + OK)
                case 6:
                    await peer.say(b"HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\n" + b"x" * 100_000)
                case _:
                    await peer.say(OK)

    posts = make_posts()
    async with RawServer(always(OK)) as server:
        await posts.post(server.url)  # the loop opens files of its own with its first socket
        await posts.sender.close()
    posts = make_posts()
    tasks, files = asyncio.all_tasks(), _open_files()
    async with RawServer(script) as server:
        for _ in range(10):
            answers = await asyncio.gather(*(posts.begin(server.url, timeout=0.3) for _ in range(50)))
            assert all((answer.status is None) is not (answer.error is None) for answer in answers)
        assert [len(each) for each in posts.calls] == [1] * 500
        assert posts.sender.in_flight == 0
        await posts.sender.close()
        assert posts.sender.open_sockets == 0
    gc.collect()
    await until(lambda: _open_files() <= files)
    await until(lambda: asyncio.all_tasks() <= tasks)
