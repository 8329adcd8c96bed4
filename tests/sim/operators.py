"""The operators who change things while a simulated world runs.

Endpoints come, change and go; deliveries are retried, cancelled, replayed, discarded and pruned. Every request goes
to some process that is up, as over the API; one that fails is not repeated, except when the world is set up and when
it calms down.
"""

import asyncio
import base64
from collections.abc import Callable, Coroutine
from random import Random
from typing import TYPE_CHECKING, Any

from hookline.admin.secrets import RotationInput
from hookline.app import Hookline
from hookline.errors import HooklineError
from hookline.model import DeliveryId, EndpointId, EventId
from hookline.pipeline.maintenance.pruning import walk
from hookline.rules.retention import CutOffs
from hookline.store.contract import DeliveryFilter, JobKind
from hookline.validate.dead_letter_filter import Chosen
from tests.sim.process import Died
from tests.sim.receivers import PERSONALITIES

if TYPE_CHECKING:
    from tests.sim.world import World

KEPT_DONE, KEPT_DEAD = 6.0, 9.0  # seconds
Work = Callable[[Hookline], Coroutine[Any, Any, Any]]

POLICIES: tuple[dict[str, Any], ...] = (
    {"schedule": [0, 0.5, 1, 2], "jitter": "full"},
    {"schedule": [0, 0.3, 1.5, 3, 5], "jitter": "equal"},
    {"schedule": [0, 1, 2], "jitter": "none"},
    {"base": 0.5, "factor": 2, "cap": 3, "attempts": 5, "jitter": {"below": 0.1, "above": 0.2}},
    {"schedule": [0, 4, 4, 4], "jitter": "full"},
)
CIRCUITS: tuple[dict[str, Any] | None, ...] = (
    {"consecutive_failures": 3, "failure_rate": 0.9, "window_s": 10, "min_attempts": 8, "cooldown_s": 2, "max_cooldown_s": 6},
    {"consecutive_failures": 50, "failure_rate": 0.5, "window_s": 10, "min_attempts": 4, "cooldown_s": 3, "max_cooldown_s": 3},
    None,
)  # fmt: skip


class Operators:
    """Operators."""

    def __init__(self, world: "World", rng: Random) -> None:
        self._world = world
        self._rng = rng
        self._places = 0
        self.accounts = [f"acc{n}" for n in range(rng.randrange(1, 5))]
        self.timeouts: dict[int, float] = {}
        self.strains = rng.random() < 0.7  # whether endpoints have limits and strict order
        self.is_done = False
        self._every = rng.choice((0.5, 1.5, 4.0))
        self.always: dict[str, Any] = {}  # what every endpoint has
        self.prunes = 0.2  # the part of what they do
        self.least = 0  # endpoints to begin with
        self.mood: str | None = None  # of every endpoint, at all times

    # --- life ---

    async def furnish(self) -> None:
        """Endpoints to begin with."""
        for _ in range(max(self._rng.randrange(2, 7), self.least)):
            await self._insist(lambda: self._create())

    async def run(self) -> None:
        """Change things now and then."""
        while not self._world.faults.is_over:
            await asyncio.sleep(self._rng.expovariate(1 / self._every))
            if self._world.faults.is_over:
                return
            if self._rng.random() < 0.25 and self.mood is None:
                self._change_mood()
            work = self._choose()
            if work is not None:
                await self._once(work)

    async def calm_down(self) -> None:
        """Enable all endpoints and remove their limits, so that every delivery can finish."""

        async def insist() -> None:
            while True:
                rows = self._world.database.shadow.rows["endpoints"]
                shut = [
                    EndpointId(id)
                    for id, row in rows.items()
                    if not row["enabled"] or row["paused"] or row["rate_limit"] is not None
                ]
                if not shut:
                    self.is_done = True
                    return
                for id in shut:
                    await self._once(
                        lambda hooks, id=id: hooks.endpoints.update(  # type: ignore[misc]
                            id, {"enabled": True, "paused": False, "rate_limit": None}
                        )
                    )
                await asyncio.sleep(0.5)

        # An earlier 410 may disable it again: check until the end.
        async def stay() -> None:
            while True:
                await insist()
                await asyncio.sleep(1.0)

        self._world.loop.create_task(stay(), context=self._world.owner.context)

    async def _once(self, work: Work) -> bool:
        """Send a request to some process; returns whether it succeeded."""
        up = [process for process in self._world.processes if process.is_up]
        if not up:
            await asyncio.sleep(0.2)
            return False
        answer = self._rng.choice(up).ask(work)
        try:
            async with asyncio.timeout(5.0):
                await answer
        except (HooklineError, Died, TimeoutError):
            return False
        return True

    async def _insist(self, work: Callable[[], Work]) -> None:
        while not await self._once(work()):
            await self._world.moment(0.3)

    # --- what they do ---

    def _create(self) -> Work:
        rng = self._rng
        place, self._places = self._places, self._places + 1
        seconds = rng.choice((1, 1, 2, 3))
        self.timeouts[place] = float(seconds)
        self._world.receivers.moods[place] = rng.choice(("ok", "ok", "ok", *PERSONALITIES))
        fields = {
            "url": f"http://h{place}.sim/{place}",
            "events": rng.choice((["*"], ["a.*"], ["a.b"], ["a.b", "c"])),
            "account": rng.choice(self.accounts),
            "secret": new_secret(rng),
            "timeout_ms": seconds * 1_000,
            "max_in_flight": rng.choice((1, 2, 3, 5)),
            "retry": rng.choice(POLICIES),
            "circuit": rng.choice(CIRCUITS),
        }
        if self.strains and rng.random() < 0.3:
            fields["ordering"] = "strict"
        if self.strains and rng.random() < 0.3:
            fields["rate_limit"] = {"per_second": rng.choice((2, 5)), "burst": rng.choice((1, 3))}
        fields |= self.always
        if self.mood is not None:
            self._world.receivers.moods[place] = self.mood
        return lambda hooks: hooks.endpoints.create(fields)

    def _change_mood(self) -> None:
        moods = self._world.receivers.moods
        place = self._rng.choice(list(moods))
        moods[place] = self._rng.choice(("ok", "ok", *PERSONALITIES))
        self._world.log("mood", place, moods[place])
        self._world.checks.mood_changed(place)

    def _choose(self) -> Work | None:
        rng = self._rng
        rows = self._world.database.shadow.rows
        if "config" in self._world.faults.on and rng.random() < 0.4 and rows["endpoints"]:
            self._world.faults.happened("config")
            return self._configure(EndpointId(rng.choice(list(rows["endpoints"]))))
        if rng.random() < self.prunes:
            return self._prune()
        if not rows["deliveries"]:
            return None
        # Ended ones are as likely as pending ones, however many there are of each.
        state = rng.choice(("pending", "delivered", "dead", "cancelled", "dead"))
        found = [id for id, row in rows["deliveries"].items() if row["state"] == state]
        if not found:
            return None
        return self._handle(DeliveryId(rng.choice(found[-20:])), state)

    def _configure(self, id: EndpointId) -> Work:
        rng = self._rng
        row = self._world.database.shadow.rows["endpoints"][id]
        patch: dict[str, Any]
        match rng.randrange(10):
            case 0:
                return lambda hooks: hooks.endpoints.delete(id)
            case 1:
                return self._create()
            case 2:
                patch = {"paused": not row["paused"]}
            case 3:
                patch = {"enabled": not row["enabled"]}
            case 4:
                patch = {"url": f"{row['url'].partition('?')[0]}?v={rng.randrange(100)}"}
            case 5:
                patch = {"max_in_flight": rng.choice((1, 2, 4))}
            case 6:
                patch = {"rate_limit": rng.choice((None, {"per_second": 3, "burst": 2}))}
            case 7:
                patch = {"ordering": rng.choice(("strict", "parallel"))}
            case 8:
                return lambda hooks: hooks.endpoints.reset_circuit(id)
            case _:
                asked = RotationInput(overlap_s=rng.choice((0, 5)), secret=new_secret(rng))
                return lambda hooks: hooks.rotation.rotate(id, asked)
        return lambda hooks: hooks.endpoints.update(id, patch)

    def _handle(self, id: DeliveryId, state: str) -> Work:
        rng = self._rng
        event = EventId((int.from_bytes(id) >> 20 << 20).to_bytes(16))
        if state == "pending":
            if rng.random() < 0.5:
                return lambda hooks: hooks.deliveries.retry(id)
            return lambda hooks: hooks.deliveries.cancel(id)
        if state == "dead":
            match rng.randrange(4):
                case 0:
                    return lambda hooks: hooks.dead_letters.discard(id)
                case 1:
                    return lambda hooks: hooks.dead_letters.replay(id)
                case 2:
                    kind = rng.choice((JobKind.REPLAY, JobKind.DISCARD))
                    account = rng.choice(self.accounts)
                    chosen = Chosen(filter=DeliveryFilter(account=account), ids=())
                    return lambda hooks: hooks.dead_letters.start_job(kind, chosen)
        return lambda hooks: hooks.deliveries.replay_event(event)

    def _prune(self) -> Work:
        now = self._world.database.now()
        before = CutOffs(now - KEPT_DONE, now - KEPT_DEAD)
        step = self._rng.choice((1, 3, 50))

        async def prune(hooks: Hookline) -> None:
            async for _ in walk(hooks.store, hooks.clock, before, most=step):
                pass

        return prune


def new_secret(rng: Random) -> str:
    return "whsec_" + base64.b64encode(rng.randbytes(24)).decode()
