"""A proxy between a client and its server that causes faults when a test asks for them.

It uses plain sockets and threads. Each request is read whole and then treated as the plan says; without a plan it is
forwarded and its answer is returned.
"""

import contextlib
import socket
import ssl
import threading
from collections import deque
from enum import Enum
from types import TracebackType
from typing import Self

PATIENCE_S = 30.0


class Harm(Enum):
    CUT_UNSEEN = "the connection is cut, and the server has not seen the request"
    CUT_DONE = "the server has done it, and the connection is cut before its answer"
    CUT_HALFWAY = "the server has done it, and the connection is cut within its answer"
    HANG_UP_AFTERWARDS = "all is well, but the connection is closed without notice"


class Between:
    """A proxy for 127.0.0.1:`port`; each request uses up one step of `plan`, and bytes there are the answer itself."""

    def __init__(self, port: int = 0, *plan: Harm | bytes, tls: ssl.SSLContext | None = None) -> None:
        self._port = port
        self.plan = deque(plan)
        self.requests: list[bytes] = []
        self.connections = 0
        self._tls = tls
        self._listener = socket.create_server(("127.0.0.1", 0))
        scheme = "http" if tls is None else "https"
        self.url = f"{scheme}://127.0.0.1:{self._listener.getsockname()[1]}"
        self._changed = threading.Condition()
        self._open: set[socket.socket] = set()
        self._threads: list[threading.Thread] = []

    def __enter__(self) -> Self:
        self._start(self._accept)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        for each in tuple(self._open):
            with contextlib.suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)
        for thread in self._threads:
            thread.join(PATIENCE_S)

    def point_to(self, port: int) -> None:
        """Forward requests to this port from now on."""
        self._port = port

    def wait_for_requests(self, number: int) -> None:
        with self._changed:
            assert self._changed.wait_for(lambda: len(self.requests) >= number, PATIENCE_S)

    def _start(self, work, *arguments) -> None:
        thread = threading.Thread(target=work, args=arguments)
        self._threads.append(thread)
        thread.start()

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                connection, _ = self._listener.accept()
                self.connections += 1
                self._start(self._serve, connection)

    def _serve(self, connection: socket.socket) -> None:
        with contextlib.suppress(OSError), contextlib.ExitStack() as stack:
            stack.enter_context(connection)
            connection.settimeout(PATIENCE_S)
            if self._tls is not None:
                connection = stack.enter_context(self._tls.wrap_socket(connection, server_side=True))
            self._open.add(connection)
            stack.callback(self._open.discard, connection)
            stream = stack.enter_context(connection.makefile("rb"))
            while (request := _message(stream)) and self._treat(request, connection):
                pass

    def _treat(self, request: bytes, connection: socket.socket) -> bool:
        with self._changed:
            self.requests.append(request)
            self._changed.notify_all()
        what = self.plan.popleft() if self.plan else None
        if isinstance(what, bytes):
            connection.sendall(what)
            return True
        if what is Harm.CUT_UNSEEN:
            return False
        answer = self._pass_on(request)
        if what is Harm.CUT_DONE:
            return False
        connection.sendall(answer[: len(answer) - 5] if what is Harm.CUT_HALFWAY else answer)
        return what is None

    def _pass_on(self, request: bytes) -> bytes:
        with (
            socket.create_connection(("127.0.0.1", self._port), PATIENCE_S) as server,
            server.makefile("rb") as stream,
        ):
            server.sendall(request)
            return _message(stream)


def _message(stream) -> bytes:
    """A request or an answer with a Content-Length, or nothing at the end of the connection."""
    lines = []
    length = 0
    while (line := stream.readline()) not in (b"\r\n", b""):
        lines.append(line)
        name, _, value = line.partition(b":")
        if name.lower() == b"content-length":
            length = int(value)
    return b"".join([*lines, b"\r\n", stream.read(length)]) if lines else b""
