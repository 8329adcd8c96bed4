"""Rows: thousands of receivers that never end an answer, or send far too much."""

import json
import time
from collections import Counter
from typing import Any

from tests.chaos.checker import Limits
from tests.chaos.database import End
from tests.chaos.figures import percentile
from tests.chaos.process import wait_for
from tests.chaos.row import BOTH, Row, publish_each, size
from tests.chaos.scene import ENDPOINT, IN_FLIGHT, Scene
from tests.chaos.system import System

HEALTHY = 4  # endpoints
TIMEOUT_S = 1.0
LATE_S = 0.2  # a slot may be free so long after its deadline
# What each attempt's status and error must be: nothing of an answer that never began, or the answer's.
ENDS: dict[str, tuple[int | None, str | None]] = {
    "hang": (None, "timeout"),
    "drip": (200, "timeout"),
    "flood": (200, None),
    "bomb": (200, None),
}
# What an attempt ends with whose second is over before this machine came to it.
STARVED = {(None, "connect_timeout"), (None, "timeout"), (200, "timeout")}
POLITE = (200, None)  # of the first to each
MOST_KEPT = 4_096  # bytes of a response
MOST_TAKEN = 32 << 20  # of a gigabyte: what is read, and what two sockets hold
MORE_TASKS, MORE_MB = 5, 30.0
ONCE = {"schedule": [0], "jitter": "none"}


class Besieged(System):
    """The usual, and a receiver that means harm."""

    def _start(self) -> None:
        super()._start()
        self._hostile = self._helper("hostile.py", self.folder / "hostile")
        port = int(self._hears())
        self.of_each = size(self, 50, 1_000)
        self.types = [f"hostile.{manner}.n{n}" for n in range(self.of_each) for manner in ENDS]
        for each in self.types:
            _, manner, n = each.split(".")
            self.create_hostile(f"http://127.0.0.1:{port}/{manner}/{n}", each)
        self.healthy = size(self, 40, 500)
        self.rounds = 0
        self.before: tuple[int, float] | None = None  # tasks and memory after polite answers

    def create_hostile(self, url: str, type: str) -> None:
        fields = {"timeout_ms": int(1_000 * TIMEOUT_S), "retry": ONCE, "circuit": None}
        status, answer = self.call("POST", "/v1/endpoints", {"url": url, "events": [type], **fields})
        if status != 201:
            raise RuntimeError(f"an endpoint was refused: {answer}")

    def hostilities(self) -> dict[str, dict[str, Any]]:
        """What the hostile receiver counted, by manner."""
        assert self._hostile.stdin is not None
        self._hostile.stdin.write("\n")
        self._hostile.stdin.flush()
        return dict(json.loads(self._hears()))

    def _hears(self) -> str:
        assert self._hostile.stdout is not None
        return self._hostile.stdout.readline().strip()


def besiege(system: System) -> list[str]:
    """F22: receivers that hang, drip, send a gigabyte or a bomb, beside some that do not."""
    assert isinstance(system, Besieged)
    [sender] = system.senders
    if system.before is None:
        # All endpoints are known and were answered once: what that costs is not the hostile ones' doing.
        publish_each(system, system.types, manner="polite")
        _serve_the_healthy(system, system.healthy)
        if not system.is_drained(60):
            return ["not drained"]
        system.before = system.tasks(sender), system.rss_mb(sender)
        # Thousands that were fine turn hostile at one moment. The others may wait until that is noticed.
        waited, _, left = _siege(system)
        system.worst("healthy_p99_as_they_turn_ms", 1e3 * percentile(waited, 0.99))
        if left:
            return left
    waited, are_beside, left = _siege(system)
    if left:
        return left
    system.worst("healthy_p99_ms", 1e3 * percentile(waited, 0.99))
    wrong = [] if are_beside else ["healthy: none was served before all hostile ones had ended"]
    wrong += _judge_ends(system)
    return wrong + _judge_what_is_left(system)


def _siege(system: Besieged) -> tuple[list[float], bool, list[str]]:
    """One event for each hostile endpoint, and some for the others: what they waited, and what never ended."""
    system.rounds += 1
    before = system.hostilities()["hang"]["began"]
    publish_each(system, system.types, round=system.rounds)
    wait_for(lambda: system.hostilities()["hang"]["began"] > before, "a request that hangs")
    waited, are_beside = _serve_the_healthy(system, system.healthy)
    # Half of them keep a slot for as long as their timeout, and together they get a quarter of the slots.
    if system.is_drained(30 + 2 * system.of_each * TIMEOUT_S / (IN_FLIGHT / 4)):
        return waited, are_beside, []
    left = Counter(_manner(each) for each in _hostile(system) if each.state == "pending")
    return waited, are_beside, [f"slots: attempts at {dict(sorted(left.items()))} never ended"]


def _serve_the_healthy(system: Besieged, count: int) -> tuple[list[float], bool]:
    """How long each took from its acceptance, and whether hostile ones were under way when the first had arrived."""
    began = time.time()
    before = len(system.receipts())
    system.publish(count)
    wait_for(lambda: len(system.receipts()) > before, "a healthy event")
    still_open = system.database.pending() > 0 and system.hostilities()["hang"]["open"] > 0
    system.published()
    acks = {line["id"]: line["at"] for line in system.promises() if line["did"] == "ack"}
    mine = {id for id, at in acks.items() if at >= began}
    wait_for(lambda: mine <= {each.id for each in system.receipts()}, "the healthy events")
    arrived = {each.id: each.began for each in reversed(system.receipts())}
    return [max(0.0, arrived[id] - acks[id]) for id in mine], still_open


def _manner(end: End) -> str:
    return end.url.split("/")[3]


def _hostile(system: System) -> list[End]:
    return [each for each in system.database.ends() if _manner(each) in ENDS]


def _judge_ends(system: Besieged) -> list[str]:
    """Every attempt has its kind of end, at its deadline, and little was read and kept."""
    ends, each_of = _hostile(system), system.rounds * system.of_each
    wrong = []
    for manner, expected in ENDS.items():
        found = Counter((each.status, each.error) for each in ends if _manner(each) == manner)
        found.subtract({POLITE: system.of_each})
        late = sum(found[each] for each in STARVED - {expected})
        system.worst("starved", late)
        if found[expected] + late != each_of or found.total() != each_of or late > each_of // 2:
            wrong.append(f"ends: of {each_of} that {manner}: {dict(+found)}, expected {expected}")
    kept = max(each.kept_bytes for each in ends)
    if kept > MOST_KEPT:
        wrong.append(f"kept: {kept} bytes of a response, allowed {MOST_KEPT}")
    counted = system.hostilities()
    taken = counted["flood"]["most_bytes"]
    system.worst("taken_mb", taken / 1e6)
    if taken > MOST_TAKEN:
        wrong.append(f"taken: {taken:,} bytes of a gigabyte, allowed {MOST_TAKEN:,}")
    unmet = Counter(_manner(each) for each in ends if each.error == "connect_timeout")
    began = {manner: counted[manner]["began"] for manner in ENDS}
    if any(not each_of - unmet[manner] <= count <= each_of for manner, count in began.items()):
        wrong.append(f"began: {began}, expected {each_of} each but for {dict(unmet)}")
    at_once = counted["all"]["most_at_once"]
    system.worst("at_once", at_once)
    if at_once > IN_FLIGHT:
        wrong.append(f"slots: {at_once} requests at once, allowed {IN_FLIGHT}")
    slot = max(each.duration or 0.0 for each in ends)
    system.worst("slot_s", slot)
    if slot > (TIMEOUT_S + LATE_S) * system.leeway:
        wrong.append(f"slots: one was held for {slot:.2f} s, allowed {TIMEOUT_S + LATE_S:g}")
    return wrong


def _judge_what_is_left(system: Besieged) -> list[str]:
    """Neither connections nor tasks nor memory."""
    [sender] = system.senders
    assert system.before is not None
    tasks_before, mb_before = system.before
    wrong = []

    def has_little_left() -> bool:
        tasks, connections, idle = system.counts(sender)
        is_open = system.hostilities()["all"]["open"] > 0
        return not is_open and connections <= idle and tasks <= tasks_before + MORE_TASKS

    try:
        wait_for(has_little_left, "the end of what was under way", min(5.0 * system.patience, 60.0))
    except TimeoutError:
        tasks, connections, idle = system.counts(sender)
        wrong.append(
            f"left: {tasks} tasks ({tasks_before} before), {connections} connections of which {idle} are idle,"
            f" {system.hostilities()['all']['open']} open at the receiver"
        )
    more_mb = system.rss_mb(sender) - mb_before
    system.worst("more_mb", more_mb)
    if more_mb > MORE_MB:
        wrong.append(f"memory: {more_mb:.1f} MB more than before, allowed {MORE_MB:g}")
    return wrong


ROWS = {
    "F22": Row(
        "receivers that hang, drip, send a gigabyte or a bomb",
        BOTH,
        1,
        "timeout-of-each-read",
        "slots",
        besiege,
        Limits(deaths=frozenset({"exhausted"})),
        Scene(workers=1, endpoints=HEALTHY, endpoint=ENDPOINT, slowest_s=0.05),
        everyday=True,
        system=Besieged,
    ),
}
