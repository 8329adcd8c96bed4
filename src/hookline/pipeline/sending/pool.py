"""Keeps idle connections for their next request."""

from collections.abc import Iterator
from itertools import islice

import msgspec

from hookline.pipeline.sending.connection import Connection, Key


class PoolLimits(msgspec.Struct, frozen=True):
    """How many connections are kept, and for how long (seconds)."""

    per_destination: int = 1_000  # as many as a worker has requests under way: opening one is expensive
    total: int = 2_000
    idle: float = 15.0  # below the 60 to 75 s after which servers close, so that few are found stale
    age: float = 300.0  # then a name is looked up and vetted again


class Pool:
    """Idle connections by destination; the last one used is used again first."""

    def __init__(self, limits: PoolLimits) -> None:
        self._limits = limits
        self._by_key: dict[Key, list[Connection]] = {}
        self._oldest_first: dict[Connection, None] = {}

    def __len__(self) -> int:
        return len(self._oldest_first)

    def take(self, key: Key) -> Connection | None:
        """An idle connection to a destination; it then belongs to the caller."""
        idle = self._by_key.get(key)
        while idle:
            connection = idle.pop()
            del self._oldest_first[connection]
            if connection.is_usable():
                return connection
        return None

    def put(self, connection: Connection, now: float) -> None:
        """Keep a connection for later, or close it if there are enough or it is old."""
        limits = self._limits
        idle = self._by_key.get(connection.key)
        if idle is None:
            idle = self._by_key[connection.key] = []
        if len(idle) >= limits.per_destination or now - connection.opened_at > limits.age:
            connection.abort()
            return
        if len(self._oldest_first) >= limits.total:
            self._close(next(iter(self._oldest_first)))
        connection.idle_since = now
        connection.was_idle = True
        idle.append(connection)
        self._oldest_first[connection] = None

    def forget(self, connection: Connection) -> None:
        """It was closed."""
        if connection in self._oldest_first:
            del self._oldest_first[connection]
            self._by_key[connection.key].remove(connection)

    def close_idle(self, now: float) -> None:
        """Close connections that were idle for too long, and drop destinations without any."""
        expired = now - self._limits.idle
        for connection in self._until(expired):
            self._close(connection)
        for key in [key for key, idle in self._by_key.items() if not idle]:
            del self._by_key[key]

    def close_oldest(self, number: int) -> None:
        """Close the ones that were idle the longest, so many, to make room for others."""
        for connection in list(islice(self._oldest_first, number)):
            self._close(connection)

    def close(self) -> None:
        """Close all."""
        for connection in list(self._oldest_first):
            self._close(connection)
        self._by_key.clear()

    def _until(self, moment: float) -> list[Connection]:
        def old() -> Iterator[Connection]:
            for connection in self._oldest_first:
                if connection.idle_since > moment:
                    return
                yield connection

        return list(old())

    def _close(self, connection: Connection) -> None:
        self.forget(connection)
        connection.abort()
