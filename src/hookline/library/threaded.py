"""hookline on a thread of its own, for programs without an event loop.

It has the methods of `SyncHooklineClient`, and does what `Hookline` does. Any thread may call them.
"""

import asyncio
import atexit
import os
import threading
from collections.abc import Coroutine, Iterable
from concurrent.futures import CancelledError, Future
from datetime import datetime
from functools import partial
from types import TracebackType
from typing import Any, Self, TypeVar

import msgspec

from hookline.client.answers import Published
from hookline.client.blocking.dead_letters import DeadLetterMethods
from hookline.client.blocking.deliveries import DeliveryMethods
from hookline.client.blocking.endpoints import EndpointMethods
from hookline.client.blocking.events import EventMethods
from hookline.client.blocking.installation import InstallationMethods
from hookline.client.blocking.outbox import OutboxMethods
from hookline.client.call import ClientCall
from hookline.client.publishing import NewEvent, new_events, payload_bytes
from hookline.clock import Clock
from hookline.config import Settings
from hookline.errors import HooklineError, NotRunning, StoreRefused
from hookline.library.embedded import Hookline
from hookline.validate.payload_encoding import Payload

T = TypeVar("T")


class SyncHookline(
    EventMethods, EndpointMethods, DeliveryMethods, DeadLetterMethods, OutboxMethods, InstallationMethods
):
    """hookline inside your program, on a thread of its own. Use it in `with`, or start and stop it.

    It stops by itself when the program ends. A process that was forked from one with a started hookline has none: calls
    raise `NotRunning` there until it is started in that process too. So start it after the fork.
    """

    def __init__(
        self,
        database: str | None = None,
        *,
        settings: Settings | None = None,
        deliver: bool = True,
        clock: Clock | None = None,
    ) -> None:
        """`database` is `sqlite:///hooks.db` or `postgresql://…`; without it, that of the settings.

        With `deliver=False` it publishes and manages, and other processes deliver.
        """
        self._make = partial(Hookline, database, settings=settings, deliver=deliver, clock=clock)
        self._next: Hookline | None = self._make()  # at once: bad settings are refused here
        self._alone = threading.Lock()  # held while it starts or stops
        self._life: _Life | None = None
        self._of_parents: list[_Life] = []  # of processes that this one was forked from; never touched again

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def start(self) -> None:
        """Open the database, create or migrate its tables, recover pending deliveries and start delivering."""
        life = self._life
        if life is not None and life.process != os.getpid():
            if life.hooks.settings.database.startswith("sqlite:"):
                # Not even tried: SQLite carries its locks and mutexes across a fork, and hangs.
                raise StoreRefused(
                    f"Process {life.process}, which this process was forked from, serves this SQLite file: one process "
                    "serves an SQLite file. Start only after the fork, in one process, or use PostgreSQL."
                )
            # Its connections are the parent's: even closing them would disturb it.
            self._of_parents.append(life)
            self._life, self._alone = None, threading.Lock()
        with self._alone:
            if self._life is None:
                hooks, self._next = self._next or self._make(), None
                self._life = _Life(hooks)
                atexit.register(self._stop_at_exit)

    def stop(self) -> bool:
        """Finish the requests under way and release everything; True if that was done within `drain_s`."""
        life = self._life
        if life is not None and life.process != os.getpid():
            return True
        with self._alone:
            life, self._life = self._life, None
            atexit.unregister(self._stop_at_exit)
            return True if life is None else life.end()

    def _stop_at_exit(self) -> None:
        self.stop()

    def publish(
        self,
        type: str,
        payload: Payload,
        *,
        account: str | None = None,
        idempotency_key: str | None = None,
        deliver_at: datetime | None = None,
        hops: int = 0,
        traceparent: str | None = None,
        tracestate: str | None = None,
    ) -> Published:
        """Publish an event; when this returns it is durable. Bytes must be one JSON value and are sent as they are.

        `hops` is that of the webhook that caused this event (`Verified.hops`). It ends loops.
        `traceparent` and `tracestate` (W3C Trace Context) are sent on with the event's requests.
        """
        body = payload_bytes(payload)  # on the caller's thread: what it is made of may belong to that
        life = self._living()
        return life.run(
            life.hooks.publish(
                type,
                body,
                account=account,
                idempotency_key=idempotency_key,
                deliver_at=deliver_at,
                hops=hops,
                traceparent=traceparent,
                tracestate=tracestate,
            )
        )

    def publish_many(self, events: Iterable[NewEvent]) -> list[Published | HooklineError]:
        """Publish up to 1,000 events. A refused event has an error in its place and does not stop the others.

        A payload that is not JSON is refused before any event is published.
        """
        given = [
            msgspec.structs.replace(event, payload=payload_bytes(event.payload))
            for event in new_events(events)
        ]
        life = self._living()
        return life.run(life.hooks.publish_many(given))

    def send(self, call: ClientCall[T]) -> T:
        """Make a call of the API, within the process."""
        life = self._living()
        return life.run(life.hooks.send(call))

    def _living(self) -> "_Life":
        life = self._life
        if life is None:
            raise NotRunning("This hookline is not running: use it inside `with`, or start() it first.")
        if life.process != os.getpid():
            raise NotRunning(
                f"This hookline was started by process {life.process}, which this process was forked from. "
                "Start it after the fork, in each process: in gunicorn's post_fork, in uWSGI's @postfork."
            )
        return life


class _Life:
    """A hookline on a thread, from its start to its end."""

    def __init__(self, hooks: Hookline) -> None:
        self.hooks = hooks
        self.process = os.getpid()
        self._handing_in = threading.Lock()  # what was handed in before the end begins is done, or cancelled
        self._is_ending = False
        self._ended: Future[bool] = Future()
        started: Future[None] = Future()
        # A daemon, because the interpreter waits for other threads before it calls what is registered with atexit.
        self._thread = threading.Thread(
            target=lambda: asyncio.run(self._live(started)), name="hookline", daemon=True
        )
        self._thread.start()
        started.result()

    async def _live(self, started: Future[None]) -> None:
        self._loop = asyncio.get_running_loop()
        self._ending = asyncio.Event()
        try:
            await self.hooks.start()
        except BaseException as error:
            started.set_exception(error)
            return
        started.set_result(None)
        await self._ending.wait()
        try:
            self._ended.set_result(await self.hooks.stop())
        except BaseException as error:
            self._ended.set_exception(error)

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Do it on the thread, and wait for it."""
        with self._handing_in:
            if self._is_ending:
                work.close()
                raise NotRunning("This hookline is stopped.")
            future = asyncio.run_coroutine_threadsafe(work, self._loop)
        try:
            return future.result()
        except CancelledError:
            raise NotRunning("This hookline was stopped before it was done.") from None

    def end(self) -> bool:
        """Stop it, and wait for that."""
        with self._handing_in:
            self._is_ending = True
            self._loop.call_soon_threadsafe(self._ending.set)
        is_drained = self._ended.result()
        self._thread.join()
        return is_drained
