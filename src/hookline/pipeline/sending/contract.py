"""Defines what the pipeline needs of a sender."""

import hashlib
from collections.abc import Callable
from functools import cached_property
from typing import Protocol

import msgspec

from hookline.model import NO_TIMINGS, ErrorKind, Timings


class ClientIdentity(msgspec.Struct, frozen=True, dict=True):
    """The certificate with which a request proves over TLS who sends it."""

    pem: str  # certificates and their private key

    @cached_property
    def digest(self) -> str:
        """What tells it from others, the key included."""
        return hashlib.sha256(self.pem.encode()).hexdigest()

    def __repr__(self) -> str:
        return "ClientIdentity(***)"


class Target(msgspec.Struct, frozen=True, cache_hash=True):
    """Where requests go: the parts of an endpoint's URL that a connection and a request line need."""

    url: str
    tls: bool
    host: str  # for SNI, certificates and the Host header; IPv6 without brackets
    port: int
    path: str  # with query, starts with "/"
    identity: ClientIdentity | None = None


class Request(msgspec.Struct, frozen=True, gc=False):
    """One POST. `headers` are whole lines, each ending in CRLF, without Host, Content-Length and Connection."""

    target: Target
    headers: bytes
    body: bytes
    timeout: float  # seconds for everything: DNS, connect, TLS, write, head and body


class SendResult(msgspec.Struct, frozen=True, gc=False):
    """How a request ended: with a status, or with the kind of error that prevented one."""

    duration: float
    status: int | None = None
    error: ErrorKind | None = None
    detail: str | None = None  # one line for people; never the payload
    headers: tuple[tuple[bytes, bytes], ...] = ()
    body: bytes = b""  # the first KEPT_BYTES
    truncated: bool = False  # the body was longer than what is kept
    timings: Timings = NO_TIMINGS
    sent: bool = True  # False: the gate was shut before the first byte; nothing left this machine
    short: bool = (
        False  # this machine had no descriptor, port or memory left: it does not count as an attempt
    )


class Sender(Protocol):
    """Sends requests; the only way out of the server."""

    def send(self, request: Request, done: Callable[[SendResult], None]) -> None:
        """Begin; `done` is called exactly once, from the event loop, whatever happens."""

    async def close(self) -> None:
        """Close idle connections; requests under way end with an error answer."""
