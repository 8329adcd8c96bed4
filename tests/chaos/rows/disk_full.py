"""Rows: the database's disk is full."""

import time
from collections import Counter
from pathlib import Path
from typing import Any

import psutil

from hookline import ids
from tests.chaos import disk, seeds
from tests.chaos.checker import Limits
from tests.chaos.process import CEILING_S, wait_for
from tests.chaos.row import BOTH, SQLITE, Row
from tests.chaos.scene import Scene
from tests.chaos.system import System
from tests.postgres_server import PostgresServer, installations

BEFORE, WHILE = 100, 600  # events
MOST_OF_THEM = WHILE * 3 // 4  # every eighth is not sent again after it was refused
FULL_S = 3.0
LEFT_KIB = (
    8 * 1024
)  # half of what the store reserves for settling and pruning; with no room at all SQLite can do nothing
OLD, OLD_BYTES, OLD_S = 10_000, 4_000, 3 * 86_400.0
BUSY = 0.3  # of a processor
RESUMES_S = 10.0


class SmallDisk(System):
    """The database alone is on a disk that can be filled."""

    def __init__(self, folder: Path, **arguments: Any) -> None:
        folder.chmod(0o711)  # PostgreSQL runs as another user
        self.disk = disk.Disk(folder / "disk")
        super().__init__(folder, **arguments)
        self.url = self.worker_url = f"sqlite:///{self.disk.place}/hookline.db"

    def start_server(self) -> PostgresServer:
        server = PostgresServer(
            installations()[0], data=self.disk.place / "data", max_wal_size="64MB", min_wal_size="32MB"
        )
        server.start()
        return server

    def _end(self) -> None:
        super()._end()
        self.disk.close()


def fill_the_disk(system: System) -> list[str]:
    """F16: full for a while, with publishes coming in and deliveries to be settled."""
    assert isinstance(system, SmallDisk)
    system.publish(BEFORE)
    system.published()
    began = len(system.promises())
    system.disk.fill()
    full_at = time.time()
    system.publish(WHILE)
    wait_for(lambda: _refusals(system, began) or _acked(system, began) == WHILE, "a refusal")
    pids = [each.child.pid for each in system.hooklines]
    used = _used(pids)
    time.sleep(FULL_S)
    busiest = max(after - before for before, after in zip(used, _used(pids), strict=True)) / FULL_S
    refusals = _refusals(system, began)
    system.note("disk full", lasted=time.time() - full_at)
    # Attempts that began while it was full could not be settled, and count as under way from the beginning.
    system.faults[-1] = system.faults[-1]._replace(at=full_at)
    system.disk.free()
    freed = time.time()
    wrong = _answers_again(system, began, freed)
    system.published()
    system.worst("busiest", busiest)
    system.worst("refused", sum(refusals.values()))
    if not refusals:
        wrong.append("nothing was refused")
    if others := refusals.keys() - {"storage_full"} - ({"unavailable"} if system.is_postgres else set()):
        wrong.append(f"publishes were refused with {', '.join(sorted(map(str, others)))}")
    if busiest > BUSY * min(system.leeway, 3.0):
        wrong.append(f"a process used {busiest:.0%} of a processor while the disk was full")
    if [each.child.pid for each in system.hooklines if each.lives] != pids:
        wrong.append("a process ended")
    if not system.database.is_whole():
        wrong.append("the file is broken")
    return wrong


def prune_on_a_full_disk(system: System) -> list[str]:
    """F16, its last figure: old data is deleted with the little room that is left, and its room is used again."""
    assert isinstance(system, SmallDisk)
    system.publish(BEFORE)
    system.published()
    lanes = [ids.read("endpoint", each) for each in system.endpoints]
    payload = b'"' + b"x" * OLD_BYTES + b'"'
    seeds.write(system.url, lanes, OLD, rng=system.rng, payload=payload, state="delivered", age_s=OLD_S)
    began = len(system.promises())
    system.disk.fill(leaving_kib=LEFT_KIB)
    full_at = time.time()
    system.publish(WHILE)
    wait_for(lambda: _refusals(system, began) or _acked(system, began) == WHILE, "a refusal")
    wrong = [] if _refusals(system, began) else ["nothing was refused"]
    pruning = system.begin("prune", "prune", "--older-than", "1d", "--yes", url=system.url)
    pruning.child.wait(CEILING_S)
    system.worst("pruned_s", time.time() - full_at)
    if f"{OLD:,} events" not in pruning.log:
        wrong.append(
            f"prune on a full disk ended with {pruning.child.returncode}: {pruning.log.strip()[-300:]}"
        )
    else:
        pruned_at = time.time()
        try:
            wait_for(
                lambda: _acked(system, began) >= MOST_OF_THEM,
                "publishes",
                min(RESUMES_S * system.patience, 60.0),
            )
        except TimeoutError:
            wrong.append(f"{_acked(system, began)} of {WHILE} were accepted after the pruning")
        system.worst("resumed_s", time.time() - pruned_at)
    system.note("disk full", lasted=time.time() - full_at)
    system.faults[-1] = system.faults[-1]._replace(at=full_at)
    system.disk.free()
    if not system.database.is_whole():
        wrong.append("the file is broken")
    return wrong


def _refusals(system: System, began: int) -> Counter[str]:
    """The errors of publishes that were refused since then."""
    return Counter(str(line["code"]) for line in system.promises()[began:] if line["did"] == "doubt")


def _acked(system: System, began: int) -> int:
    return sum(line["did"] == "ack" for line in system.promises()[began:])


def _answers_again(system: System, began: int, freed: float) -> list[str]:
    allowed = RESUMES_S * system.leeway

    def answered() -> float | None:
        acks = (line["at"] for line in system.promises() if line["did"] == "ack" and line["at"] > freed)
        return next(acks, None)

    if _acked(system, began) == WHILE:
        return []  # all of them were, long before
    took = (
        wait_for(answered, "an answer after there was room", min(allowed, RESUMES_S * system.patience) + 30)
        - freed
    )
    system.worst("resumed_s", took)
    return [f"accepted again after {took:.1f} s, allowed {allowed:g}"] if took > allowed else []


def _used(pids: list[int]) -> list[float]:
    return [sum(psutil.Process(pid).cpu_times()[:2]) for pid in pids]


ROWS = {
    "F16": Row(
        "the database's disk is full",
        BOTH,
        3,
        "accept-when-full",
        "lost",
        fill_the_disk,
        Limits(),
        Scene(),
        everyday=True,
        system=SmallDisk,
        needs=(disk.missing,),
    ),
    "F16R": Row(
        "old events are pruned while the disk is full",
        SQLITE,
        1,
        "prune-by-copying",
        "prune on a full disk",
        prune_on_a_full_disk,
        Limits(),
        Scene(),
        system=SmallDisk,
        needs=(disk.missing,),
    ),
}
