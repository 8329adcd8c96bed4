"""Gives the sender the operating system's network.

Names are resolved and connections opened only here, so that a test or a simulation can be the network.
"""

import asyncio
import contextlib
import errno
import os
import socket
import ssl
import threading
from collections.abc import Callable
from typing import Protocol

_SHORTAGES = frozenset({errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.EADDRNOTAVAIL, errno.ENOMEM})


class Net(Protocol):
    """Resolve a name, connect to an address."""

    async def resolve(self, host: str, port: int) -> list[str]:
        """The addresses of a host, as text; raises OSError when there are none."""

    async def connect(
        self,
        protocol: Callable[[], asyncio.Protocol],
        address: str,
        port: int,
    ) -> asyncio.Transport:
        """A TCP connection to exactly this address; raises OSError."""

    async def start_tls(
        self, transport: asyncio.Transport, protocol: asyncio.Protocol, context: ssl.SSLContext, host: str
    ) -> asyncio.Transport:
        """TLS on an open connection, the certificate checked for `host`; raises ssl.SSLError or OSError."""


def is_here(address: str) -> bool:
    """Whether the address belongs to this machine: only then can a socket be bound to it. Nothing is sent."""
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    try:
        with socket.socket(family, socket.SOCK_DGRAM) as found:
            found.bind((address, 0))
    except OSError:
        return False
    return True


def is_shortage(error: BaseException) -> bool:
    """Whether this machine ran out of descriptors, ports or memory; that says nothing about the other machine."""
    if isinstance(error, socket.gaierror):
        return error.errno == socket.EAI_MEMORY
    if isinstance(error, ssl.SSLError):  # its numbers have another meaning
        return False
    return isinstance(error, MemoryError) or (isinstance(error, OSError) and error.errno in _SHORTAGES)


class SystemNet:
    """The operating system's resolver and sockets, on the running loop."""

    async def resolve(self, host: str, port: int) -> list[str]:
        # A thread of its own, not one of the loop's few: one that hangs delays nobody, not even the process's end.
        loop = asyncio.get_running_loop()
        found: asyncio.Future[list[str]] = loop.create_future()

        def look() -> None:
            outcome: list[str] | Exception
            try:
                infos = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
                outcome = list(dict.fromkeys(str(sockaddr[0]) for *_, sockaddr in infos))
            except socket.gaierror as error:
                outcome = (
                    _shortage() or error
                )  # without a descriptor no name is found, and the error does not say why
            except Exception as error:
                outcome = error
            with contextlib.suppress(RuntimeError):  # the loop is closed: nobody waits any more
                loop.call_soon_threadsafe(_give, found, outcome)

        try:
            threading.Thread(target=look, name="hookline-lookup", daemon=True).start()
        except RuntimeError as error:
            raise OSError(errno.ENOMEM, "no thread could be started for a lookup") from error
        return await found

    async def connect(
        self, protocol: Callable[[], asyncio.Protocol], address: str, port: int
    ) -> asyncio.Transport:
        try:
            transport, _ = await asyncio.get_running_loop().create_connection(protocol, address, port)
        except OSError as error:
            if error.errno == errno.EADDRNOTAVAIL and not _has_way_to(address):
                raise OSError(errno.ENETUNREACH, os.strerror(errno.ENETUNREACH)) from error
            raise
        return transport

    async def start_tls(
        self, transport: asyncio.Transport, protocol: asyncio.Protocol, context: ssl.SSLContext, host: str
    ) -> asyncio.Transport:
        wrapped = await asyncio.get_running_loop().start_tls(
            transport, protocol, context, server_hostname=host
        )
        if wrapped is None:
            raise ConnectionResetError("the connection was closed before TLS began")
        return wrapped


def _shortage() -> OSError | None:
    """Why no socket can be opened; None: one can."""
    try:
        socket.socket(socket.AF_INET, socket.SOCK_DGRAM).close()
    except OSError as error:
        return error
    return None


def _has_way_to(address: str) -> bool:
    """Whether this machine has an address to reach that one from; if so, ports are short. Nothing is sent."""
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    try:
        with socket.socket(family, socket.SOCK_DGRAM) as trial:
            trial.connect((address, 9))
    except OSError as error:
        return error.errno != errno.EADDRNOTAVAIL
    return True


def _give(found: "asyncio.Future[list[str]]", outcome: list[str] | Exception) -> None:
    if found.done():
        return  # the caller went away
    if isinstance(outcome, Exception):
        found.set_exception(outcome)
    else:
        found.set_result(outcome)
