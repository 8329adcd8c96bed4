"""Records which events arrived, when, and whether as they were sent.

A process of its own: an HTTP server that answers every request with 200 and keeps, for each event, when it was
published and when it came. It says its port on the first line of its output, answers `GET /count`, and at
SIGTERM writes what it knows to the file it was given and a summary as its last line.

It reads HTTP by hand and checks one signature in a hundred, since on the machine's two cores every microsecond
spent here is taken from the system that is measured.
"""

import asyncio
import base64
import gc
import hashlib
import hmac
import re
import signal
import sys
import time
from array import array
from pathlib import Path
from typing import cast

import msgspec
import uvloop

from payload import ENDPOINTS, endpoint_of, read

SIGNATURE_SAMPLE = 100
ANSWER = b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n"
_PATHS = [b"/%d" % endpoint for endpoint in range(ENDPOINTS)]
_GROWTH = array("q", bytes(8 << 16))
_LENGTH = re.compile(rb"\r\n[Cc]ontent-[Ll]ength: *(\d+)")


class Summary(msgspec.Struct, frozen=True, kw_only=True):
    """What the receiver saw, but for the times."""

    received: int  # different events
    duplicates: int  # requests for an event that had arrived before
    corrupt: int  # bodies nobody sent, or at the wrong endpoint
    signatures: int  # checked
    forged: int  # of these, wrong
    example: str  # the first thing that was wrong, to look at


class Arrivals:
    """Publish and arrival time by event number, and what was wrong."""

    def __init__(self, secret: str) -> None:
        self._secret = secret
        self.published = array("q")
        self.arrived = array("q")
        self.received = self.duplicates = self.corrupt = self.signatures = self.forged = 0
        self.example = ""

    def note(self, path: bytes, head: bytes, body: bytes) -> None:
        """One delivery."""
        known = read(body)
        if known is None or path != _PATHS[endpoint_of(known[0])]:
            self.corrupt += 1
            self.example = self.example or f"{path!r}: {body[:80]!r}"
            return
        seq, at = known
        while seq >= len(self.arrived):
            self.arrived.extend(_GROWTH)
            self.published.extend(_GROWTH)
        if self.arrived[seq]:
            self.duplicates += 1
            self.example = self.example or f"event {seq} again"
            return
        self.arrived[seq] = time.monotonic_ns()
        self.published[seq] = at
        self.received += 1
        if seq % SIGNATURE_SAMPLE == 0:
            self.signatures += 1
            if not is_signed(self._secret, head, body):
                self.forged += 1
                self.example = self.example or f"event {seq}: {head!r}"

    def summary(self) -> Summary:
        return Summary(
            received=self.received,
            duplicates=self.duplicates,
            corrupt=self.corrupt,
            signatures=self.signatures,
            forged=self.forged,
            example=self.example,
        )


class Conversation(asyncio.Protocol):
    """One connection; requests may come in pieces or several at once."""

    def __init__(self, arrivals: Arrivals) -> None:
        self._arrivals = arrivals
        self._transport: asyncio.Transport
        self._rest = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)  # uvloop's is none by inheritance

    def data_received(self, data: bytes) -> None:
        if self._rest:
            data = self._rest + data
        start, answers = 0, []
        while (end := data.find(b"\r\n\r\n", start)) >= 0:
            length = _LENGTH.search(data, start, end)
            stop = end + 4 + (int(length[1]) if length else 0)
            if len(data) < stop:
                break
            path = data[data.find(b" ", start) + 1 : data.find(b" HTTP/", start)]
            if path == b"/count":
                count = b"%d" % self._arrivals.received
                answers.append(b"HTTP/1.1 200 OK\r\ncontent-length: %d\r\n\r\n%b" % (len(count), count))
            else:
                self._arrivals.note(path, data[start:end], data[end + 4 : stop])
                answers.append(ANSWER)
            start = stop
        self._rest = data[start:]
        if answers:
            self._transport.write(answers[0] if len(answers) == 1 else b"".join(answers))


def is_signed(secret: str, head: bytes, body: bytes) -> bool:
    """Whether the request carries the standard signature, or the classic one, of this body."""
    lines = (line.partition(b":") for line in head.split(b"\r\n")[1:])
    headers = {name.lower(): value.strip() for name, _, value in lines}
    if b"webhook-signature" in headers:
        signed = b"%b.%b.%b" % (headers[b"webhook-id"], headers[b"webhook-timestamp"], body)
        key = base64.b64decode(secret.removeprefix("whsec_"))
        right = b"v1," + base64.b64encode(hmac.digest(key, signed, hashlib.sha256))
        return right in headers[b"webhook-signature"].split()
    right = b"sha256=" + hmac.new(secret.encode(), body, hashlib.sha256).hexdigest().encode()
    return headers.get(b"x-webhook-signature") == right


async def receive(secret: str, file: Path) -> None:
    arrivals = Arrivals(secret)
    loop = asyncio.get_running_loop()
    ended = asyncio.Event()
    loop.add_signal_handler(signal.SIGTERM, ended.set)
    server = await loop.create_server(lambda: Conversation(arrivals), "127.0.0.1", 0, backlog=1024)
    print(msgspec.json.encode({"port": server.sockets[0].getsockname()[1]}).decode(), flush=True)
    await ended.wait()
    server.close()
    with file.open("wb") as out:
        arrivals.published.tofile(out)
        arrivals.arrived.tofile(out)
    print(msgspec.json.encode(arrivals.summary()).decode(), flush=True)


if __name__ == "__main__":
    gc.disable()  # nothing here makes cycles, and a pause would be counted as latency
    uvloop.run(receive(sys.argv[1], Path(sys.argv[2])))
