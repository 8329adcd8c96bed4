"""Carries requests over one connection to a receiver.

It carries one request at a time. The end of a request is reported to the owner once, as the last step: the owner may
put the next request on this very connection before the report returns.
"""

import asyncio
import ssl
from typing import Protocol, cast

from hookline.clock import Clock
from hookline.failpoints import failpoint
from hookline.model import ErrorKind
from hookline.pipeline.sending.contract import SendResult
from hookline.pipeline.sending.exchange import Exchange
from hookline.pipeline.sending.response import Limits, Malformed, Response

Key = tuple[bool, str, int, str]  # tls, host, port, the digest of the client certificate

LARGE_BYTES = 65_536  # larger bodies are not copied behind their head


class ConnectionOwner(Protocol):
    """Receives a connection's reports."""

    def on_open(self, connection: "Connection") -> None:
        """The connection is open."""

    def on_closed(self, connection: "Connection") -> None:
        """The connection is closed."""

    def on_answer(
        self, connection: "Connection", exchange: Exchange, answer: SendResult, *, reusable: bool
    ) -> None:
        """The request it carried has ended."""

    def on_stale(self, connection: "Connection", exchange: Exchange) -> None:
        """It was closed under a request, before the first byte of an answer, after it had served others."""


class Connection(asyncio.Protocol):
    """A transport, the response being read from it, and the request it belongs to."""

    __slots__ = (
        "_clock",
        "_limits",
        "_owner",
        "_response",
        "_transport",
        "exchange",
        "first_byte",
        "idle_since",
        "is_open",
        "key",
        "opened_at",
        "was_idle",
    )

    def __init__(self, key: Key, *, owner: ConnectionOwner, clock: Clock, limits: Limits) -> None:
        self.key = key
        self.exchange: Exchange | None = None
        self.first_byte: float | None = None
        self.idle_since = 0.0
        self.opened_at = clock.monotonic()
        self.was_idle = False  # may be stale: the peer may have closed it, which we learn too late
        self.is_open = False
        self._owner = owner
        self._clock = clock
        self._limits = limits
        self._response: Response
        self._transport: asyncio.Transport | None = None

    def is_usable(self) -> bool:
        """Whether a request can be put on it."""
        return self._transport is not None and not self._transport.is_closing()

    def adopt(self, transport: asyncio.Transport) -> None:
        """Continue over this transport: TLS was put around the first one."""
        self._transport = transport

    def start(self, exchange: Exchange, head: bytes, now: float) -> None:
        """Write the whole request."""
        transport = self._transport
        assert transport is not None  # noqa: S101 - for the type checker; only open connections are started
        request = exchange.request
        body = request.body
        exchange.connection = self
        exchange.written_at = now
        exchange.was_sent = True
        self.exchange = exchange
        self.first_byte = None
        if len(body) <= LARGE_BYTES:
            transport.write(b"".join((head, b"%d\r\n" % len(body), request.headers, b"\r\n", body)))
        else:
            transport.writelines((b"%b%d\r\n%b\r\n" % (head, len(body), request.headers), body))
        failpoint("send.after")

    def abort(self) -> None:
        """Close at once: neither unwritten bytes nor a TLS farewell are worth a wait."""
        self.exchange = None
        if self._transport is not None:
            self._transport.abort()

    def discard(self) -> None:
        """Give up opening it; when a TLS handshake fails, the transport reports it to nobody."""
        self.abort()
        self._closed()

    # What the transport calls.

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)
        self._response = Response(self._limits)
        self.is_open = True
        self._owner.on_open(self)

    def data_received(self, data: bytes) -> None:
        exchange = self.exchange
        if exchange is None:
            self.abort()  # an answer to no request
            return
        now = self._clock.monotonic()
        if self.first_byte is None:
            self.first_byte = now - exchange.written_at
        response = self._response
        try:
            complete = response.feed(data)
            if not complete and response.has_head:
                failpoint("head.after")
        except Malformed as malformed:
            self._fail(exchange, ErrorKind.PROTOCOL, str(malformed), now=now)
            return
        except Exception as error:
            self._fail(exchange, ErrorKind.INTERNAL, repr(error), now=now)
            return
        if complete:
            self._answer(exchange, now=now)
        elif response.read_bytes >= self._limits.read_bytes:
            self._answer(exchange, now=now, cut=True)

    def eof_received(self) -> None:
        self._end(None)

    def connection_lost(self, exc: Exception | None) -> None:
        self._end(exc)
        self._closed()

    def _closed(self) -> None:
        if self.is_open:
            self.is_open = False
            self._response.release()
            self._owner.on_closed(self)

    def _end(self, error: Exception | None) -> None:
        """The peer is gone."""
        exchange = self.exchange
        if exchange is None:
            self.abort()
            return
        response = self._response
        now = self._clock.monotonic()
        if response.has_head:
            self._answer(exchange, now=now, cut=error is not None or not response.is_whole_at_eof())
        elif response.has_begun:
            self._fail(
                exchange, ErrorKind.RESET, "The connection was closed in the middle of the head.", now=now
            )
        elif self.was_idle and not exchange.was_sent_again:
            self.abort()
            self._owner.on_stale(self, exchange)
        elif isinstance(error, ssl.SSLError):
            # Such as a server that asks for a client certificate: with TLS 1.3 it refuses after the handshake.
            self._fail(exchange, ErrorKind.TLS, error.reason or str(error), now=now)
        else:
            self._fail(exchange, ErrorKind.RESET, "The connection was closed before any answer.", now=now)

    def _answer(self, exchange: Exchange, *, now: float, cut: bool = False) -> None:
        response = self._response
        transport = self._transport
        answer = SendResult(
            now - exchange.started,
            response.status,
            None,
            None,
            tuple(response.headers),
            response.body,
            cut or response.body_bytes > self._limits.kept_bytes,
            exchange.timings(self.first_byte),
        )
        self.exchange = None
        # The answer came before the whole request was written: the rest may never be read.
        reusable = response.is_clean and not transport.get_write_buffer_size()  # type: ignore[union-attr]
        if reusable:
            response.reset()
        else:
            self.abort()
        self._owner.on_answer(self, exchange, answer, reusable=reusable)

    def _fail(self, exchange: Exchange, kind: ErrorKind, detail: str, *, now: float) -> None:
        self.abort()
        answer = SendResult(
            now - exchange.started, error=kind, detail=detail, timings=exchange.timings(self.first_byte)
        )
        self._owner.on_answer(self, exchange, answer, reusable=False)

    def overdue(self) -> tuple[int | None, tuple[tuple[bytes, bytes], ...], bytes]:
        """Status, fields and body as far as they have arrived."""
        response = self._response
        if not response.has_head:
            return None, (), b""
        return response.status, tuple(response.headers), response.body
