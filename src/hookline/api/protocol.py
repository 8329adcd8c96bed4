"""Refuses clients that send no valid HTTP, send it without end, or are too slow, and those that are too many.

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

from hookline.api.app import Api
from hookline.api.auth import unauthenticated
from hookline.api.limits.connections import TurnedAway
from hookline.api.problem import Refused, describe, headers_for
from hookline.rules.client_connections import Full
from hookline.rules.request_pace import is_too_slow

HEAD_LIMIT_BYTES = 64 << 10
HEAD_WITHIN_S = 10.0
LINGER_BYTES = 4 << 20  # read and dropped after a refusal, so that a reset does not lose the refusal

_OFFER = re.compile(rb"\r\nupgrade[ \t]*:", re.IGNORECASE)
_REQUEST_LINE = re.compile(rb"([!#$%&'*+.^_`|~0-9A-Za-z-]{1,64}) (?=/[^ \r\n]* HTTP/1\.[01]\r\n)")
_NO_METHOD_OF_OURS = b"TRACE"  # a method that the parser knows and that every path refuses
_KNOWN = frozenset({b"GET", b"HEAD", b"POST", b"PUT", b"PATCH", b"DELETE", b"OPTIONS", b"TRACE", b"CONNECT"})
_TURNED_AWAY = {
    Full.SERVER: "The server has as many connections as it takes. Try again later.",
    Full.ADDRESS: "There are too many connections from this address. Use fewer, or try again later.",
}


class Protocol(HttpToolsProtocol):
    """Uvicorn's HTTP/1.1 with a limit on request heads, on time and on connections, and our own refusals."""

    def __init__(
        self,
        config: Config,
        server_state: ServerState,
        app_state: dict[str, Any],
        _loop: asyncio.AbstractEventLoop | None = None,
    ) -> None:
        super().__init__(config, server_state, app_state, _loop)
        if not isinstance(config.app, Api):
            raise TypeError("The protocol is the API's own.")
        self._api = config.app
        self._address = ""
        self._is_in_head = True
        self._head_bytes = 0
        self._head_since: float | None = self.loop.time()
        self._beginning = b""  # of a head, while it is being checked
        self._line = b""  # the unfinished last line of a head that continues in the next piece
        self._is_refused = False
        self._body_bytes = 0
        self._body_since: float | None = None  # first seen incomplete
        self._unread_bytes = 0  # of answers, at their most
        self._unread_since: float | None = None  # first seen not sent

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        peer = transport.get_extra_info("peername")
        self._address = peer[0] if isinstance(peer, tuple) else ""
        over = self._api.clients.enter(self._address)
        if over is None:
            super().connection_made(transport)
            return
        refused = Refused("overloaded", _TURNED_AWAY[over])
        turned_away = TurnedAway(self._api.clients, lambda: self._refusal(refused))
        transport.set_protocol(turned_away)
        turned_away.connection_made(transport)

    def connection_lost(self, exc: Exception | None) -> None:
        self._api.clients.leave(self._address)
        super().connection_lost(exc)

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
        else:
            self._body_bytes += len(data)
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
        self._head_bytes = self._body_bytes = 0
        self._body_since = None

    def end_head(self) -> None:
        """Note that the headers are complete."""
        self._is_in_head = False
        self._head_since = None

    def hang_up_if_late(self, now: float) -> None:
        """Close a connection whose request does not come to its end, or whose answers are not read.

        Called every second. Only here is the time read for a body: most bodies come with their head.
        """
        if self._head_since is not None and now - self._head_since > HEAD_WITHIN_S:
            self.transport.close()
        elif not self._is_in_head:
            self._look_at_body(now)
        unsent = self.transport.get_write_buffer_size()
        if not unsent:
            self._unread_since, self._unread_bytes = None, 0
            return
        self._unread_bytes = max(self._unread_bytes, unsent)
        if self._unread_since is None:
            self._unread_since = now
        elif is_too_slow(now - self._unread_since, moved_bytes=self._unread_bytes):
            self.transport.abort()  # closing would wait until everything is sent

    def _look_at_body(self, now: float) -> None:
        if self._body_since is None or self.flow.read_paused:  # paused: we are slow, not the client
            self._body_since = now
            return
        if not is_too_slow(now - self._body_since, moved_bytes=self._body_bytes):
            return
        if not self.cycle.response_started:
            self._say(Refused("request_timeout", "The body of this request comes too slowly, or not at all."))
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
        self.transport.write(self._refusal(refused))

    def _refusal(self, refused: Refused) -> bytes:
        """A whole answer, after which the connection ends."""
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
        return b"HTTP/1.1 %b\r\n%b\r\n%b" % (status, head, body)

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
