"""Rows: a delivery kills every worker that sends it."""

import contextlib
import http.client
import time

from tests.chaos.checker import Limits
from tests.chaos.process import wait_for
from tests.chaos.row import BOTH, REDELIVERY_S, Row, pause
from tests.chaos.scene import IN_FLIGHT, Scene
from tests.chaos.system import System

MARKER = "poison"  # planted.py kills the process that is about to send this
OTHERS = 999
DEATHS = 5
PATIENCE_S = 120.0


def poison(system: System) -> list[str]:
    """F20: one among a thousand."""
    # Every lane has a live owner, and nothing is left of a dead one: the next death is the first.
    system.publish(2 * system.scene.endpoints)
    system.published()
    if not system.is_drained():
        return ["not drained"]
    began = time.time()
    system.publish(OTHERS)
    pause(system, 0.1, 0.5)
    number = len(system.promises())
    buried = len(system.burials())
    id, deaths = _give(system, number)
    deadline = time.monotonic() + PATIENCE_S * system.patience

    def something_happened() -> str | None:
        if any(not each.lives for each in system.senders):
            return "death"
        return "end" if system.database.state(id) != "pending" else None

    while (
        deaths <= DEATHS
        and time.monotonic() < deadline
        and wait_for(something_happened, "a death or the end", PATIENCE_S * system.patience) == "death"
    ):
        deaths += _replace_the_dead(system)
    system.worst("deaths", deaths)
    if deaths > DEATHS:
        return [f"poison: it killed {deaths} and is not dead"]
    system.published()
    row = system.database.rows()[id]
    wrong = []
    if (row.state, row.reason) != ("dead", "crash_limit"):
        wrong.append(f"poison: it ended as {row.state} ({row.reason})")
    # A worker that is taken for dead by mistake, on a machine that makes it wait for seconds, counts as one too.
    if not DEATHS - (len(system.burials()) - buried) <= deaths <= DEATHS:
        wrong.append(f"poison: {deaths} died of it, expected {DEATHS}")
    if not system.is_drained():
        return [*wrong, "not drained"]
    return wrong + _others_waited(system, began, number)


def _give(system: System, number: int) -> tuple[str, int]:
    """Publish it until that is answered; returns its id and the deaths. On SQLite the same process sends it."""
    key, digest, publish = system.offer(number, filling=MARKER)
    system.promise(did="intent", key=key, digest=digest)
    deaths = 0
    while deaths <= DEATHS:
        with contextlib.suppress(OSError, http.client.HTTPException):
            status, id = publish()
            if status == 202:
                system.promise(did="ack", key=key, id=id, at=time.time())
                return id, deaths
        wait_for(lambda: any(not each.lives for each in system.senders), "the death of who did not answer")
        deaths += _replace_the_dead(system)
    raise RuntimeError("poison cannot be published")


def _replace_the_dead(system: System) -> int:
    dead = [each for each in system.senders if not each.lives]
    for each in dead:
        system.note("poisoned", each)
    for each in dead:
        system.replace(each, waits=False)  # the next one may die meanwhile
    return len(dead)


def _others_waited(system: System, began: float, poisoned: int) -> list[str]:
    """How long deliveries of other lanes waited. Only those acknowledged before the first death count."""
    acks = {line["id"]: line["at"] for line in system.promises() if line["did"] == "ack" and "at" in line}
    lane = f"/{poisoned % system.scene.endpoints}"
    waits = sorted(
        each.began - acks[each.id]
        for each in system.receipts()
        if each.began > began and each.path != lane and each.id in acks
    )
    p99 = waits[int(len(waits) * 0.99)]
    system.worst("p99_of_others_s", p99)
    allowed = REDELIVERY_S * system.leeway
    return [f"poison: p99 of other lanes {p99:.1f} s, allowed {allowed:g}"] if p99 > allowed else []


ROWS = {
    "F20": Row(
        "a delivery that kills its worker",
        BOTH,
        5,
        "crash-limit-off",
        "poison",
        poison,
        Limits(in_flight=IN_FLIGHT, deaths=frozenset({"crash_limit"})),
        Scene(settings={"CHAOS_POISON": MARKER}),
        everyday=True,
    ),
}
