"""Checks for open circuits, recent dead letters and processes that are silent."""

from collections.abc import Iterator

from hookline import ids
from hookline.cli.doctor.findings import Finding, ok, warn
from hookline.cli.output import counted
from hookline.rules.liveness import Condition, condition
from hookline.store.contract import WorkerRow
from hookline.store.contract.doctor import MOST_COUNTED, Examination, OpenCircuit

NAMED = 3


def check_trouble(found: Examination, *, wall: float, heartbeat: float) -> Iterator[Finding]:
    """Check it; `heartbeat` is how often a worker should be heard of, in seconds."""
    now = store_time(found, wall=wall)
    if "circuits" not in found.unanswered:
        yield _circuits(found.circuits, now=now)
    if "dead letters" not in found.unanswered:
        yield _dead(found.dead_last_hour)
    if "workers" not in found.unanswered:
        yield _workers(found, now=now, heartbeat=heartbeat)


def store_time(found: Examination, *, wall: float) -> float:
    """The database's time; that of a file stands still when nobody serves it."""
    return max(found.now, wall) if found.server.startswith("SQLite") else found.now


def is_stale(worker: WorkerRow, *, now: float, heartbeat: float) -> bool:
    """Has it been silent for too long?"""
    shown = condition(
        silent=now - worker.seen_at,
        is_draining=worker.load.draining,
        is_buried=worker.buried,
        heartbeat=heartbeat,
    )
    return shown is Condition.STALE


def _circuits(circuits: tuple[OpenCircuit, ...], *, now: float) -> Finding:
    if not circuits:
        return ok("circuits", "none is open")
    shown = "; ".join(_circuit(each, now=now) for each in circuits[:NAMED])
    more = f"; and {len(circuits) - NAMED:,} more" if len(circuits) > NAMED else ""
    many = f"{len(circuits):,} {'is' if len(circuits) == 1 else 'are'} open"
    first = ids.show("endpoint", circuits[0].endpoint_id)
    return warn(
        "circuits",
        f"{many}: {shown}{more}",
        f"ask the receiver's operators; `hookline endpoints test {first}` shows its answer",
    )


def _circuit(circuit: OpenCircuit, *, now: float) -> str:
    id = ids.show("endpoint", circuit.endpoint_id)
    if circuit.probe_at is None:
        return f"{id} ({circuit.reason})"
    wait = circuit.probe_at - now
    probe = f"next probe in {wait:,.0f} s" if wait > 0 else "a probe is due"
    return f"{id} ({circuit.reason or 'failures'}; {probe})"


def _dead(number: int) -> Finding:
    if not number:
        return ok("dead letters", "none in the last hour")
    more = " or more" if number >= MOST_COUNTED else ""
    return warn(
        "dead letters",
        f"{counted(number, 'delivery', 'deliveries')}{more} died in the last hour",
        "`hookline dead list` shows them with their last error",
    )


def _workers(found: Examination, *, now: float, heartbeat: float) -> Finding:
    stale = [each for each in found.workers if is_stale(each, now=now, heartbeat=heartbeat)]
    if not stale:
        return ok("workers", f"{counted(len(found.workers), 'process', 'processes')} listed, none is silent")
    shown = ", ".join(
        f"{each.kind} {each.pid} on {each.host} ({now - each.seen_at:,.0f} s)" for each in stale[:NAMED]
    )
    more = f" and {len(stale) - NAMED:,} more" if len(stale) > NAMED else ""
    return warn(
        "workers",
        f"silent: {shown}{more}",
        "if it should run, look at its log, and start it again"
        if found.server.startswith("SQLite")
        else "if it should run, look at its log; its endpoints are taken over by the others",
    )
