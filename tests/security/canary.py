"""Listens on every address of a namespace: one of them is a receiver, each connection to any other is counted.

A connection is told by the address that was dialled. The receiver answers by the name in the request: it redirects,
fails or accepts.
"""

import asyncio
import contextlib
import socket
import ssl
import threading
from collections.abc import Mapping
from ipaddress import ip_address
from types import TracebackType
from typing import NamedTuple, Self

from security.name_server import NameServer, Zone

RECEIVER = "93.184.216.34"
PORTS = (80, 443, 1080, 3128, 5432, 6379, 8080)
INSIDE = "http://169.254.169.254/latest/meta-data/"
_CEILING_S = 60.0


class Hit(NamedTuple):
    """A connection to an address that nothing should have dialled."""

    address: str
    port: int


class Arrival(NamedTuple):
    """A request that the receiver got."""

    host: str
    method: str
    path: str
    body: str
    headers: Mapping[str, str]
    server_name: str | None  # over TLS


class Canary:
    """Every address and a name server, in a thread of their own, while entered."""

    def __init__(self, zone: Zone, tls: ssl.SSLContext) -> None:
        self.names = NameServer(zone)
        self.hits: list[Hit] = []
        self.arrivals: list[Arrival] = []
        self.accepted = 0  # connections to the receiver
        self._tls = tls
        self._server_names: dict[int, str] = {}
        tls.sni_callback = self._note_server_name
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        asyncio.run_coroutine_threadsafe(self._listen(), self._loop).result(_CEILING_S)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(_CEILING_S)

    async def _listen(self) -> None:
        await self._loop.create_datagram_endpoint(lambda: self.names, local_addr=("127.0.0.1", 53))
        for port in PORTS:
            listener = socket.create_server(
                ("::", port), family=socket.AF_INET6, dualstack_ipv6=True, backlog=1_000
            )
            await asyncio.start_server(self._meet, sock=listener)

    def _note_server_name(self, connection: ssl.SSLObject, name: str, context: ssl.SSLContext) -> None:
        self._server_names[id(connection)] = name

    async def _meet(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        dialled, port = writer.get_extra_info("sockname")[:2]
        address = ip_address(dialled)
        address = getattr(address, "ipv4_mapped", None) or address
        if str(address) != RECEIVER:
            self.hits.append(Hit(str(address), port))
            writer.close()
            return
        self.accepted += 1
        with contextlib.suppress(OSError, asyncio.IncompleteReadError):
            if port == 443:
                await writer.start_tls(self._tls)
            await self._answer(reader, writer)
        writer.close()

    async def _answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
        line, *rest = head.rstrip().split("\r\n")
        method, path, _ = line.split(" ")
        headers = {name.lower(): value for name, _, value in (each.partition(": ") for each in rest)}
        body = await reader.readexactly(int(headers.get("content-length", 0)))
        host = headers.get("host", "")
        secured = writer.get_extra_info("ssl_object")
        server_name = self._server_names.pop(id(secured), None)
        self.arrivals.append(Arrival(host, method, path, body.decode(), headers, server_name))
        status, location = _answer_of(host, path)
        extra = f"Location: {location}\r\n" if location else ""
        writer.write(f"HTTP/1.1 {status} -\r\n{extra}Content-Length: 0\r\nConnection: close\r\n\r\n".encode())
        await writer.drain()


def _answer_of(host: str, path: str) -> tuple[int, str | None]:
    match host, path.strip("/").split("/"):
        case "redir.test", [code]:
            return int(code), INSIDE
        case "redir.test", ["named", code]:
            return int(code), "http://cname.test/"
        case "redir.test", ["line-break", code]:
            return int(code), f"http://redir.test/\r\n {INSIDE}"
        case "redir2.test", [""]:
            return 307, "http://redir2.test/other"
        case _ if host.endswith("rebind.test"):
            return 503, None
    return 200, None
