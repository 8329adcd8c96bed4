"""Counts what waits and what is dead, in one process for all."""

from hookline.clock import Clock
from hookline.model import EndpointId
from hookline.pipeline.measuring.owner_status import owner_statuses
from hookline.rules.worker_status import held_back
from hookline.store.contract import Store
from hookline.store.contract.measuring.health import LOOK, LOOK_EVERY, LOOK_TIMES


class HealthLook:
    """The periodic task that counts."""

    name = LOOK
    every = LOOK_EVERY

    def __init__(self, store: Store, clock: Clock, *, heartbeat: float) -> None:
        self._store = store
        self._clock = clock
        self._heartbeat = heartbeat

    async def work(self) -> float | None:
        """Look, if it is this process's turn; how long to wait until the next."""
        now = self._clock.now()
        statuses = await owner_statuses(self._store, now=now, heartbeat=self._heartbeat)
        held = [EndpointId(id) for id in held_back(statuses.values())]
        sample = await self._store.look(now=now, held=held)
        return None if sample is None else max(LOOK_EVERY, LOOK_TIMES * sample.took)
