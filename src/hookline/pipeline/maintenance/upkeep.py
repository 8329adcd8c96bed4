"""Runs a worker's periodic maintenance.

Nothing here is urgent, and everything may be done twice: unneeded lanes are released, owned lanes are compared with the
store, missed lanes are woken, deliveries of deleted endpoints are cancelled. Each task has its own time: one that fails,
or has more to do than fits into one turn, delays no other.
"""

from collections.abc import Awaitable, Callable, Sequence

import msgspec
import structlog

from hookline.clock import Clock
from hookline.errors import StoreRefused, StoreUnavailable
from hookline.pipeline.lanes.ownership import Ownership
from hookline.pipeline.membership.burial import sweep
from hookline.store.contract import Store

_LOOK_EVERY = 0.5
_RELEASE_EVERY = 1.0
_SHED_EVERY = 1.0
_SHARE_EVERY = 0.5
_CANCEL_EVERY = 5.0
_RECONCILE_EVERY = 10.0
_SWEEP_EVERY = 300.0
_AFTER_A_FAILURE = 1.0  # seconds before a failed chore is tried again
_CANCEL_CHUNK = 1_000
_CANCEL_CHUNKS = 5  # in one turn; the next turn comes right after the other chores that are due

log = structlog.get_logger()


class _Chore(msgspec.Struct):
    """Something that is done at intervals."""

    work: Callable[[], Awaitable[object]]  # True: there is more to do
    every: float  # seconds
    due: float = 0.0  # on the monotonic clock
    is_failing: bool = False


class Upkeep:
    """The worker's chores."""

    def __init__(
        self,
        store: Store,
        ownership: Ownership,
        clock: Clock,
        *,
        shed: Callable[[], Awaitable[None]],
        share: Callable[[], Awaitable[None]],
        is_draining: Callable[[], bool],
        on_refused: Callable[[StoreRefused], None],
    ) -> None:
        self._store = store
        self._ownership = ownership
        self._clock = clock
        self._is_draining = is_draining
        self._on_refused = on_refused
        self._reconcile = _Chore(ownership.reconcile, _RECONCILE_EVERY)
        # Chores that release lanes, or check which are owned, never run at the same time.
        self._of_lanes = (
            _Chore(self._write_notes, _LOOK_EVERY),
            _Chore(ownership.release_quiet, _RELEASE_EVERY),
            _Chore(shed, _SHED_EVERY),
            _Chore(share, _SHARE_EVERY),
            self._reconcile,
        )
        self._of_the_store = (_Chore(self._cancel_deleted, _CANCEL_EVERY), _Chore(self._sweep, _SWEEP_EVERY))

    async def run(self) -> None:
        """Look after the lanes owned here, until cancelled."""
        await self._run(self._of_lanes)

    async def run_beside(self) -> None:
        """Look after what nobody owns, until cancelled; it may take long."""
        await self._run(self._of_the_store)

    async def _run(self, chores: Sequence[_Chore]) -> None:
        for chore in chores:
            chore.due = chore.due or self._clock.monotonic() + chore.every
        while True:
            await self._clock.sleep(_LOOK_EVERY)
            for chore in chores:
                if self._is_draining():
                    break
                if chore is self._reconcile and self._ownership.is_in_doubt and not chore.is_failing:
                    chore.due = self._clock.monotonic()
                if self._clock.monotonic() >= chore.due:
                    await self._do(chore)

    async def _do(self, chore: _Chore) -> None:
        """Do it; it is due again only after that, or after a rest if it fails."""
        rest = _AFTER_A_FAILURE
        was_failing, chore.is_failing = chore.is_failing, True
        try:
            has_more = await chore.work()
            chore.is_failing = False
            rest = 0.0 if has_more is True else chore.every
        except StoreUnavailable as error:
            log.debug("upkeep.failed", error=str(error))
        except StoreRefused as error:
            self._on_refused(error)
        except Exception:
            if not was_failing:
                log.exception("upkeep.failed", chore=getattr(chore.work, "__qualname__", ""))
        chore.due = self._clock.monotonic() + rest

    async def _write_notes(self) -> None:
        """Store what changed in lanes that have no settlements to carry it."""
        await self._ownership.notes.write(
            [lane for lane in self._ownership.lanes.values() if not lane.unsettled]
        )

    async def _cancel_deleted(self) -> bool:
        for _ in range(_CANCEL_CHUNKS):
            cancelled = await self._store.cancel_deleted(limit=_CANCEL_CHUNK, now=self._clock.now())
            if cancelled < _CANCEL_CHUNK:
                return False
        return True

    async def _sweep(self) -> None:
        await sweep(self._store, self._clock)
