"""Refuses clients that send no valid HTTP, or send it without end.

They get a problem document like everybody else, before they cost memory or hold a connection slot for long. The
parser underneath has no limits of its own.
"""

import asyncio
import re
import secrets
from typing import Any

import httptools
import msgspec
from uvicorn.config import Config
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol
from uvicorn.server import ServerState

from hookline.api.auth import unauthenticated
from hookline.api.problem import Refused, describe, headers_for

HEAD_LIMIT_BYTES = 64 << 10
HEAD_WITHIN_S = 10.0
LINGER_BYTES = 4 << 20  # read and dropped after a refusal, so that a reset does not lose the refusal

_OFFER = re.compile(rb"\r\nupgrade[ \t]*:", re.IGNORECASE)
_REQUEST_LINE = re.compile(rb"([!#$%&'*+.^_`|~0-9A-Za-z-]{1,64}) (?=/[^ \r\n]* HTTP/1\.[01]\r\n)")
_NO_METHOD_OF_OURS = b"TRACE"  # a method that the parser knows and that every path refuses
_KNOWN = frozenset({b"GET", b"HEAD", b"POST", b"PUT", b"PATCH", b"DELETE", b"OPTIONS", b"TRACE", b"CONNECT"})


class Protocol(HttpToolsProtocol):
    """Uvicorn's HTTP/1.1 with a limit on request heads and our own refusals."""

    def __init__(
        self,
        config: Config,
        server_state: ServerState,
        app_state: dict[str, Any],
        _loop: asyncio.AbstractEventLoop | None = None,
    ) -> None:
        super().__init__(config, server_state, app_state, _loop)
        self._is_in_head = True
        self._head_bytes = 0
        self._head_since: float | None = self.loop.time()
        self._beginning = b""  # of a head, while it is being checked
        self._line = b""  # the unfinished last line of a head that continues in the next piece
        self._is_refused = False

    def data_received(self, data: bytes) -> None:
        if self._is_refused:
            self._head_bytes += len(data)
            if self._head_bytes > LINGER_BYTES:
                self.transport.abort()
            return
        if self._is_in_head:
            self._beginning = b""
            if not self._head_bytes:
                self._beginning, self._line = data, b""
            self._head_bytes += len(data)
            if self._head_since is None:
                self._head_since = self.loop.time()
            data = _without_offer(data)
        super().data_received(data)
        if self._is_in_head and self._head_bytes and not self.transport.is_closing():
            if b"\n" in data:
                self._line = b""
            self._line += data[data.rfind(b"\n") + 1 :][: 64 - len(self._line)]
            if self._head_bytes > HEAD_LIMIT_BYTES:
                self._refuse_endless_head()

    def on_header(self, name: bytes, value: bytes) -> None:
        # The parser keeps the blanks that may follow a value; they are no part of it (RFC 9110, 5.5). The rest is what
        # uvicorn does, without a second call for each header.
        name, value = name.lower(), value.rstrip(b" \t")
        if name == b"expect" and value.lower() == b"100-continue":
            self.expect_100_continue = True
        self.headers.append((name, value))

    def on_headers_complete(self) -> None:
        self.end_head()
        super().on_headers_complete()

    def on_message_complete(self) -> None:
        self.begin_head()
        super().on_message_complete()

    @property
    def is_between(self) -> bool:
        """Is no request arriving?"""
        return self._is_in_head and not self._head_bytes

    def begin_head(self) -> None:
        """Prepare for a request line and headers."""
        self._is_in_head = True
        self._head_bytes = 0

    def end_head(self) -> None:
        """Note that the headers are complete."""
        self._is_in_head = False
        self._head_since = None

    def hang_up_if_late(self, now: float) -> None:
        """Close a connection whose request line and headers do not end. Called every second."""
        if self._head_since is not None and now - self._head_since > HEAD_WITHIN_S:
            self.transport.close()

    def send_400_response(self, msg: str) -> None:
        renamed = _with_a_known_method(self._beginning)
        if renamed is not None:
            # The parser stops at a method it does not know, whatever the path. It gets the request again, renamed.
            self._beginning = b""
            self.parser = httptools.HttpRequestParser(self)
            self.parser.set_dangerous_leniencies(lenient_data_after_close=True)
            HttpToolsProtocol.data_received(self, renamed)
            return
        self._say(Refused("bad_request", msg))
        self.transport.close()

    def _refuse_endless_head(self) -> None:
        """Answer before the end of the head. The rest of the head is not read, and soon the client cannot send any."""
        if self._line.lower().startswith(b"authorization:"):
            self._say(unauthenticated())  # a key of a megabyte is a wrong key
        else:
            self._say(
                Refused("bad_request", f"The request's headers have more than {HEAD_LIMIT_BYTES:,} bytes.")
            )
        self._is_refused = True
        self.transport.write_eof()

    def _say(self, refused: Refused) -> None:
        request_id = f"req_{secrets.token_hex(12)}"
        problem = describe(refused, request_id=request_id)
        body = msgspec.json.encode(problem)
        lines = [
            *headers_for(problem),
            (b"request-id", request_id.encode()),
            (b"content-length", b"%d" % len(body)),
            (b"connection", b"close"),
        ]
        head = b"".join(b"%b: %b\r\n" % line for line in [*self.server_state.default_headers, *lines])
        status = b"%d %b" % (problem.status, problem.title.encode("ascii"))
        self.transport.write(b"HTTP/1.1 %b\r\n%b\r\n%b" % (status, head, body))

    def _unsupported_upgrade_warning(self) -> None:
        """A client that offers HTTP/2 first is answered in HTTP/1.1; that needs no warning."""


def _with_a_known_method(data: bytes) -> bytes | None:
    """The same request with a known method that no path allows; None if the method is not the fault."""
    line = _REQUEST_LINE.match(data)
    if line is None or line[1] in _KNOWN:
        return None
    return _NO_METHOD_OF_OURS + _without_offer(data)[line.end(1) :]


def _without_offer(data: bytes) -> bytes:
    """The same bytes with an Upgrade header renamed.

    Some clients (Java's) offer HTTP/2 with their first request. The parser treats every offer as accepted and stops
    before the body, so the body would be lost. A header that the network cut in two is not recognised.
    """
    if b"pgrade" not in data and b"PGRADE" not in data:
        return data
    head, end, rest = data.partition(b"\r\n\r\n")
    return _OFFER.sub(b"\r\nx-offered-upgrade:", head) + end + rest
