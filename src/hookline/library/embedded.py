"""hookline on the event loop of a program.

It has the methods of `HooklineClient`. A publish goes straight to the intake. All else is answered by the calls of the
API, from within the process: no request is sent and no key is needed, and the results are those of the clients.
"""

from collections.abc import Iterable
from datetime import datetime
from types import TracebackType
from typing import TYPE_CHECKING, Self, TypeVar

from hookline.client.aio.dead_letters import AsyncDeadLetterMethods
from hookline.client.aio.deliveries import AsyncDeliveryMethods
from hookline.client.aio.endpoints import AsyncEndpointMethods
from hookline.client.aio.events import AsyncEventMethods
from hookline.client.aio.installation import AsyncInstallationMethods
from hookline.client.aio.outbox import AsyncOutboxMethods
from hookline.client.answers import Published
from hookline.client.call import ClientCall
from hookline.client.publishing import NewEvent
from hookline.clock import Clock
from hookline.config import Settings
from hookline.errors import HooklineError, naming_extras
from hookline.library.publishing import checked_together, shown
from hookline.validate.payload_encoding import Payload, encoded

if TYPE_CHECKING:  # loaded with the first object: importing the class must cost little
    from hookline.library.calls import ProgramCalls

T = TypeVar("T")


class Hookline(
    AsyncEventMethods,
    AsyncEndpointMethods,
    AsyncDeliveryMethods,
    AsyncDeadLetterMethods,
    AsyncOutboxMethods,
    AsyncInstallationMethods,
):
    """hookline inside your program. Use it in `async with`, or start and stop it, on one event loop."""

    _kind = "library"  # as `hookline workers` shows it

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
        if not isinstance(database, str | None):
            raise TypeError(
                f"database is a URL, such as 'sqlite:///hooks.db', or None, not {type(database).__name__}."
            )
        with naming_extras(type(self).__name__):
            from hookline import app

            self.app = app.Hookline(
                database, settings=settings, kind=self._kind, deliver=deliver, clock=clock
            )  # its parts, for hookline itself
        self._calls: ProgramCalls | None = None

    @property
    def settings(self) -> Settings:
        """The settings it runs with."""
        return self.app.settings

    @property
    def is_ready(self) -> bool:
        """Whether it runs, and the database answers and refused no write lately."""
        return self.app.is_ready

    async def not_ready(self) -> str | None:
        """Why a publish would wait or be refused now; None: it would not."""
        return await self.app.not_ready()

    async def start(self) -> None:
        """Open the database, create or migrate its tables, recover pending deliveries and start delivering."""
        await self.app.store.migrate()
        await self.app.start()

    async def stop(self) -> bool:
        """Finish the requests under way and release everything; True if that was done within `drain_s`."""
        return await self.app.stop()

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.stop()

    async def publish(
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
        self.app.refuse_unless_started()
        draft = self.app.draft(
            type,
            encoded(payload),
            account=account,
            idempotency_key=idempotency_key,
            deliver_at=deliver_at,
            hops=hops,
            traceparent=traceparent,
            tracestate=tracestate,
        )
        return shown(await self.app.publish_at_once(draft), self.app)

    async def publish_many(self, events: Iterable[NewEvent]) -> list[Published | HooklineError]:
        """Publish up to 1,000 events. A refused event has an error in its place and does not stop the others.

        A payload that is not JSON is refused before any event is published.
        """
        self.app.refuse_unless_started()
        read = checked_together(events, self.app)
        drafts = [each for each in read if not isinstance(each, HooklineError)]
        accepted = iter(await self.app.accept(drafts) if drafts else [])
        await self.app.worker.handover.wakes.flush()
        results = [each if isinstance(each, HooklineError) else next(accepted) for each in read]
        return [each if isinstance(each, HooklineError) else shown(each, self.app) for each in results]

    async def send(self, call: ClientCall[T]) -> T:
        """Make a call of the API, within the process."""
        self.app.refuse_unless_started()
        if self._calls is None:
            from hookline.library.calls import ProgramCalls

            self._calls = ProgramCalls(self.app)
        return await self._calls.answer(call)
