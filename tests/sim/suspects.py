"""Checks that every death of a worker is counted under the deliveries that it had under way.

A mark is stored before the delivery is sent again. A delivery with four marks is given up, so that one delivery kills at
most five workers: the first one without a mark.
"""

from typing import TYPE_CHECKING

from hookline.rules.crash_suspects import CRASH_LIMIT

if TYPE_CHECKING:
    from tests.sim.commits import Commits
    from tests.sim.receivers import Receipt
    from tests.sim.shadow import Row
    from tests.sim.world import World


class Suspects:
    """I6: the crash budget."""

    def __init__(self, world: "World", commits: "Commits") -> None:
        self._world = world
        self._commits = commits

    def started(self, receipt: "Receipt", delivery: bytes, row: "Row") -> None:
        """A request begins, by the lane's owner."""
        if row["marks"] > CRASH_LIMIT:
            self._world.fail("I6 crash budget", f"a delivery is sent with {row['marks']} marks")
        lost = {
            before.worker
            for before in self._commits.started_of[delivery]
            if (before.number, before.replays) == (receipt.number, receipt.replays)
            and before.worker != receipt.worker
            and (before.process.owner.is_dropped or before.worker in self._commits.buried)
        }
        # In strict order only the first is taken for what was under way, which may have been one that was scheduled.
        if len(lost) > row["marks"] and not self._commits.was_strict(row["endpoint_id"]):
            self._world.fail(
                "I6 crash budget",
                f"{receipt.process.name} sends with {row['marks']} marks what {len(lost)} workers were lost under, after "
                f"{list(self._commits.lane_log[row['endpoint_id']])}",
            )
