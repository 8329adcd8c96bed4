"""Opens connections to vetted addresses.

A name is looked up once for a connection, or a few seconds before for another one. Every address found is vetted, and
one bad address rejects them all: a name that points inside as well as outside is an attack, or about to be one. The
vetted address itself is dialled.

With a proxy, that is dialled instead and is given the name: it has to decide where it leads to. Literal addresses are
still vetted here.
"""

import asyncio
import ipaddress
import os
import ssl
from collections.abc import Callable
from functools import partial
from typing import TypeVar

from hookline.clock import Clock
from hookline.failpoints import failpoint
from hookline.model import ErrorKind
from hookline.pipeline.sending.connection import Connection
from hookline.pipeline.sending.contract import Target
from hookline.pipeline.sending.exchange import OVERDUE, Phase, Progress
from hookline.pipeline.sending.net import Net, is_shortage
from hookline.pipeline.sending.resolver import NameNotFound, Names
from hookline.pipeline.sending.tls_contexts import TlsContexts
from hookline.pipeline.sending.tunnel import Tunnel, TunnelRefused
from hookline.rules.egress_proxy import EgressProxy

P = TypeVar("P", bound=asyncio.Protocol)

MAX_ADDRESSES = 8  # that are dialled; a name with a thousand addresses must not turn us into a port scanner


class HostUnreachable(Exception):
    """No connection could be opened; carries the kind of error and a line for people."""

    def __init__(self, kind: ErrorKind, detail: str) -> None:
        super().__init__(detail)
        self.kind = kind
        self.detail = detail


class Shortage(Exception):
    """This machine has no descriptor, port or memory left for a connection; the receiver is not at fault."""


class Dialler:
    """Opens connections to vetted addresses."""

    def __init__(
        self,
        net: Net,
        clock: Clock,
        *,
        vet: Callable[[str, int], bool],
        timeout: float,
        lookup_timeout: float,
        contexts: TlsContexts,
        proxy: EgressProxy | None,
        reached: Callable[[str, str], None],
    ) -> None:
        self._net = net
        self._names = Names(net, clock, budget=lookup_timeout)
        self._clock = clock
        self._vet = vet
        self._timeout = timeout
        self._proxy = proxy
        self._tunnel_timeout = timeout + lookup_timeout  # the proxy looks the name up, and connects
        self._contexts = contexts
        self._reached = reached

    async def open(self, target: Target, make: Callable[[], Connection], progress: Progress) -> Connection:
        """An open connection; `progress` notes the current phase and how long each one took."""
        context = self._context_of(target)
        try:
            if self._proxy is None:
                addresses = await self._resolve(target, progress)
                connection, transport = await self._connect(target, addresses, make, progress)
            else:
                self._vet_all(target, [target.host] if _is_literal(target.host) else [])
                connection, transport = await self._pass_through(self._proxy, target, make, progress)
            if context is not None:
                await self._secure(target, context, transport, connection, progress)
        except (OSError, UnicodeError, MemoryError) as error:
            if is_shortage(error):
                raise Shortage(str(error) or type(error).__name__) from error
            raise _explain(error, progress.phase) from error
        return connection

    def _context_of(self, target: Target) -> ssl.SSLContext | None:
        if not target.tls:
            return None
        try:
            return self._contexts.of(target.identity)
        except (ssl.SSLError, ValueError) as error:
            why = getattr(error, "reason", None) or type(error).__name__
            raise HostUnreachable(
                ErrorKind.TLS, f"The endpoint's client_certificate cannot be used ({why})."
            ) from None

    async def close(self) -> None:
        """Stop waiting for names."""
        await self._names.close()

    async def _resolve(self, target: Target, progress: Progress) -> list[str]:
        if _is_literal(target.host):
            addresses = [target.host]
        else:
            began = self._clock.monotonic()
            failpoint("resolve.before")
            addresses = await self._names.find(target.host, target.port)
            failpoint("resolve.after")
            progress.dns = self._clock.monotonic() - began
        self._vet_all(target, addresses)
        return addresses[:MAX_ADDRESSES]

    def _vet_all(self, target: Target, addresses: list[str]) -> None:
        for address in addresses:
            if not self._vet(address, target.port):
                # The owner of a name must not learn what it resolves to inside.
                what = "is" if address == target.host else "points to"
                raise HostUnreachable(
                    ErrorKind.BLOCKED_ADDRESS,
                    f"{target.host} {what} an address that this worker may not send to (HOOKLINE_ALLOW_NETWORKS).",
                )

    async def _connect(
        self, target: Target, addresses: list[str], make: Callable[[], Connection], progress: Progress
    ) -> tuple[Connection, asyncio.Transport]:
        progress.phase = Phase.CONNECT
        began = self._clock.monotonic()
        for left, address in zip(range(len(addresses), 0, -1), addresses, strict=True):
            # An address that swallows our packets must leave the next ones their share of the time.
            share = (self._timeout - (self._clock.monotonic() - began)) / left
            connection = make()
            try:
                failpoint("connect.before")
                async with asyncio.timeout(share):
                    transport = await self._net.connect(partial(_the, connection), address, target.port)
                failpoint("connect.after")
                progress.connect = self._clock.monotonic() - began
                _check_peer(transport, address)
                self._reached(target.host, address)
            except BaseException as error:
                connection.discard()
                if left > 1 and isinstance(error, OSError) and not is_shortage(error):
                    continue
                raise
            return connection, transport
        raise HostUnreachable(ErrorKind.DNS, "The name has no address.")

    async def _pass_through(
        self, proxy: EgressProxy, target: Target, make: Callable[[], Connection], progress: Progress
    ) -> tuple[Connection, asyncio.Transport]:
        progress.phase = Phase.CONNECT
        began = self._clock.monotonic()
        tunnel = Tunnel(proxy, target)
        transport = await self._reach(proxy, tunnel)
        try:
            progress.phase = Phase.TUNNEL
            async with asyncio.timeout(self._tunnel_timeout):
                await tunnel.opened()
        except BaseException as error:
            transport.abort()
            if isinstance(error, TunnelRefused):
                raise HostUnreachable(ErrorKind.CONNECT_FAILED, str(error)) from None
            raise
        progress.connect = self._clock.monotonic() - began
        connection = make()
        transport.set_protocol(connection)
        connection.connection_made(transport)
        transport.resume_reading()
        return connection, transport

    async def _reach(self, proxy: EgressProxy, tunnel: Tunnel) -> asyncio.Transport:
        """A connection to the proxy. Whatever the cause, the owner of an endpoint does not learn its address."""
        why = "it has no address"
        try:
            literal = _is_literal(proxy.host)
            addresses = [proxy.host] if literal else await self._names.find(proxy.host, proxy.port)
            for left, address in zip(range(len(addresses), 0, -1), addresses, strict=True):
                try:
                    async with asyncio.timeout(self._timeout / left):
                        return await self._net.connect(partial(_the, tunnel), address, proxy.port)
                except OSError as error:
                    if is_shortage(error) or (left == 1 and isinstance(error, TimeoutError)):
                        raise
                    why = (
                        os.strerror(error.errno) if error.errno else "no answer in time"
                    )  # asyncio's text has it
        except NameNotFound:
            why = "its name has no address"
        raise HostUnreachable(ErrorKind.CONNECT_FAILED, f"The egress proxy cannot be reached: {why}.")

    async def _secure(
        self,
        target: Target,
        context: ssl.SSLContext,
        transport: asyncio.Transport,
        connection: Connection,
        progress: Progress,
    ) -> None:
        progress.phase = Phase.TLS
        began = self._clock.monotonic()
        try:
            failpoint("tls.before")
            async with asyncio.timeout(self._timeout):
                connection.adopt(await self._net.start_tls(transport, connection, context, target.host))
            failpoint("tls.after")
        except BaseException:
            connection.discard()
            raise
        progress.tls = self._clock.monotonic() - began


def _the(protocol: P) -> P:
    return protocol


def _is_literal(host: str) -> bool:
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return True


def _check_peer(transport: asyncio.Transport, address: str) -> None:
    peer = transport.get_extra_info("peername")
    if peer is None:
        raise ConnectionResetError("the connection was closed at once")
    if ipaddress.ip_address(peer[0]) != ipaddress.ip_address(address):
        raise HostUnreachable(ErrorKind.BLOCKED_ADDRESS, f"Dialled {address}, and {peer[0]} answered.")


def _explain(error: Exception, phase: Phase) -> HostUnreachable:
    detail = str(error) or type(error).__name__
    if isinstance(error, TimeoutError) and not error.errno:
        return HostUnreachable(OVERDUE[phase], f"No answer in time while {phase}.")
    match phase, error:
        case Phase.DNS, _:
            return HostUnreachable(ErrorKind.DNS, detail)
        case Phase.TLS, ssl.SSLCertVerificationError():
            return HostUnreachable(ErrorKind.TLS, error.verify_message or detail)
        case Phase.TLS, ConnectionError():
            return HostUnreachable(ErrorKind.TLS, f"The connection was closed while {phase}.")
        case Phase.TLS, _:
            return HostUnreachable(ErrorKind.TLS, detail)
        case _, ConnectionRefusedError():
            return HostUnreachable(ErrorKind.CONNECT_REFUSED, detail)
        case _, TimeoutError():
            return HostUnreachable(ErrorKind.CONNECT_TIMEOUT, detail)
        case _, ConnectionResetError():
            return HostUnreachable(ErrorKind.RESET, detail)
        case _, OSError():
            return HostUnreachable(ErrorKind.CONNECT_FAILED, detail)
    return HostUnreachable(ErrorKind.INTERNAL, repr(error))
