"""Receivers that behave badly, one for each row of tests/corpus/bad-input.jsonl about receivers."""

import contextlib
import socket
import struct
import threading
from collections.abc import Callable, Iterator
from typing import NamedTuple

OK = b"HTTP/1.1 200 OK\r\n"
ZEROS = bytes(1 << 16)


class Bad(NamedTuple):
    """What a receiver does with a connection, and what must be seen of the last attempt."""

    row: str
    answer: Callable[["Peer"], None]
    status: int | None
    error: str | None  # its kind
    state: str  # of the delivery, after the attempt
    scheme: str = "http"
    events: int = 1  # published one after the other: the last is looked at


class Peer:
    """One connection to a receiver."""

    def __init__(self, connection: socket.socket, number: int, over: threading.Event) -> None:
        self.connection = connection
        self.number = number  # of the connection, from 0
        self._over = over

    def request(self) -> bool:
        """Read one request; False if the other side has closed."""
        received = b""
        while b"\r\n\r\n" not in received:
            some = self.connection.recv(1 << 16)
            if not some:
                return False
            received += some
        head, _, body = received.partition(b"\r\n\r\n")
        wanted = int(head.lower().split(b"content-length:")[1].split(b"\r\n")[0])
        while len(body) < wanted:
            body += self.connection.recv(1 << 16)
        return True

    def says(self, *parts: bytes) -> None:
        self.request()
        for part in parts:
            self.connection.sendall(part)

    def drip(self, data: bytes) -> None:
        """Send this, and so on for ever, a byte every half second."""
        while not self._over.wait(0.5):
            self.connection.sendall(data)

    def reset(self) -> None:
        """End the connection with RST."""
        self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))

    def hold(self) -> None:
        """Say nothing more until the other side closes."""
        while self.connection.recv(1 << 16):
            pass


def says(*parts: bytes) -> Callable[[Peer], None]:
    return lambda peer: peer.says(*parts)


def _hang(peer: Peer) -> None:
    peer.request()
    peer.hold()


def _reset(peer: Peer) -> None:
    peer.request()
    peer.reset()


def _drip_headers(peer: Peer) -> None:
    peer.says(OK)
    peer.drip(b"x")


def _drip_body(peer: Peer) -> None:
    peer.says(OK + b"content-length: 1000\r\n\r\n")
    peer.drip(b"x")


def _endless_body(peer: Peer) -> None:
    peer.says(OK + b"content-length: 1073741824\r\n\r\n")
    for _ in range(1 << 14):
        peer.connection.sendall(ZEROS)


def _many_headers(peer: Peer) -> None:
    peer.says(OK)
    for n in range(200_000):
        peer.connection.sendall(b"x-%d: y\r\n" % n)


def _speaks_plainly(peer: Peer) -> None:
    peer.connection.recv(1 << 16)  # what begins a TLS connection
    peer.connection.sendall(b"HTTP/1.1 400 Bad Request\r\ncontent-length: 0\r\n\r\n")
    peer.hold()


def _closes_on_the_next(peer: Peer) -> None:
    peer.says(OK + b"content-length: 0\r\n\r\n")
    if peer.number == 0:
        peer.connection.recv(1)  # the next request has begun
        peer.reset()
    else:
        peer.hold()


def _takes_turns(peer: Peer) -> None:
    peer.request()
    line = OK if peer.number % 2 == 0 else b"HTTP/1.1 500 No\r\n"
    peer.connection.sendall(line + b"content-length: 0\r\nconnection: close\r\n\r\n")


BAD = (
    Bad("R01", _reset, None, "reset", "pending"),
    Bad("R02", _hang, None, "timeout", "pending"),
    Bad("R03", _drip_headers, None, "timeout", "pending"),
    Bad("R04", _drip_body, 200, "timeout", "pending"),
    Bad("R05", _endless_body, 200, None, "delivered"),
    Bad(
        "R06",
        says(OK + b"content-encoding: gzip\r\ncontent-length: 65536\r\n\r\n", ZEROS),
        200,
        None,
        "delivered",
    ),
    Bad("R07", says(OK + b"content-length: 1000\r\n\r\nshort"), 200, None, "delivered"),
    Bad("R08", says(b"HTTP/1.1 204 No Content\r\n\r\nbut a body"), 204, None, "delivered"),
    Bad("R09", says(b"HTTP/1.1 99\r\n\r\n"), None, "protocol", "pending"),
    Bad("R10", _many_headers, None, "protocol", "pending"),
    Bad("R11", says(b"HTTP/1.1 302 Found\r\nlocation: /x\r\n\r\n"), 302, "http_3xx", "dead"),
    Bad("R12", says(b"HTTP/1.1 410 Gone\r\ncontent-length: 0\r\n\r\n"), 410, "http_410", "dead"),
    Bad(
        "R13",
        says(b"HTTP/1.1 429 Slow\r\nretry-after: 120\r\ncontent-length: 0\r\n\r\n"),
        429,
        "http_429",
        "pending",
    ),
    Bad("R14", _speaks_plainly, None, "tls", "pending", scheme="https"),
    Bad("R15", says(OK + b"x-a: 1\r\nx-a: 2\r\ncontent-length: 0\r\n\r\n"), 200, None, "delivered"),
    Bad(
        "R16",
        says(b"HTTP/1.1 500 No\r\ncontent-length: 31\r\n\r\n</pre><script>alert(1)</script>"),
        500,
        "http_5xx",
        "pending",
    ),
    Bad(
        "R17",
        says(
            b"HTTP/1.1 100 Continue\r\n\r\n", b"HTTP/1.1 103 Early\r\n\r\n", OK + b"content-length: 0\r\n\r\n"
        ),
        200,
        None,
        "delivered",
    ),
    Bad("R18", _closes_on_the_next, 200, None, "delivered", events=2),
    Bad("R19", _hang, None, "timeout", "pending"),
    Bad("R20", _takes_turns, 500, "http_5xx", "pending", events=2),
)


@contextlib.contextmanager
def receiver(bad: Bad) -> Iterator[str]:
    """The address of one."""
    over = threading.Event()
    threads: list[threading.Thread] = []
    connections: list[socket.socket] = []
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def talk(connection: socket.socket, number: int) -> None:
            with connection, contextlib.suppress(OSError, IndexError):
                connection.settimeout(120)  # only ends a test that hangs
                bad.answer(Peer(connection, number, over))

        def serve() -> None:
            with contextlib.suppress(OSError):
                for number in range(1_000):
                    connection, _ = listener.accept()
                    connections.append(connection)
                    threads.append(threading.Thread(target=talk, args=(connection, number), daemon=True))
                    threads[-1].start()

        thread = threading.Thread(target=serve)
        thread.start()
        try:
            yield f"{bad.scheme}://127.0.0.1:{listener.getsockname()[1]}/"
        finally:
            over.set()
            listener.shutdown(socket.SHUT_RDWR)  # wakes the thread, which closing alone does not
            thread.join(120)
            for connection in connections:
                with contextlib.suppress(OSError):  # closed already
                    connection.shutdown(socket.SHUT_RDWR)
            for each in threads:
                each.join(120)
