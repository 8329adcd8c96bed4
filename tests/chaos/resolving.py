"""A name server and a listener on every address, in a thread of this process.

They need a network of their own (tests/security/namespace.py), in which every address is this machine's. The listener
answers every request with 200 and closes, so that each request takes a connection. It notes which address was dialled.
"""

import asyncio
import contextlib
import re
import socket
import threading
import time
from ipaddress import ip_address
from pathlib import Path
from typing import Any, NamedTuple

from tests.security.name_server import NameServer, Trouble
from tests.security.namespace import own_every_address, put_over

OUTSIDE, INSIDE = "93.184.216.34", "10.0.0.1"
HEALTHY = "healthy.test"
_LENGTH = re.compile(rb"\r\ncontent-length: *(\d+)", re.IGNORECASE)
_ID = re.compile(rb"\r\nwebhook-id: *([^\r]+)", re.IGNORECASE)
_OK = b"HTTP/1.1 200 Fine\r\ncontent-length: 0\r\nconnection: close\r\n\r\n"
_CEILING_S = 60.0


class Arrival(NamedTuple):
    """A request."""

    id: str
    host: str
    at: float


class Names:
    """Every name and address of this network."""

    def __init__(self, folder: Path, *, of_each: int) -> None:
        own_every_address()
        # The machine's resolver waits longer than hookline does, and never gives up before it.
        put_over("/etc/resolv.conf", "nameserver 127.0.0.1\noptions timeout:5 attempts:3\n", folder)
        put_over("/etc/nsswitch.conf", "hosts: files dns\n", folder)
        put_over("/etc/hosts", "127.0.0.1 localhost\n::1 localhost\n", folder)
        self.zone: dict[str, Any] = {
            HEALTHY: [OUTSIDE],
            "*.silent.test": Trouble.SILENCE,
            "*.failing.test": Trouble.SERVER_FAILURE,
            "*.truncated.test": Trouble.CUT_OFF,
            # Half of them begin outside, and the other half inside.
            **{
                f"n{n}.flip.test": lambda times, n=n: [(OUTSIDE, INSIDE)[(times + n) % 2]]
                for n in range(of_each)
            },
        }
        self.server = NameServer(self.zone)
        self.arrivals: list[Arrival] = []
        self.dialled_inside: list[str] = []  # addresses that nothing should have dialled
        self.port = 0
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._thread.start()
        asyncio.run_coroutine_threadsafe(self._listen(), self._loop).result(_CEILING_S)

    def asked(self, name: str) -> int:
        """How often this name's addresses were asked for."""
        return self.server.asked[name, 1]

    def close(self) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(_CEILING_S)

    async def _listen(self) -> None:
        await self._loop.create_datagram_endpoint(lambda: self.server, local_addr=("127.0.0.1", 53))
        listener = socket.create_server(("::", 0), family=socket.AF_INET6, dualstack_ipv6=True, backlog=1_024)
        self.port = listener.getsockname()[1]
        await asyncio.start_server(self._meet, sock=listener)

    async def _meet(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        dialled = ip_address(writer.get_extra_info("sockname")[0])
        address = str(getattr(dialled, "ipv4_mapped", None) or dialled)
        if address != OUTSIDE:
            self.dialled_inside.append(address)
        with contextlib.suppress(OSError, asyncio.IncompleteReadError):
            head = await reader.readuntil(b"\r\n\r\n")
            at = time.time()
            length, id = _LENGTH.search(head), _ID.search(head)
            await reader.readexactly(int(length[1]) if length else 0)
            host = head.lower().partition(b"\r\nhost: ")[2].partition(b"\r\n")[0].partition(b":")[0]
            self.arrivals.append(Arrival(id[1].decode() if id else "?", host.decode(), at))
            writer.write(_OK)
            await writer.drain()
        writer.close()
