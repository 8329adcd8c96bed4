"""Checks whether a delivery may be sent now.

The check runs when a process gives the delivery a slot. Rate and circuit are decided then, however much later the
first byte is sent.
"""

from collections import defaultdict
from typing import TYPE_CHECKING, NamedTuple

from hookline.pipeline.lanes.lane import Lane
from hookline.rules.slots import LaneHealth, shares
from hookline.store.contract import Loaded
from tests.sim.clock import EPOCH, TICK

if TYPE_CHECKING:
    from tests.sim.commits import Commits
    from tests.sim.process import Process
    from tests.sim.receivers import Receipt
    from tests.sim.world import World

LONG_QUIET = 20.0  # seconds since the last fault: dead workers are buried, and their lanes are taken
ON_THE_WAY = 0.03  # seconds that calls to the store take, with nothing wrong
FRESH = 1.0  # seconds that a worker may act on what its last pulse told it


class Admission(NamedTuple):
    """A slot given to a delivery."""

    at: float
    is_probe: bool


class Probe:
    """What is known of a circuit's probe."""

    def __init__(self, written_at: float) -> None:
        self.written_at = written_at
        self.receipt: Receipt | None = None

    def has_closed(self) -> bool:
        """Whether its last answer closes a circuit."""
        receipt = self.receipt
        return (
            receipt is not None
            and receipt.seen
            and receipt.replied is not None
            and receipt.replied < 500
            and receipt.replied != 429
        )


class Admissions:
    """The checks of an admission, and the last one of every delivery in every process."""

    def __init__(self, world: "World", commits: "Commits") -> None:
        self._world = world
        self._commits = commits
        self._rows = world.database.shadow.rows
        self._last: dict[tuple[Process, bytes], Admission] = {}
        self._spent: dict[bytes, list[tuple[float, float]]] = defaultdict(list)  # bucket's time, world's time
        self._probes: dict[bytes, Probe] = {}
        self._unproven: set[bytes] = set()  # endpoints that were ever slow or did not answer
        self._answered_at: dict[bytes, float] = {}  # endpoints, last
        self._crowded_at: dict[Process, float] = {}  # when a class may last have had all its slots

    def admitted(self, process: "Process", lane: Lane, delivery: Loaded, *, is_probe: bool) -> None:
        """A process is about to send a delivery."""
        at = self._world.loop.time()
        self._last[process, delivery.id] = Admission(at, is_probe)
        self._time(process)
        stored = self._rows["lanes"][lane.endpoint_id]
        if (stored["owner"], stored["epoch"]) == (process.worker_id, lane.epoch):
            # A pulse may have put its clock back, behind the true time, since a probe was granted by it.
            now = max(process.clock.now(), self._world.database.now())
            if stored["rest_until"] > now + TICK + process.skew:
                self._world.fail("rest", "a receiver that asked to be left alone is sent to")
            self._rate(process, lane.endpoint_id)
            self._circuit(lane.endpoint_id, is_probe=is_probe)
            self._soon(process, lane, delivery)
        self._count(process)
        self._large(process)

    def landed(self, process: "Process", lane: Lane) -> None:
        """A process is about to give a slot back."""
        self._answered_at[lane.endpoint_id] = self._world.loop.time()
        if lane.health in (LaneHealth.SLOW, LaneHealth.FAILING):
            self._unproven.add(lane.endpoint_id)
        self._count(process)

    def _count(self, process: "Process") -> None:
        dispatcher = process.hooks.worker.dispatcher
        if dispatcher.in_flight >= min(shares(dispatcher.slots)):
            self._crowded_at[process] = self._world.loop.time()

    def _large(self, process: "Process") -> None:
        """I20: large payloads under way are counted; no class has more than its share, no lane more than a quarter."""
        worker = process.hooks.worker
        memory = worker.dispatcher._memory
        known = [each for lane in worker.ownership.lanes.values() for each in lane.known.values()]
        sizes = [
            each.payload_bytes
            for each in known
            if each is not None and each.payload is None and each.id in worker._deliverer.under_way
        ]
        if sum(sizes) > memory.held:
            self._world.fail(
                "I20 bounded memory", f"{sum(sizes)} bytes are under way, {memory.held} are counted"
            )
        one = max(sizes, default=0)  # a payload larger than a share is sent alone
        for health, share in zip(LaneHealth, shares(memory._budget), strict=True):
            if memory._held[health] > max(share, one) + (one if health is LaneHealth.PROVEN else 0):
                self._world.fail(
                    "I20 bounded memory",
                    f"{health.name} lanes hold {memory._held[health]} bytes, {share} is their share",
                )
        # Whoever changes its class begins with one payload in the new one.
        if any(held > memory._budget // 4 + one for held in memory._of_lane.values()):
            self._world.fail("I20 bounded memory", "a lane holds more than a quarter of the bytes")

    def _soon(self, process: "Process", lane: Lane, delivery: Loaded) -> None:
        """I19: with a slot free, what is due starts within a poll and a tenth of a second, while nothing goes wrong.

        Only for endpoints that always answered in time. The lanes of the others share a few buffers, and one lane's rows may
        be read only after another's are sent.
        """
        at = self._world.loop.time()
        row = self._rows["deliveries"].get(delivery.id)
        stored = self._rows["lanes"][lane.endpoint_id]
        endpoint = self._rows["endpoints"].get(lane.endpoint_id)
        if row is None or endpoint is None or at - self._world.faults.last_at < LONG_QUIET:
            return
        if lane.endpoint_id in self._unproven or delivery.payload is None:  # a large one waits for memory
            return
        if endpoint["rate_limit"] is not None or endpoint["ordering"] == "strict" or stored["suspect"]:
            return
        since = max(
            row["due_at"] - EPOCH,
            stored["hold_until"] - EPOCH,
            self._commits.unchanged_since(row),
            self._answered_at.get(lane.endpoint_id, 0.0),
            self._crowded_at.get(process, 0.0),
        )
        if at - since > self._world.settings.poll_s + 0.1 + ON_THE_WAY:
            self._world.fail(
                "I19 due discipline", f"{process.name} had a slot, and let a delivery wait {at - since:.3f} s"
            )

    def is_probe(self, process: "Process", delivery: bytes) -> bool:
        """Whether a delivery was last sent as its circuit's probe."""
        return self._last[process, delivery].is_probe

    def of(self, receipt: "Receipt", delivery: bytes) -> Admission:
        """The admission that a request began with."""
        admission = self._last[receipt.process, delivery]
        endpoint = self._rows["deliveries"][delivery]["endpoint_id"]
        if admission.is_probe and endpoint in self._probes:
            self._probes[endpoint].receipt = receipt
        return admission

    def _time(self, process: "Process") -> None:
        """I22: a process knows the store's time as exactly as its last pulse allows."""
        pulse = process.clock.pulse
        off = abs(process.clock.now() - self._world.database.now() - pulse.ahead)
        if off > pulse.doubt + TICK:
            self._world.fail(
                "I22 clock independence",
                f"{process.name} is {off:.6f} s off the store's time, its pulse took {2 * pulse.doubt:.6f} s",
            )

    def _rate(self, process: "Process", endpoint: bytes) -> None:
        """I11: any span of time has at most rate · length + burst requests, from all senders together.

        Time is the owner's view of the store's time, because that fills the bucket. Another check compares the two.
        """
        at = self._world.loop.time()
        spent = self._spent[endpoint]
        now = max(process.clock.now(), spent[-1][0]) if spent else process.clock.now()
        spent.append((now, at))
        for n, (begin, began) in enumerate(spent):
            limits = self._commits.limits_since(endpoint, began - FRESH - TICK)
            if None in limits:
                continue
            burst = max(limit["burst"] for limit in limits if limit is not None)
            rate = max(limit["per_second"] for limit in limits if limit is not None)
            allowed = rate * (now - begin + TICK) + burst
            if len(spent) - n > allowed:
                self._world.fail(
                    "I11 rate", f"{len(spent) - n} within {now - begin:.3f} s, allowed are {allowed:.2f}"
                )
                return

    def _circuit(self, endpoint: bytes, *, is_probe: bool) -> None:
        """I13: while the circuit is not closed, only one probe is sent per cooldown, and it is stored first."""
        lane = self._rows["lanes"][endpoint]
        # An operator closed it, and the owner has not stored that yet. A stopped owner learns of it when it continues.
        if self._commits.resets.get(endpoint, 0) > lane["applied"]:
            return
        written_at = self._commits.circuit_at.get(endpoint, float("-inf"))
        probe = self._probes.get(endpoint)
        is_known = probe is not None and probe.written_at == written_at
        if is_probe:
            if lane["circuit"] != "half_open":
                self._world.fail("I13 circuit", f"a probe is sent while the circuit is {lane['circuit']}")
            if probe is not None and is_known and probe.receipt is not None:
                self._world.fail("I13 circuit", "a second probe is sent")
            if not is_known:
                self._probes[endpoint] = Probe(written_at)
        elif lane["circuit"] == "open":
            self._world.fail("I13 circuit", "a request is admitted while the circuit is open")
        elif lane["circuit"] == "half_open" and not (probe is not None and is_known and probe.has_closed()):
            self._world.fail("I13 circuit", "a request is admitted that is not the probe")
