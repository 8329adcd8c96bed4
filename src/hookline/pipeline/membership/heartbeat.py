"""Shows the other processes that this one is alive.

The beat writes that this process lives, the pulse reads what the others did. An attempt may start only while the last
good pulse is recent: a worker that cannot see the database cannot know whether it still owns its lanes.
"""

import asyncio
import os
import socket
from collections.abc import Awaitable, Callable, Sequence

import structlog

from hookline.clock import Clock
from hookline.errors import (
    HooklineError,
    SchemaOutgrown,
    StorageFull,
    StoreReadOnly,
    StoreRefused,
    StoreUnavailable,
)
from hookline.ids import Ids
from hookline.model import FOREVER, WorkerId
from hookline.pipeline.catalogue.catalogue import Catalogue
from hookline.rules.liveness import FRESH, By, DeadWorker, Seen, Watch, look
from hookline.store.contract import Load, Pulse, Store, WorkerRow
from hookline.version import VERSION

_PULSE = 0.25  # seconds between pulses
_SKEW = 30.0  # seconds that the wall clock may be off before it is logged; webhooks are signed with it
_REFUSED_AGAIN = 0.5  # seconds after a beat that was refused: /readyz waits for a good one
_SHORTEST = 0.02  # least seconds between two pulses, however many notifications of a change arrive

log = structlog.get_logger()


class Heartbeat:
    """This process's row in `workers`, with its view of the other rows."""

    def __init__(
        self,
        store: Store,
        catalogue: Catalogue,
        clock: Clock,
        ids: Ids,
        *,
        kind: str,
        interval: float,
        lease: float,
    ) -> None:
        self._store = store
        self._catalogue = catalogue
        self._clock = clock
        self._ids = ids
        self._kind = kind
        self.interval = interval
        self._lease = lease
        self._watch = Watch()
        self._good = float("-inf")
        self._beaten = float("-inf")
        self._is_refused = False  # the beat is refused, or another write
        self._lacks_rights = False
        self._failing: str | None = None  # the error of the pulse, while it fails
        self._is_skewed = False
        self._is_ahead = False  # the store's time is ahead of the machine's, and that was logged
        self._was_named = False
        self._is_leaving = False
        self._owes_beat = False  # the lock of this worker was not held: no attempt starts before another beat
        self._naming = asyncio.Lock()
        self._nudged = asyncio.Event()
        self.id: WorkerId = ids.worker()
        self.peers: tuple[WorkerRow, ...] = ()
        self.wakes_at = FOREVER  # when the first free lane wakes, as of the last pulse
        self.delivers = True
        self._written: bytes | None = b""  # the status in the store; None: it is not certain
        self.load: Callable[[], Load] = Load
        self.status: Callable[[], bytes] = (
            bytes  # what the other processes should know of the lanes owned here
        )
        self.on_pulse: Callable[[], None] = lambda: None
        self.outbox_above: Callable[[], int | None] = lambda: None  # rows to ask for; None: none
        self.on_outbox: Callable[[bool | None], None] = lambda _: None
        self.on_outgrown: Callable[[SchemaOutgrown], None] = lambda _: None
        self.on_refused: Callable[[StoreRefused | StorageFull], None] = lambda _: None
        self.on_buried: Callable[[], None] = lambda: None
        self.on_dead: Callable[[Sequence[DeadWorker]], Awaitable[None]] = _nobody

    def is_fresh(self) -> bool:
        """Whether an attempt may start now."""
        return self._clock.monotonic() - self._good < FRESH

    def may_write(self) -> bool:
        """Whether the last beat was written and the database refused no write of this process.

        The next beat makes up for one that got lost, as long as the others do not consider this process dead.
        """
        refused = self._is_refused or self._lacks_rights
        return not refused and self._clock.monotonic() - self._beaten < self._lease

    def nudge(self) -> None:
        """Look now: another process changed something."""
        self._nudged.set()

    async def start(self) -> None:
        """Learn the store's time, then register as a worker; after a start that failed, as a new one.

        No beat is written between the two: the first may be buried by then, and an observer of its beats must not take
        the second for it.
        """
        if self._was_named:
            self.id = self._ids.worker()
        self._is_leaving = False
        began = self._clock.monotonic()
        pulse = await self._store.pulse(seen=self._catalogue.n)
        ended = self._clock.monotonic()
        self._follow(pulse, at=(began + ended) / 2)
        # The watch begins here: a server that was killed and restarted waits until its predecessor is seen to be dead.
        self._watch = Watch()
        self._observe(pulse, pulse.workers, began=began, ended=ended)
        await self._register()
        if self._store.exclusive and self.delivers:
            # No other process can be delivering from this database: every other listed worker is dead.
            await self.on_dead([DeadWorker(worker.id, worker.beat, By.FILE) for worker in pulse.workers])

    async def run_pulse(self) -> None:
        """Pulse until cancelled."""
        while True:
            try:
                await self.look()
                if self._failing is not None:
                    self._failing = None
                    log.info("store.resumed")
            except StoreReadOnly as error:
                self._say("store.read_only", error)
            except StoreUnavailable as error:
                self._say("store.unavailable", error)
            except SchemaOutgrown as error:
                self._good = float("-inf")  # nothing is sent any more
                self.on_outgrown(error)
            except StoreRefused as error:
                self._say("store.refused", error)  # rights were taken away, and may be given back
            await self._clock.sleep(_SHORTEST)
            until_verdict = max(0.0, self._watch.verdict_at - self._clock.monotonic())
            await self._clock.wait(self._nudged, min(_PULSE - _SHORTEST, until_verdict))
            self._nudged.clear()

    def _say(self, event: str, error: HooklineError) -> None:
        if self._failing != event:
            self._failing = event
            log.warning(event, error=str(error))

    async def run_beat(self) -> None:
        """Beat until cancelled."""
        while True:
            await self._clock.sleep(min(self.interval, _REFUSED_AGAIN) if self._is_refused else self.interval)
            id = self.id
            try:
                alive = await self._beat(id)
                self._beaten = self._clock.monotonic()
                if self._is_refused:
                    self._is_refused = False
                    log.info("store.resumed")
                if not alive:
                    await self._be_reborn(id)
            except (StoreRefused, StorageFull) as error:
                self._is_refused = True  # it stays: somebody has to act
                self.on_refused(error)
            except StoreUnavailable as error:
                log.debug("beat.failed", error=str(error))

    async def _beat(self, id: WorkerId) -> bool:
        """One heartbeat, with the status if it changed."""
        status = self.status()
        changed = None if status == self._written else status
        if changed is not None:
            self._written = None  # until the store has answered
        alive = await self._store.beat(id, self.load(), now=self._clock.now(), status=changed)
        if alive and changed is not None and self.id == id:
            self._written = changed
        return alive

    async def look(self) -> None:
        """One pulse."""
        began = self._clock.monotonic()
        id = self.id
        pulse = await self._store.pulse(seen=self._catalogue.n, worker=id, outbox_above=self.outbox_above())
        ended = self._clock.monotonic()
        self._follow(pulse, at=(began + ended) / 2)
        self._compare_clocks(pulse)
        if not any(worker.id == id and not worker.buried for worker in pulse.workers):
            await self._be_reborn(id)
            return
        self.peers = tuple(worker for worker in pulse.workers if worker.id != id)
        self._owes_beat = self._owes_beat or pulse.was_absent
        if self._owes_beat:
            # Others may have found the lock free before and after it was held: they see the beat.
            if not await self._beat(id):
                await self._be_reborn(id)
                return
            self._owes_beat = False
        await self._catalogue.apply(pulse.changes)
        # Only now: an attempt that starts because of this pulse has seen every change before it.
        self._good = began
        self.wakes_at = pulse.wakes_at
        if pulse.refusal is not None:
            self._heed(pulse.refusal)
        self.on_pulse()
        self.on_outbox(pulse.has_outbox_rows)
        dead = self._observe(pulse, self.peers, began=began, ended=ended)
        if dead:
            gone = {each.id for each in dead}
            self.peers = tuple(worker for worker in self.peers if worker.id not in gone)
        unfinished = [DeadWorker(worker.id, worker.beat, By.OTHERS) for worker in self.peers if worker.buried]
        if dead or unfinished:
            await self.on_dead([*dead, *unfinished])

    def _heed(self, refusal: str) -> None:
        """Note a missing right. Tables can still be read without it: only the next publish or settle would notice."""
        if refusal:
            self.on_refused(StoreRefused(refusal))
        elif self._lacks_rights:
            log.info("store.resumed")
        self._lacks_rights = bool(refusal)

    def _observe(
        self, pulse: Pulse, workers: Sequence[WorkerRow], *, began: float, ended: float
    ) -> list[DeadWorker]:
        """The workers that are dead, by this look and the ones before."""
        self._watch, dead = look(
            self._watch,
            [
                Seen(worker.id, worker.beat, worker.id in pulse.gone)
                for worker in workers
                if not worker.buried
            ],
            began=began,
            ended=ended,
            lease=self._lease,
            session=pulse.session,
        )
        return dead

    def _follow(self, pulse: Pulse, *, at: float) -> None:
        self._clock.follow(pulse.now, at=at, ahead=pulse.ahead, rate=pulse.rate)
        if pulse.ahead > _SKEW and not self._is_ahead:
            self._is_ahead = True
            log.warning(
                "store.ahead",
                ahead_s=round(pulse.ahead),
                note="this file was last written by a clock that was ahead of this machine's; if this one is right, nothing "
                "is to be done: the file's time runs slower until they meet, and deliver_at is kept by this one",
            )

    def _compare_clocks(self, pulse: Pulse) -> None:
        """Log a wall clock that is off. Only signatures and logs use it, but receivers refuse old signatures."""
        ahead = self._clock.wall() - (self._clock.now() - pulse.ahead)
        is_skewed = abs(ahead) > _SKEW
        if is_skewed and not self._is_skewed:
            log.warning(
                "clock.skewed",
                ahead_s=round(ahead),
                note="this machine's clock and the store's differ, and receivers refuse signatures of another time: "
                "let NTP set it",
            )
        self._is_skewed = is_skewed

    async def stop(self) -> None:
        """Stop being a worker."""
        self._is_leaving = True
        self._good = float("-inf")
        async with self._naming:  # a worker that is being registered now has to leave too
            await self._store.retire(self.id)

    async def _be_reborn(self, id: WorkerId) -> None:
        if self.id != id or self._is_leaving:
            return  # the other loop was faster, or it is not listed because it left
        log.warning(
            "worker.buried", note="another worker took this one for dead; starting over under a new id"
        )
        self._good = float("-inf")
        self.id = self._ids.worker()
        self._watch = Watch()
        self._owes_beat = False
        self.on_buried()
        async with self._naming:
            await self._register()

    async def _register(self) -> None:
        self._was_named = True
        self._written = b""
        now = self._clock.now()
        await self._store.register(
            WorkerRow(
                id=self.id,
                kind=self._kind,
                host=socket.gethostname(),
                pid=os.getpid(),
                version=VERSION,
                started_at=now,
                seen_at=now,
            )
        )
        self._beaten = self._clock.monotonic()


async def _nobody(_: Sequence[DeadWorker]) -> None:
    return None
