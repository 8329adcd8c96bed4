"""Checks what should have happened by now.

The checks run every second, and when the faults are over and everything has come to rest.
"""

import math
from collections import defaultdict
from typing import TYPE_CHECKING

from hookline.ids import event_of, show
from hookline.rules.slots import LaneHealth, depth
from hookline.store.contract import INLINE_PAYLOAD_BYTES
from tests.sim.store import at_once

if TYPE_CHECKING:
    from tests.sim.commits import Commits
    from tests.sim.process import Process
    from tests.sim.starts import Starts
    from tests.sim.world import World

SETTLED_DOWN = (
    12.0  # seconds after a fault: dead workers are buried, their lanes are taken, their circuits probed
)
LONGEST_SLEEP = 12.0  # seconds that a free lane may sleep with work to do, while nothing goes wrong
LONGEST_WAIT = 8.0  # seconds that a due delivery of a healthy endpoint may wait, while nothing goes wrong
LONGEST_REQUEST = 8.0  # seconds from a slot to an acknowledged settlement, with a store that is slow
ENOUGH_DRAWS = 16
ENOUGH_ALIKE, ALIKE = 8, 0.06  # by chance once in fifty million runs


class Progress:
    """Checks that nothing is overdue."""

    def __init__(self, world: "World", commits: "Commits", starts: "Starts") -> None:
        self._world = world
        self._commits = commits
        self._starts = starts
        self._rows = world.database.shadow.rows
        self._asleep: dict[bytes, float] = {}
        self._moods: dict[int, float] = {}

    def _fail(self, invariant: str, detail: str) -> None:
        self._world.fail(invariant, detail)

    def mood_changed(self, place: int) -> None:
        self._moods[place] = self._world.loop.time()

    def look(self) -> None:
        """Every second."""
        self._wake_ups()
        self._waits()
        for process in self._world.processes:
            if process.is_up and process.delivers:
                self._memory(process)

    def _wake_ups(self) -> None:
        """A free lane wakes no later than its first delivery could be sent, or some process is about to wake it."""
        now, at = self._world.database.now(), self._world.loop.time()
        dues: dict[bytes, float] = {}
        for row in self._rows["deliveries"].values():
            if row["state"] == "pending":
                id = row["endpoint_id"]
                dues[id] = min(dues.get(id, math.inf), row["due_at"])
        asleep: dict[bytes, float] = {}
        for id, lane in self._rows["lanes"].items():
            if lane["owner"] is None and not lane["paused"] and not lane["deleted"] and id in dues:
                first = max(dues[id], lane["hold_until"], now - 1.0)
                if first <= now and lane["wake_at"] > now:
                    asleep[id] = self._asleep.get(id, at)
                    if at - max(asleep[id], self._world.faults.last_at) > LONGEST_SLEEP:
                        self._fail(
                            "no lost wake-up",
                            f"a lane slept {at - asleep[id]:.1f} s with work to do: {self._lane(id)}, "
                            f"after {list(self._commits.lane_log[id])}",
                        )
        self._asleep = asleep

    def _waits(self) -> None:
        """I14: a healthy endpoint's deliveries do not wait for failing ones."""
        at, now = self._world.loop.time(), self._world.database.now()
        if at - self._world.faults.last_at < SETTLED_DOWN + LONGEST_WAIT:
            return
        for row in self._rows["deliveries"].values():
            if row["state"] != "pending" or now - row["due_at"] <= LONGEST_WAIT:
                continue
            endpoint = self._rows["endpoints"].get(row["endpoint_id"])
            lane = self._rows["lanes"][row["endpoint_id"]]
            if (
                endpoint is None
                or row["endpoint_id"] in self._commits.shut_at
                or endpoint["rate_limit"] is not None
                or endpoint["ordering"] == "strict"
                or lane["circuit"] != "closed"
                or lane["hold_until"] > now - LONGEST_WAIT
            ):
                continue
            place = int(endpoint["url"].rpartition("/")[2].partition("?")[0])
            mood = self._world.receivers.moods.get(place)
            if mood == "ok" and at - self._moods.get(place, -math.inf) > SETTLED_DOWN + LONGEST_WAIT:
                self._fail(
                    "I14 progress", f"a healthy endpoint waits {now - row['due_at']:.1f} s for its turn"
                )

    def _memory(self, process: "Process") -> None:
        """I20: memory holds no more than slots and caps allow, and the counts are right."""
        worker = process.hooks.worker
        lanes = list(worker.ownership.lanes.values())
        for health in LaneHealth:
            # What waits for its host, or for memory, is not counted with what the others hold.
            held = sum(len(lane.known) for lane in lanes if lane.health is health and lane.parked_at is None)
            counted = worker.ownership.buffers.counts[health]
            if held != counted:
                self._fail(
                    "I20 bounded memory", f"{process.name} holds {held} {health.name}, counts {counted}"
                )
        held = sum(len(lane.known) for lane in lanes)
        # What each class may hold, in each of the two queues; and there is always room for a head.
        heads = sum(lane.is_strict for lane in lanes)
        if held > 2 * sum(worker.ownership.buffers._limits) + heads:
            self._fail("I20 bounded memory", f"{process.name} holds {held} deliveries")
        for lane in lanes:
            # Its depth in each of the two queues: they are asked for at the same time. In strict order what waits is little.
            # After an operator lowers the cap, the surplus stays in flight until its requests end.
            caps = self._commits.caps_since(lane.endpoint_id, self._world.loop.time() - LONGEST_REQUEST)
            waiting = len(lane.ready) + len(lane.timed)
            if len(lane.known) > 2 * depth(max(caps), is_strict=False) or (
                lane.is_strict and waiting > 4 * max(caps)
            ):
                self._fail("I20 bounded memory", f"{process.name} holds {len(lane.known)} of one lane")
            payloads = [each.payload for each in lane.known.values() if each is not None]
            if any(payload is not None and len(payload) > INLINE_PAYLOAD_BYTES for payload in payloads):
                self._fail(
                    "I20 bounded memory", f"{process.name} keeps a large payload that is not under way"
                )
        if worker.dispatcher.in_flight > worker.dispatcher.slots or worker.dispatcher.in_flight < 0:
            self._fail("I20 bounded memory", f"{worker.dispatcher.in_flight} slots in use")

    # --- the end ---

    def unfinished(self) -> None:
        """I1: an accepted delivery did not finish."""
        pending = [row for row in self._rows["deliveries"].values() if row["state"] == "pending"]
        shown = [
            f"{show('delivery', row['id'])} {row['queue']} due {row['due_at'] - self._world.database.now():+.1f} "
            f"attempts {row['attempts']} marks {row['marks']} lane {self._lane(row['endpoint_id'])}"
            for row in pending[:3]
        ]
        waiting = "" if self._world.clients.is_done else "; clients still wait for answers"
        if rows := self._world.checks.outbox.waiting:
            waiting += f"; {rows} rows wait in the outbox"
        self._fail("I1 no loss", f"{len(pending)} deliveries did not come to their end{waiting}: {shown}")

    def _lane(self, id: bytes) -> str:
        lane = dict(self._rows["lanes"][id])
        now = self._world.database.now()
        for name in ("wake_at", "hold_until", "opened_at", "probe_at", "tokens_at"):
            if lane[name] is not None:
                lane[name] = round(lane[name] - now, 3)
        alive = {process.worker_id: process.name for process in self._world.processes}
        lane["owner"] = alive.get(lane["owner"], lane["owner"])
        lane["is_enabled"] = id in self._rows["endpoints"] and id not in self._commits.shut_at
        del lane["endpoint_id"]
        return str(lane)

    def at_rest(self) -> None:
        """Check the totals after everything has finished."""
        if wrong := self._world.database.shadow.differences():
            self._fail("shadow", f"the copy of {wrong} is not what is stored")
        self._conservation()
        self._attempts()
        self._receipts()
        self._jitter()

    def _conservation(self) -> None:
        """I18: API and rows agree on where every delivery is."""
        store = self._world.database.store
        conservation = at_once(store.conservation())
        states: dict[str, int] = defaultdict(int)
        for row in self._rows["deliveries"].values():
            states[row["state"]] += 1
        counts = {state.value: count for state, count in at_once(store.counts()).items() if count}
        if counts != states:
            self._fail("I18 conservation", f"counted {counts}, there are {dict(states)}")
        accepted = len(self._rows["deliveries"]) + sum(self._commits.pruned.values())
        if conservation.accepted != accepted:
            self._fail("I18 conservation", f"accepted {conservation.accepted}, there were {accepted}")
        for id, published in self._commits.acknowledgements.items():
            if id not in self._rows["events"]:
                self._fail("I1 no loss", f"{show('event', id)} was acknowledged and is gone")
            there = [key for key in self._commits.deliveries_of if key[0] == id]
            # An interrupted pruning leaves an event without some of its deliveries.
            if len(there) + self._commits.pruned_of[id] != published.deliveries:
                self._fail("I1 no loss", f"{show('event', id)} lost a delivery")

    def _attempts(self) -> None:
        """I5, I6: every finished delivery has the attempts that its state implies."""
        counted: dict[tuple[bytes, int], list[bool]] = defaultdict(list)
        for row in self._rows["attempts"].values():
            if not row["late"]:
                counted[row["delivery_id"], row["replays"]].append(row["outcome"] == "accepted")
        for row in self._rows["deliveries"].values():
            tried = counted[row["id"], row["replays"]]
            if len(tried) != row["attempts"]:
                self._fail("I6 attempt bound", f"{row['attempts']} attempts are counted, {len(tried)} kept")
            if (row["state"] == "delivered") != any(tried):
                self._fail("I5 delivered", f"{row['state']} with answers {tried}")

    def _receipts(self) -> None:
        """I7: every request beyond the settled attempts had an owner that was lost, or met a closed connection."""
        kept: dict[bytes, int] = defaultdict(int)
        for row in self._rows["attempts"].values():
            kept[row["delivery_id"]] += 1
        for id, receipts in self._commits.started_of.items():
            if event_of(id) in self._commits.pruned_events or id not in self._rows["deliveries"]:
                continue
            unsettled = len(receipts) - kept[id]
            lost = sum(
                receipt.process.owner.is_dropped or receipt.worker in self._commits.buried
                for receipt in receipts
            )
            cut = sum(receipt.is_cut and receipt.was_reused for receipt in receipts)
            if unsettled > lost + cut:
                self._fail(
                    "I7 duplicates", f"{len(receipts)} requests, {kept[id]} attempts, {lost} lost owners"
                )

    def _jitter(self) -> None:
        """I10: waits are uniformly distributed (Kolmogorov–Smirnov, at a level that chance does not reach)."""
        draws = self._commits.draws
        if len(draws) >= ENOUGH_ALIKE and max(draws) - min(draws) < ALIKE:
            self._fail("I10 retry order", f"{len(draws)} waits are all alike")
        if len(self._commits.draws) >= ENOUGH_DRAWS:
            distance = ks_distance(self._commits.draws)
            if 2 * math.exp(-2 * len(self._commits.draws) * distance**2) < 1e-10:
                self._fail(
                    "I10 retry order",
                    f"{len(self._commits.draws)} waits are not drawn evenly ({distance:.2f})",
                )

    def left(self) -> None:
        """I24: after a drain nobody owns a lane and no worker is listed."""
        names = [process.name for process in self._world.processes]
        owned = [lane for lane in self._rows["lanes"].values() if lane["owner"] in self._world.left]
        listed = self._world.left & self._rows["workers"].keys()
        if owned or listed or names:
            self._fail(
                "I24 drain", f"{len(owned)} lanes owned, {len(listed)} workers listed, {names} still here"
            )


def ks_distance(draws: list[float]) -> float:
    """The distance of the draws from a uniform distribution over 0 to 1."""
    ordered = sorted(draws)
    n = len(ordered)
    return max(max((i + 1) / n - x, x - i / n) for i, x in enumerate(ordered))
