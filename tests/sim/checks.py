"""Runs the checks of promises, each at its time.

After every commit: what it changed (`commits`). Whenever a delivery gets a slot: `admissions`. At the first byte of
every request: whether it may begin (`starts`). When it is answered: what its sender concludes (`circuits`). At every
pulse: whether a lane is stuck (`stands`). Every second and at the end: what should have happened by now
(`progress`). A broken promise ends the run under its name in docs/simulation.md.
"""

import asyncio
from typing import TYPE_CHECKING, Any

from hookline.pipeline.intake.drafts import Draft, Published
from hookline.pipeline.lanes.lane import Lane
from hookline.store.contract import Loaded, Settlement
from tests.sim.admissions import Admissions
from tests.sim.circuits import Circuits
from tests.sim.commits import Commits
from tests.sim.outbox_rows import OutboxRows
from tests.sim.progress import Progress
from tests.sim.stands import Stands
from tests.sim.starts import Starts

if TYPE_CHECKING:
    from tests.sim.process import Process
    from tests.sim.receivers import Receipt
    from tests.sim.shadow import Change
    from tests.sim.store import Call
    from tests.sim.world import World

MOST_OVERDUE = 0.2  # seconds


class Checks:
    """Passes what the world reports to the checks."""

    def __init__(self, world: "World") -> None:
        self._world = world
        self.commits = Commits(world)
        self.outbox = OutboxRows(world, self.commits)
        self.admissions = Admissions(world, self.commits)
        self.circuits = Circuits(world)
        self.starts = Starts(world, self.commits, self.admissions)
        self.progress = Progress(world, self.commits, self.starts)
        self.stands = Stands(world)

    @property
    def draws(self) -> list[float]:
        return self.commits.draws

    def before(self, call: "Call") -> None:
        self.commits.before(call)
        if call.name == "pulse":
            self.stands.look(call.process)

    def after(self, call: "Call", result: Any, changes: "list[Change]") -> None:
        self.commits.after(call, result, changes)

    def admitted(self, process: "Process", lane: Lane, delivery: Loaded, *, is_probe: bool) -> None:
        self.admissions.admitted(process, lane, delivery, is_probe=is_probe)

    def landed(self, process: "Process", lane: Lane, settlement: Settlement) -> None:
        was_probe = self.admissions.is_probe(process, settlement.attempt.delivery_id)
        self.admissions.landed(process, lane)
        self.circuits.landed(process, lane, settlement, was_probe=was_probe)

    def answered(self, process: "Process", began: float, timeout: float) -> None:
        """A request ends 0.2 s after its deadline, whatever its receiver does; a stopped process sees to it later."""
        if process.owner.is_dropped:
            return  # it died before, and this is the end of the world
        overdue = self._world.loop.time() - max(began + timeout, process.went_on_at)
        if overdue > MOST_OVERDUE:
            self._world.fail("deadline", f"{process.name} ended a request {overdue:.3f} s after its deadline")

    def started(self, receipt: "Receipt") -> None:
        self.starts.started(receipt)

    def died(self, process: "Process") -> None:
        """Do nothing: what a dead process knew is unknown."""

    def mood_changed(self, place: int) -> None:
        self.progress.mood_changed(place)

    def acknowledged(self, draft: Draft, published: Published) -> None:
        self.commits.acknowledged(draft, published)

    def conflicted(self, draft: Draft) -> None:
        self.commits.conflicted(draft)

    async def run(self) -> None:
        """Run the checks of progress every second."""
        while True:
            await asyncio.sleep(1.0)
            self.progress.look()

    def unfinished(self) -> None:
        self.progress.unfinished()

    def at_rest(self) -> None:
        self.progress.at_rest()
        self.outbox.at_rest()

    def left(self) -> None:
        self.progress.left()
