"""The network of a simulated world.

It replaces the network under the real sender: names resolve, connections open and bytes travel, with the delays and faults
that the world decides. Above it runs the product's own HTTP client with its pool and its deadlines.
"""

import asyncio
import errno
import socket
import ssl
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tests.sim.process import Process
    from tests.sim.receivers import Receipt
    from tests.sim.world import World


class SimNet:
    """A process's network."""

    def __init__(self, world: "World", process: "Process") -> None:
        self._world = world
        self._process = process

    async def resolve(self, host: str, port: int) -> list[str]:
        faults = self._world.faults
        await asyncio.sleep(faults.travel())
        if faults.name_fails(host):
            raise socket.gaierror(socket.EAI_AGAIN, "temporary failure in name resolution")
        return [f"10.1.0.{int(host.removeprefix('h').partition('.')[0]) + 1}"]

    async def connect(
        self, protocol: Callable[[], asyncio.Protocol], address: str, port: int
    ) -> asyncio.Transport:
        faults = self._world.faults
        await asyncio.sleep(faults.travel())
        if faults.falls_short():
            raise OSError(errno.EMFILE, "too many open files")
        if faults.is_refused():
            raise ConnectionRefusedError(111, "connection refused")
        made = protocol()
        transport = SimTransport(self._world, self._process, made, (address, port))
        made.connection_made(transport)
        return transport

    async def start_tls(
        self, transport: asyncio.Transport, protocol: asyncio.Protocol, context: ssl.SSLContext, host: str
    ) -> asyncio.Transport:
        raise AssertionError("the simulated endpoints speak plain HTTP")


class SimTransport(asyncio.Transport):
    """One connection, seen from the process; the receiver's side answers through `reply` and `hang_up`."""

    def __init__(
        self, world: "World", process: "Process", protocol: asyncio.Protocol, peer: tuple[str, int]
    ) -> None:
        super().__init__()
        self._world = world
        self._protocol = protocol
        self._peer = peer
        self._is_closing = False
        self._next_at = 0.0  # what is sent first arrives first
        self.process = process
        self.receipt: Receipt | None = None  # of the request it carries
        self.is_reused = False

    # --- the process's side ---

    def write(self, data: Any) -> None:
        if self._is_closing:
            return
        self.is_reused = self._protocol.was_idle  # type: ignore[attr-defined]
        self.receipt = self._world.receivers.arrive(self, bytes(data))

    def writelines(self, list_of_data: Any) -> None:
        self.write(b"".join(list_of_data))

    def get_write_buffer_size(self) -> int:
        return 0

    def get_extra_info(self, name: str, default: Any = None) -> Any:
        return self._peer if name == "peername" else default

    def is_closing(self) -> bool:
        return self._is_closing

    def close(self) -> None:
        self.abort()

    def abort(self) -> None:
        if not self._is_closing:
            self._close()
            self._world.loop.call_soon(
                self._protocol.connection_lost, None, context=self.process.owner.context
            )

    # --- the receiver's side ---

    def reply(self, data: bytes, then: Callable[[], None] | None = None) -> None:
        """Send bytes; `then` when they have arrived."""
        self._arrive(self._receive, data, then)

    def hang_up(self, *, reset: bool) -> None:
        self._arrive(self._lose, reset)

    def _arrive(self, what: Callable[..., None], *args: Any) -> None:
        loop = self._world.loop
        self._next_at = max(self._next_at + 1e-6, loop.time() + self._world.faults.travel())
        loop.call_at(self._next_at, what, *args, context=self.process.owner.context)

    def _receive(self, data: bytes, then: Callable[[], None] | None) -> None:
        if not self._is_closing:
            if then is not None:
                then()
            self._protocol.data_received(data)

    def _lose(self, reset: bool) -> None:
        if self._is_closing:
            return
        if reset:
            self._close()
            self._protocol.connection_lost(ConnectionResetError(104, "connection reset by peer"))
        else:
            self._protocol.eof_received()
            if not self._is_closing:
                self._close()
                self._protocol.connection_lost(None)

    def _close(self) -> None:
        self._is_closing = True
        if self.receipt is not None and self.receipt.ended_at is None:
            self.receipt.ended_at = self._world.loop.time()
            self.receipt.is_cut = not self.receipt.seen
