"""Rows: clocks are wrong, and are set while hookline runs."""

import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tests.chaos import faketime
from tests.chaos.checker import Limits, Receipt
from tests.chaos.process import Process
from tests.chaos.row import BOTH, BURST, Row, pause
from tests.chaos.scene import Scene
from tests.chaos.system import System
from tests.chaos.windows import most_within
from tests.postgres_server import PostgresServer, installations

HOUR, YEAR = 3_600.0, 365 * 86_400.0
OFFSETS = (HOUR, -HOUR, 10 * YEAR, 600.0, -600.0)
DATABASE_BACK_S = -5.0
RETRY_S = 0.25  # half of the schedule's wait: the store's time is known only as exactly as a read takes
FAILING = ("/0", "/1", "/2", "/3")  # their first attempts fail
RATED = "/4"
RATE, RATE_BURST = 4, 2
TAKEOVER_S = 12.0  # six times the default: here a lane that moves is a violation, also on a busy machine
HEARTBEAT_S = 1.2
CLOSE_S = 60.0  # every clock is set by at least ten minutes, except the database's
SEEN_S = 2.0  # until every process has noticed that its clock was set


class WrongClocks(System):
    """Every process has a wall clock of its own, the database too."""

    def __init__(self, folder: Path, **arguments: Any) -> None:
        folder.chmod(0o711)  # PostgreSQL runs as another user
        self.of_database = faketime.WallClock(folder / "database.clock")
        self._clocks: dict[str, faketime.WallClock] = {}
        super().__init__(folder, **arguments)

    def start_server(self) -> PostgresServer:
        server = PostgresServer(installations()[0], environment=self.of_database.environment)
        server.start()
        return server

    def settings(self, name: str) -> Mapping[str, str]:
        self._clocks[name] = faketime.WallClock(self.folder / f"{name}.clock")
        return {**super().settings(name), **self._clocks[name].environment}

    def clock(self, process: Process) -> faketime.WallClock:
        """The wall clock of a process."""
        return self._clocks[process.name]


def set_clocks(system: System) -> list[str]:
    """F21: every process's clock is set to another time while lanes are owned, the database's back by 5 s."""
    assert isinstance(system, WrongClocks)
    for path in FAILING:
        system.order(path=path, status=503, fails=1)
    limit = {"rate_limit": {"per_second": RATE, "burst": RATE_BURST}}
    system.call("PATCH", f"/v1/endpoints/{system.endpoints[int(RATED[1:])]}", limit)
    known = len(system.receipts())
    system.publish(BURST // 2)
    pause(system, 0.1, 0.6)
    system.note("clocks set", excuses=False)
    offsets = system.rng.sample(OFFSETS, len(OFFSETS))
    for process, offset in zip(system.hooklines, offsets, strict=False):
        system.clock(process).set(offset)
    system.of_database.set(DATABASE_BACK_S)
    system.published()
    time.sleep(SEEN_S)
    system.publish(BURST // 2)
    system.published()
    wrong = [] if system.is_drained() else ["not drained"]
    wrong += _only_signatures_are_off(system, system.receipts()[known:])
    for process in system.hooklines:
        system.clock(process).set(0.0)
    system.of_database.set(0.0)
    time.sleep(SEEN_S)
    return wrong


def _only_signatures_are_off(system: WrongClocks, receipts: list[Receipt]) -> list[str]:
    wrong = []
    signed_off = 0
    for process in system.senders:
        offset = system.clock(process).offset
        ahead = [each.stamp - each.began for each in receipts if each.by == process.name]
        signed_off += sum(abs(each - offset) < CLOSE_S for each in ahead)
        if strange := sum(min(abs(each), abs(each - offset)) > CLOSE_S for each in ahead):
            wrong.append(f"clock: {process.name} signed {strange} with neither of its times")
        if "clock.skewed" not in process.log:
            wrong.append(f"clock: {process.name} says nothing of its own")
    system.worst("signed_off", signed_off)
    if not signed_off:
        wrong.append("clock: no signature has a time that was set, so nothing was tried")
    starts = system.database.starts()
    began = {(each.id, each.attempt): each for each in receipts if (each.id, each.attempt) in starts}
    if dated := sum(abs(starts[key] - each.began) > CLOSE_S for key, each in began.items()):
        wrong.append(f"clock: {dated} attempts are dated by a wrong clock")
    # By the receiver's clock: the store's was only set back, which makes nothing due sooner.
    ended = {(each.id, each.attempt): each.ended for each in receipts}
    waits = [each.began - ended[id, n - 1] for (id, n), each in began.items() if (id, n - 1) in ended]
    if waits and min(waits) < RETRY_S:
        wrong.append(f"clock: a retry after {min(waits):.2f} s, allowed after {RETRY_S:g}")
    most = most_within((starts[key] for key, each in began.items() if each.path == RATED), 1.0)
    system.worst("most_in_1_s", most)
    if most > RATE + RATE_BURST:
        wrong.append(f"clock: {most} began within 1 s, allowed {RATE + RATE_BURST}")
    if stolen := sum("worker.buried" in each.log for each in system.hooklines):
        wrong.append(f"clock: {stolen} live workers were taken for dead")
    return wrong


ROWS = {
    "F21": Row(
        "wrong clocks, set while lanes are owned",
        BOTH,
        5,
        "due-by-wall-clock",
        "clock",
        set_clocks,
        Limits(),
        Scene(
            settings={"HOOKLINE_TAKEOVER_S": str(TAKEOVER_S), "HOOKLINE_HEARTBEAT_S": str(HEARTBEAT_S)},
        ),
        everyday=True,
        system=WrongClocks,
        needs=(faketime.missing,),
    ),
}
