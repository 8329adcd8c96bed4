"""Lends database sessions to calls.

Each role has sessions of its own, so that nothing waits behind something else: a settle never waits behind a list. One
call at a time uses a session. It is kept only if its state is known: after a call that was cancelled, timed out or lost
the session is dropped, and the next call opens a new one.
"""

import asyncio
import math
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

import asyncpg

from hookline.errors import HooklineError, StoreUnavailable
from hookline.store.contract.figures import SessionUse
from hookline.store.interactive import ApiCall, current_call
from hookline.store.postgres.driver.faults import REPEATABLE, keeps_session, translated

T = TypeVar("T")
Connection = Any  # asyncpg ships no types
Work = Callable[[Connection], Awaitable[T]]

REPEATS = 5  # of a batch that met a deadlock; locks are taken in order, so even one repeat is rare
CLOSE_TIMEOUT = 2.0


class SessionPool:
    """The sessions of one role, at most `size`, opened when they are needed."""

    def __init__(
        self,
        connect: Callable[[], Awaitable[Connection]],
        *,
        role: str = "",
        size: int = 1,
        call_timeout: float,
        patience: float | None = None,
        patience_in_all: float = math.inf,
    ) -> None:
        self._connect = connect
        self._role = role
        self._size = size
        self._call_timeout = call_timeout
        # Seconds that an API call waits for its first session, and for all of its sessions together; None: as long as a
        # call may take.
        self._patience = patience
        self._patience_in_all = patience_in_all
        self._room = asyncio.Semaphore(size)
        self._idle: list[Connection] = []
        self._making: set[asyncio.Task[Connection]] = set()  # being opened, with nobody waiting any more
        self._in_use = 0  # sessions that a call has
        self._waiting = 0  # calls that wait for one, or for it to be opened
        self._closed = False

    async def fetch(self, statement: str, *values: object) -> list[Any]:
        """One statement, one transaction, one round trip."""

        async def work(connection: Connection) -> list[Any]:
            rows: list[Any] = await connection.fetch(statement, *values)
            return rows

        return await self.run(work)

    async def transaction(self, work: Work[T]) -> T:
        """Several statements in one transaction; may be run again, so `work` changes only the database."""

        async def inside(connection: Connection) -> T:
            async with connection.transaction():
                return await work(connection)

        return await self.run(inside)

    async def run(self, work: Work[T]) -> T:
        """Run the work on one session, within the time a call may take; repeated when the server asks for that."""
        with translated():
            async with asyncio.timeout(self._call_timeout):
                for _ in range(REPEATS):
                    try:
                        return await self._once(work)
                    except REPEATABLE:
                        continue
                return await self._once(work)

    @property
    def use(self) -> SessionUse:
        """How many of its sessions calls use now, and how many calls wait for one."""
        return SessionUse(role=self._role, limit=self._size, in_use=self._in_use, waiting=self._waiting)

    def open(self) -> None:
        """Accept calls (again)."""
        self._closed = False

    async def close(self) -> None:
        """Wait for the calls under way, then close every session."""
        self._closed = True
        for making in self._making:
            making.cancel()
        for _ in range(self._size):
            await self._room.acquire()
        idle, self._idle = self._idle, []
        for _ in range(self._size):
            self._room.release()
        for connection in idle:
            try:
                await connection.close(timeout=CLOSE_TIMEOUT)
            except (OSError, TimeoutError, asyncpg.PostgresError, asyncpg.InterfaceError):
                connection.terminate()

    async def _once(self, work: Work[T]) -> T:
        self._waiting += 1
        try:
            connection = await self._session()
        finally:
            self._waiting -= 1
        self._in_use += 1
        try:
            try:
                result = await work(connection)
            except (asyncpg.PostgresError, HooklineError) as error:
                self._give_back(connection, keep=keeps_session(error))
                raise
            except BaseException:  # cancelled, timed out, lost: the server may still be working on it
                connection.terminate()
                raise
            self._give_back(connection, keep=True)
            return result
        finally:
            self._in_use -= 1
            self._room.release()

    async def _session(self) -> Connection:
        """A session with its permit, which the caller gives back."""
        call = current_call()
        clock = asyncio.get_running_loop().time
        began = clock()
        patience = None if call is None else self._left_to(call, began)
        try:
            async with asyncio.timeout(patience) as limit:
                await self._room.acquire()
                connection = await self._enter(patience)
        except TimeoutError:
            if not limit.expired():
                raise
            raise StoreUnavailable("PostgreSQL is slow: no session was free in time.") from None
        finally:
            if call is not None:
                call.waited += clock() - began
        if call is not None:
            call.is_served = True
        return connection

    def _left_to(self, call: ApiCall, now: float) -> float | None:
        """How long the call still waits. Once it had a session it may have changed something, so it waits longer."""
        if call.asked_at is None:
            call.asked_at = now
        if not call.is_served or self._patience is None:
            return self._patience
        left = self._patience_in_all - (now - call.asked_at if call.only_reads else call.waited)
        return None if left == math.inf else max(0.0, left)

    async def _enter(self, patience: float | None) -> Connection:
        making: asyncio.Task[Connection] | None = None
        try:
            if self._closed:
                raise StoreUnavailable("The store is closed.")
            while self._idle:
                connection = self._idle.pop()
                if not connection.is_closed():
                    return connection
            if patience is None:
                return await self._connect()
            making = asyncio.create_task(self._make())
            await asyncio.wait({making})
            return making.result()
        except BaseException:
            if making is None:
                self._room.release()
            else:
                # On a slow line connecting takes longer than a caller waits: it is for the next call, with its permit.
                self._making.add(making)
                making.add_done_callback(self._made)
            raise

    async def _make(self) -> Connection:
        async with asyncio.timeout(self._call_timeout):
            return await self._connect()

    def _made(self, making: "asyncio.Task[Connection]") -> None:
        self._making.discard(making)
        if not making.cancelled() and making.exception() is None:
            self._give_back(making.result(), keep=not self._closed)
        self._room.release()

    def _give_back(self, connection: Connection, *, keep: bool) -> None:
        if keep and not connection.is_closed() and not connection.is_in_transaction():
            self._idle.append(connection)
        else:
            connection.terminate()
