"""What does a worker do now and then?

Nothing here is urgent, and everything may be done twice: lanes nobody needs are let go, what is owned is compared
with the store, lanes that were missed are woken, deleted and gone endpoints are dealt with.
"""

from collections.abc import Awaitable, Callable

import msgspec
import structlog

from hookline.clock import Clock
from hookline.errors import StoreUnavailable
from hookline.model import EndpointId
from hookline.pipeline.bury import sweep
from hookline.pipeline.catalogue import Catalogue
from hookline.pipeline.holdings import Holdings
from hookline.store.contract import Store

_LOOK_EVERY = 0.5
_RELEASE_EVERY = 1.0
_SHED_EVERY = 1.0
_SHARE_EVERY = 0.5
_CANCEL_EVERY = 5.0
_RECONCILE_EVERY = 10.0
_SWEEP_EVERY = 300.0
_CANCEL_CHUNK = 1_000

log = structlog.get_logger()


class Upkeep:
    """The worker's chores."""

    def __init__(
        self,
        store: Store,
        catalogue: Catalogue,
        holdings: Holdings,
        clock: Clock,
        *,
        shed: Callable[[], Awaitable[None]],
        share: Callable[[], Awaitable[None]],
        is_draining: Callable[[], bool],
    ) -> None:
        self._store = store
        self._catalogue = catalogue
        self._holdings = holdings
        self._clock = clock
        self._shed = shed
        self._share = share
        self._is_draining = is_draining
        self._gone: dict[EndpointId, None] = {}

    def disable(self, endpoint: EndpointId) -> None:
        """A receiver said that the endpoint is gone."""
        self._gone[endpoint] = None

    async def run(self) -> None:
        """Do each chore in its turn, until cancelled."""
        turns = {
            self._holdings.release_quiet: _RELEASE_EVERY,
            self._shed: _SHED_EVERY,
            self._share: _SHARE_EVERY,
            self._cancel_deleted: _CANCEL_EVERY,
            self._holdings.reconcile: _RECONCILE_EVERY,
            self._sweep: _SWEEP_EVERY,
        }
        started = self._clock.monotonic()
        due = {turn: started + every for turn, every in turns.items()}
        while True:
            await self._clock.sleep(_LOOK_EVERY)
            if self._is_draining():
                continue
            at = self._clock.monotonic()
            if self._holdings.is_in_doubt:
                due[self._holdings.reconcile] = at
            try:
                await self._write_notes()
                await self._disable_gone()
                for turn, every in turns.items():
                    if at >= due[turn]:
                        due[turn] = at + every
                        await turn()
            except StoreUnavailable as error:
                log.debug("upkeep.failed", error=str(error))

    async def _write_notes(self) -> None:
        """What changed of a lane is written with its settlements; where there are none, here."""
        await self._holdings.write_notes(
            [lane for lane in self._holdings.lanes.values() if not lane.unsettled]
        )

    async def _disable_gone(self) -> None:
        """An endpoint that answered 410 is disabled; its waiting deliveries wait for whoever enables it again."""
        if not self._gone:
            return
        for endpoint in await self._store.endpoints_by_id(list(self._gone)):
            now = self._clock.now()
            disabled = msgspec.structs.replace(
                endpoint,
                enabled=False,
                disabled_reason="The endpoint answered 410 Gone.",
                updated_at=max(now, endpoint.updated_at + 1e-6),
            )
            if not await self._store.update_endpoint(disabled, was=endpoint.updated_at, now=now):
                return  # somebody changed it at this moment: look at it again
        self._gone.clear()
        await self._catalogue.include_own()

    async def _cancel_deleted(self) -> None:
        while await self._store.cancel_deleted(limit=_CANCEL_CHUNK, now=self._clock.now()) == _CANCEL_CHUNK:
            pass

    async def _sweep(self) -> None:
        await sweep(self._store, self._clock)
