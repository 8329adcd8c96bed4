"""Notifies other processes of work, so that they do not wait for the next poll.

Delivering processes hear of lanes that others woke and of what operators changed elsewhere. A notification is never the
only way to learn of something: the poll finds whatever was lost. So notifications are rare (NOTIFY takes a lock that
the whole database shares), and a process whose own lanes have all the work sends none.
"""

import asyncio
from collections.abc import Callable, Coroutine, Iterable, Sequence

import structlog

from hookline.clock import Clock
from hookline.errors import HooklineError, StoreRefused, StoreUnavailable
from hookline.model import EndpointId, WorkerId
from hookline.store.contract import MOST_LANES, Notification, Store, WorkerRow

_TELL_EVERY = 0.2  # seconds between two notifications of a process; the first is sent at once
_LISTEN_AGAIN = 1.0  # seconds after the session was lost
_LISTEN_MUCH_LATER = 60.0  # seconds after listening turned out to be useless

log = structlog.get_logger()


class Notifier:
    """What is to be sent, and what was heard."""

    def __init__(
        self,
        store: Store,
        clock: Clock,
        *,
        worker: Callable[[], WorkerId],
        peers: Callable[[], Sequence[WorkerRow]],
        hear: Callable[[Notification], None],
        are_used: bool,
    ) -> None:
        self._store = store
        self._clock = clock
        self._worker = worker
        self._peers = peers
        self._hear = hear
        self._are_used = are_used
        self._lanes: set[EndpointId] = set()
        self._is_change = False
        self._some = asyncio.Event()
        self._is_quiet = False  # it was logged that nothing is heard

    def woken(self, lanes: Iterable[EndpointId]) -> None:
        """These lanes were woken here, and this process does not own them."""
        if self._are_used:
            self._lanes.update(lanes)
            self._some.set()

    def changed(self) -> None:
        """An operator changed something here."""
        if self._are_used:
            self._is_change = True
            self._some.set()

    def loops(self, *, delivers: bool) -> list[Callable[[], Coroutine[None, None, None]]]:
        """The loops that send and receive notifications."""
        if not self._are_used:
            return []
        return [self.run_telling, self.run_listening] if delivers else [self.run_telling]

    async def run_telling(self) -> None:
        """Send until cancelled."""
        while True:
            await self._some.wait()
            self._some.clear()
            lanes, self._lanes = self._lanes, set()
            is_change, self._is_change = self._is_change, False
            if not any(peer.kind != "api" and not peer.buried for peer in self._peers()):
                continue
            is_every_lane = len(lanes) > MOST_LANES
            named = () if is_every_lane else tuple(sorted(lanes))
            try:
                await self._store.notify(Notification(self._worker(), named, is_every_lane, is_change))
            except StoreUnavailable as error:
                log.debug("hint.failed", error=str(error))  # the others poll
            await self._clock.sleep(_TELL_EVERY)

    async def run_listening(self) -> None:
        """Listen until cancelled, or until there is nobody to listen to."""
        while True:
            try:
                await self._store.listen(self._heard, on_ready=self._ready)
                return
            except StoreRefused as error:
                self._say(error)
                await self._clock.sleep(_LISTEN_MUCH_LATER)
            except StoreUnavailable as error:
                log.debug("hints.lost", error=str(error))  # the pulse reports that the database is away
                await self._clock.sleep(_LISTEN_AGAIN)

    def _say(self, error: HooklineError) -> None:
        if not self._is_quiet:
            self._is_quiet = True
            log.warning("hints.unheard", error=str(error))

    def _ready(self) -> None:
        if self._is_quiet:
            self._is_quiet = False
            log.info("hints.heard")

    def _heard(self, hint: Notification) -> None:
        if hint.origin != self._worker():
            self._hear(hint)
