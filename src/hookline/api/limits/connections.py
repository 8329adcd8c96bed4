"""Counts the connections of clients, and turns away those that are too many.

A connection over a limit gets its answer when its first bytes come: before that some clients expect none. It is then
read for a moment, so that a reset does not lose the answer. Only some connections may wait for that at once; a flood of
more is reset.
"""

import asyncio
from collections import Counter
from collections.abc import Callable

from hookline.rules.auth_throttle import origin_of
from hookline.rules.client_connections import ConnectionLimits, Full, full

LINGER_S = 2.0
LINGER_BYTES = 1 << 20
MOST_TURNED_AWAY = 64  # at once


class Clients:
    """The connections that are open, in all and from each address."""

    def __init__(self, limits: ConnectionLimits, refused: Counter[str]) -> None:
        self._limits = limits
        self._refused = refused  # by the limit that they were over
        self._from: Counter[str] = Counter()
        self.linger_s = LINGER_S  # for those that are turned away
        self.open = 0
        self.turned_away = 0  # connections that wait for their answer, or were just given it

    def enter(self, address: str) -> Full | None:
        """Count one more connection from this address; if it is not to be served, the limit that it is over."""
        origin = origin_of(address)
        over = full(self._limits, are_open=self.open, from_there=self._from[origin], address=address)
        if over is not None:
            self._refused[over.value] += 1
            return over
        self._from[origin] += 1
        self.open += 1
        return None

    def leave(self, address: str) -> None:
        """The connection has ended."""
        origin = origin_of(address)
        self.open -= 1
        self._from[origin] -= 1
        if not self._from[origin]:
            del self._from[origin]


class TurnedAway(asyncio.Protocol):
    """A connection that is not served."""

    def __init__(self, clients: Clients, answer: Callable[[], bytes]) -> None:
        self._clients = clients
        self._answer = answer
        self._read_bytes = 0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)  # noqa: S101 - for the type checker
        self._transport = transport
        self._clients.turned_away += 1
        if self._clients.turned_away > MOST_TURNED_AWAY:
            transport.abort()
        self._end = asyncio.get_running_loop().call_later(self._clients.linger_s, transport.abort)

    def data_received(self, data: bytes) -> None:
        if not self._read_bytes:
            self._transport.write(self._answer())
            self._transport.write_eof()
        self._read_bytes += len(data)
        if self._read_bytes > LINGER_BYTES:
            self._transport.abort()

    def connection_lost(self, error: Exception | None) -> None:
        self._end.cancel()
        self._clients.turned_away -= 1
