"""The publishers of a simulated world, and what they know afterwards.

Clients publish to any process that is up. A publish with a key that got no answer is repeated with the same key, at
any process, until it is answered. One without a key stays in doubt and is not repeated. Every answer is compared with
the store.
"""

import asyncio
import json
from random import Random
from typing import TYPE_CHECKING

from hookline.errors import HooklineError, IdempotencyConflict
from hookline.pipeline.intake.drafts import Draft, Published
from tests.sim.process import Died

if TYPE_CHECKING:
    from tests.sim.world import World

MOST = 100  # events of one run
TYPES = ("a.b", "a.c", "c", "a.b.d")


class Clients:
    """The producers of all accounts."""

    def __init__(self, world: "World", rng: Random) -> None:
        self._world = world
        self._rng = rng
        self._serial = 0
        self._used: list[Draft] = []  # with keys
        self._open = 0
        self.every = rng.choice((0.15, 0.4, 1.0))
        self.is_over = False
        self.has_ended = False

    @property
    def is_done(self) -> bool:
        return self.has_ended and not self._open

    async def run(self) -> None:
        """Publish until the end of the run, sometimes in bursts."""
        rng = self._rng
        while not self.is_over:
            await asyncio.sleep(rng.expovariate(1 / self.every))
            for _ in range(rng.choice((1, 1, 1, 1, 1, 1, 1, 8))):
                if not self.is_over and self._serial < MOST:
                    self._begin([self._draft() for _ in range(rng.choice((1, 1, 1, 1, 3)))])
        self.has_ended = True

    def _draft(self) -> Draft:
        rng = self._rng
        if self._used and rng.random() < 0.15:
            again = rng.choice(self._used[-30:])
            if rng.random() < 0.2:
                return Draft(again.type, b'{"other": true}', again.account, again.idempotency_key)
            return again
        self._serial += 1
        body: dict[str, object] = {"n": self._serial}
        if rng.random() < 0.03:
            body["filler"] = "x" * 20_000
        at = self._world.database.now() + rng.uniform(-1.0, 6.0) if rng.random() < 0.1 else None
        key = f"key-{self._serial}" if rng.random() < 0.6 else None
        draft = Draft(
            rng.choice(TYPES),
            json.dumps(body).encode(),
            rng.choice(self._world.operators.accounts),
            key,
            at,
        )
        if key is not None:
            self._used.append(draft)
        return draft

    def _begin(self, drafts: list[Draft]) -> None:
        self._open += 1
        self._world.loop.create_task(self._publish(drafts), context=self._world.owner.context)
        if drafts[0].idempotency_key is not None and self._rng.random() < 0.08:
            # The same event at the same time at another process: an impatient client, or two clients.
            self._open += 1
            self._world.loop.create_task(self._publish(drafts[:1]), context=self._world.owner.context)

    async def _publish(self, drafts: list[Draft]) -> None:
        left = drafts
        while left:
            results = await self._try(left)
            if results is None:
                left = [draft for draft in left if draft.idempotency_key is not None]
                await asyncio.sleep(self._rng.uniform(0.1, 1.0))
                continue
            for draft, result in zip(left, results, strict=True):
                if isinstance(result, Published):
                    self._world.log("ack", result.id.hex(), result.deliveries, result.duplicate)
                    self._world.checks.acknowledged(draft, result)
                elif isinstance(result, IdempotencyConflict):
                    self._world.checks.conflicted(draft)
                else:
                    self._world.fail("unexpected", f"a draft was refused: {result!r}")
            left = []
        self._open -= 1

    async def _try(self, drafts: list[Draft]) -> list[Published | HooklineError] | None:
        """The answers; None if there was none."""
        up = [process for process in self._world.processes if process.is_up]
        if not up:
            return None
        process = self._rng.choice(up)
        try:
            async with asyncio.timeout(6.0):
                return await process.ask(lambda hooks: hooks.accept(drafts))  # type: ignore[no-any-return]
        except (HooklineError, Died, TimeoutError):
            return None
