"""Brings what applications published in their own transactions to events and deliveries.

One worker does it for all, for every source at once. It looks when a pulse, a poll or a nudge says that there are rows.
A source that is away holds up no other; it is said once, and tried again.
"""

import asyncio
from collections.abc import Callable, Sequence

import structlog

from hookline.clock import Clock
from hookline.errors import HooklineError, StoreRefused, StoreUnavailable
from hookline.outbox import nudging
from hookline.pipeline.membership.heartbeat import Heartbeat
from hookline.pipeline.outbox.accepting import RowAcceptor
from hookline.pipeline.outbox.moving import RowMover
from hookline.pipeline.outbox.source import POLL_S, Source
from hookline.rules import outbox_floor
from hookline.rules.outbox_election import Candidate, moves
from hookline.store.contract import SourceRow, Store
from hookline.version import VERSION

SOON_S, SOON_FOR_S = 0.05, 2.0  # after rows came, the next ones are looked for sooner
NOTE_EVERY_S = 60.0
NOTE_BEHIND_S = 10.0  # while rows wait
RETRY_S, RETRY_MOST_S = 0.25, 30.0

log = structlog.get_logger()


class SourceWatch:
    """Knows when one source has rows, and has them moved."""

    def __init__(
        self, mover: RowMover, store: Store, clock: Clock, *, is_elected: Callable[[], bool]
    ) -> None:
        self.mover = mover
        self._store = store
        self._clock = clock
        self._is_elected = is_elected
        self._news = asyncio.Event()
        self._is_leaving = False
        self._is_used = mover.source.has_rows is not None  # rows came from it once
        self._is_known = False  # what the store knows of it was read since the election
        self._is_registered = False  # pruning waits for it
        self._noted_at = float("-inf")
        self._noted: str | None = None  # the trouble that the store knows
        self._is_noted_behind = False  # the store knows of rows that wait
        self._failures = 0
        self.trouble: str | None = None  # why it cannot be read
        self._has_ended = asyncio.Event()
        self._has_ended.set()

    @property
    def name(self) -> str:
        """Its name, as people see it."""
        return self.mover.source.name

    @property
    def is_away(self) -> bool:
        """Whether the last LOOK failed: it is tried again later, whatever a pulse would say."""
        return self.trouble is not None and self._failures > 0

    def look(self) -> None:
        """There may be rows."""
        self._news.set()

    def leave(self) -> None:
        """Finish the round under way, and move nothing more."""
        self._is_leaving = True
        self._news.set()

    async def finish(self) -> None:
        """Wait for the round under way, and drop what is moved."""
        await self._has_ended.wait()
        for _ in range(2):  # one may be under way, which does not have all
            if self.mover.drop_due_at is not None:
                await self.mover.drop_all()

    async def run(self) -> None:
        """Move until cancelled."""
        while True:
            await self._clock.wait(self._news, self._patience())
            if self._is_leaving:
                await self._clock.sleep(3_600.0)
                continue
            has_news = self._news.is_set()
            self._news.clear()
            if not self._is_elected():
                self._is_known = self._is_registered = False
                continue
            self._has_ended.clear()
            try:
                await self._turn(has_news=has_news)
            finally:
                self._has_ended.set()

    def _patience(self) -> float:
        """How long to wait if nobody says that there are rows."""
        now = self._clock.monotonic()
        if not self._is_elected():
            return NOTE_EVERY_S
        if self._failures:
            return min(RETRY_MOST_S, RETRY_S * 2.0 ** min(self._failures, 10))
        if now - self.mover.found_at < SOON_FOR_S:
            return SOON_S
        until = [POLL_S if self.mover.source.has_rows is not None else 3_600.0]
        if self._is_used:
            until.append(max(0.0, self._noted_at + self._note_every() - now))
        if self.mover.drop_due_at is not None:
            until.append(max(0.0, self.mover.drop_due_at - now))
        if self.mover.floor.value:
            until.append(max(0.0, self.mover.floor.whole_at + outbox_floor.WHOLE_EVERY_S - now))
        return min(until)

    async def _turn(self, *, has_news: bool) -> None:
        try:
            if not self._is_known:
                await self._learn()
            if not (has_news or await self._has_reason()):
                return
            left = await self.mover.move_all(
                may_go_on=lambda: self._is_elected() and not self._is_leaving,
                before_first=self._register,
            )
        except (StoreUnavailable, StoreRefused) as error:
            self._failures += 1
            self._say(error)
        else:
            self._failures = 0 if left is None else self._failures + 1
            if left is not None:
                log.debug("outbox.left", source=self.name, error=str(left))
            self._say(self.mover.drop_error)
        await self._note()

    async def _has_reason(self) -> bool:
        """Whether to look although nobody said anything."""
        now = self._clock.monotonic()
        mover = self.mover
        if self._failures or now - mover.found_at < SOON_FOR_S:
            return True
        if self._is_used and now - self._noted_at >= self._note_every():
            return True
        if (mover.drop_due_at is not None and now >= mover.drop_due_at) or (
            mover.floor.value and now - mover.floor.whole_at >= outbox_floor.WHOLE_EVERY_S
        ):
            return True
        has_rows = mover.source.has_rows
        return has_rows is not None and await has_rows(mover.above(now=now))

    # --- what the store knows of it ---

    async def _learn(self) -> None:
        """Read what others have noted: it has to go on."""
        found = [each for each in await self._store.outbox_sources() if each.name == self.name]
        self._is_used = self._is_used or bool(found)
        self._is_registered = any(each.clear_at is not None for each in found)
        self._is_known = True

    async def _register(self, began: float) -> None:
        """Have pruning wait for this source, from before the first event that is accepted from it."""
        if not self._is_registered:
            await self._store.note_source(SourceRow(self.name, clear_at=began))
            self._is_registered = True

    def _say(self, error: HooklineError | None) -> None:
        if error is None and self.trouble is not None:
            log.info("outbox.source_back", source=self.name)
        elif error is not None and self.trouble is None:
            log.warning("outbox.source_away", source=self.name, error=str(error))
        self.trouble = None if error is None else str(error)

    def _note_every(self) -> float:
        """How often to tell: sooner too where rows were told that are moved by now."""
        is_behind = self.mover.oldest_at is not None or self._is_noted_behind
        return NOTE_BEHIND_S if is_behind else NOTE_EVERY_S

    async def _note(self) -> None:
        """Tell the other processes, now and then, or at once where something changed."""
        mover, now = self.mover, self._clock.monotonic()
        self._is_used = self._is_used or mover.moved > 0 or bool(mover.refused) or self.trouble is not None
        if not self._is_used:
            return
        if self.trouble == self._noted and now - self._noted_at < self._note_every():
            return
        try:
            backlog = None if self.trouble is not None else await mover.source.table.outbox_backlog()
            await self._store.note_source(
                SourceRow(
                    self.name,
                    clear_at=mover.clearing.clear_at,
                    looked_at=None if self.trouble is not None else self._clock.now(),
                    waiting=0 if backlog is None else backlog.rows,
                    oldest_at=None if backlog is None else backlog.oldest_at,
                    trouble=self.trouble,
                )
            )
        except (StoreUnavailable, StoreRefused) as error:
            log.debug("outbox.not_noted", source=self.name, error=str(error))
            return
        self._noted, self._noted_at = self.trouble, now
        self._is_noted_behind = backlog is not None and backlog.rows > 0


class Mover:
    """Every source, and the question which worker moves."""

    def __init__(
        self,
        sources: Sequence[Source],
        acceptor: RowAcceptor,
        store: Store,
        heartbeat: Heartbeat,
        clock: Clock,
        *,
        delivers: bool,
        tell_others: Callable[[], None],
    ) -> None:
        self._store = store
        self._heartbeat = heartbeat
        self._clock = clock
        self._delivers = delivers
        self._tell_others = tell_others
        self._is_elected = False
        self._is_leaving = False
        self._loop: asyncio.AbstractEventLoop | None = None
        self._unregister: Callable[[], None] = lambda: None
        self.watches = [
            SourceWatch(RowMover(source, acceptor, clock), store, clock, is_elected=lambda: self._is_elected)
            for source in sources
        ]
        self._own = next(each for each in self.watches if each.mover.source.has_rows is None)
        heartbeat.outbox_above = self._above
        heartbeat.on_outbox = self._pulsed

    async def run(self) -> None:
        """Move until cancelled."""
        try:
            async with asyncio.TaskGroup() as group:
                for watch in self.watches:
                    group.create_task(watch.run(), name=f"outbox {watch.name}")
        finally:
            for watch in self.watches:
                await watch.mover.close()

    def begin(self) -> None:
        """Hear of commits in this process."""
        self._loop = asyncio.get_running_loop()
        self._unregister = nudging.register(self._nudged)

    async def close(self, *, within: float) -> None:
        """Move nothing more; what is under way is finished first."""
        self._unregister()
        self._is_leaving = True
        for watch in self.watches:
            watch.leave()
        try:
            async with asyncio.timeout(within):
                for watch in self.watches:
                    await watch.finish()
        except TimeoutError:
            log.debug("outbox.undrained")  # a crash here would lose nothing either

    @property
    def is_moving(self) -> bool:
        """Whether this worker is the one that moves."""
        return self._is_elected and not self._is_leaving

    def _above(self) -> int | None:
        """The number above which the pulse asks for rows; None: it does not ask."""
        if not self.is_moving or self._own.is_away:
            return None
        return self._own.mover.above(now=self._clock.monotonic())

    def _pulsed(self, has_rows: bool | None) -> None:
        was, self._is_elected = self._is_elected, self._wins()
        if self._is_elected and not was:
            for watch in self.watches:
                watch.look()
        elif self._is_elected and has_rows is not False and not self._own.is_away:
            self._own.look()

    def _wins(self) -> bool:
        if self._is_leaving or not self._delivers:
            return False
        return self._store.exclusive or moves(
            self._heartbeat.id,
            VERSION,
            [
                Candidate(peer.id, peer.kind != "api", peer.load.draining, peer.version)
                for peer in self._heartbeat.peers
                if not peer.buried
            ],
        )

    def _nudged(self) -> None:
        """From any thread: somebody committed."""
        if self._loop is not None:
            self._loop.call_soon_threadsafe(self._look)

    def _look(self) -> None:
        if self.is_moving:
            for watch in self.watches:
                watch.look()
        else:
            self._tell_others()
