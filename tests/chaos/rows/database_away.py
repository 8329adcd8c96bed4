"""Rows: the database is killed, restarted or out of reach."""

import contextlib
import time

import psycopg

from tests.chaos.checker import Limits
from tests.chaos.process import wait_for
from tests.chaos.row import BURST, POSTGRES, Row, pause
from tests.chaos.scene import Scene
from tests.chaos.system import System

FIRST_S, HEALED_S = 5.0, 10.0  # until the first delivery after a restart, after a partition
FRESH_S = 1.5  # attempts may start this long after the last read: see pipeline/membership/heartbeat.py
NO_HANG = Limits(publish_s=10.0)


def kill_the_database(system: System) -> list[str]:
    """F01: the postmaster and all its children."""
    return _database_away(system, "kill")


def restart_the_database(system: System) -> list[str]:
    """F02: an operator restarts it, it stops without a shutdown, or all its sessions are ended."""
    return _database_away(system, system.rng.choice(("restart", "kill", "terminate")))


def _database_away(system: System, how: str) -> list[str]:
    server = system.server
    assert server is not None
    system.publish(BURST)
    pause(system, 0.1, 1.0)
    pids = [each.child.pid for each in system.hooklines]
    system.note(f"database {how}", lasted=FRESH_S)
    if how == "terminate":
        with psycopg.connect(server.url(), autocommit=True) as connection:
            connection.execute(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid <> pg_backend_pid()"
                " AND backend_type = 'client backend'"
            )
    else:
        (server.kill if how == "kill" else server.stop)()
        pause(system, 0.0, 1.0)
        server.start()
    wrong = _is_late(system, "the database answered", FIRST_S)
    if [each.child.pid for each in system.hooklines if each.lives] != pids:
        wrong.append("a process ended")
    return wrong


def cut_off_the_database(system: System) -> list[str]:
    """F12: packets are dropped and connections forgotten, packets are dropped for a while, or connections are reset."""
    assert system.proxy is not None
    how = ("half-open", "drop", "reset")[len(system.faults) % 3]
    system.publish(BURST)
    pause(system, 0.2, 0.8)
    system.note(how, lasted=FRESH_S)
    system.proxy.cut(resets=how == "reset")
    pause(system, 1.0, 5.0)
    system.proxy.heal(forgets=how == "half-open")
    return _is_late(system, f"the {how} was healed", HEALED_S)


def _is_late(system: System, what: str, figure: float) -> list[str]:
    """Is the next delivery late, now that everything is well again?"""
    allowed = figure * system.leeway
    began = time.time()
    with contextlib.suppress(TimeoutError):
        wait_for(
            lambda: any(each.began > began for each in system.receipts()) or not system.database.pending(),
            "a delivery",
            min(allowed, figure * system.patience) + 5,
        )
    took = time.time() - began
    system.worst("first_delivery_s", took)
    return [f"first delivery {took:.1f} s after {what}, allowed {allowed:g}"] if took > allowed else []


ROWS = {
    "F01": Row(
        "kill -9 PostgreSQL",
        POSTGRES,
        10,
        "commit-unflushed",
        "lost",
        kill_the_database,
        NO_HANG,
        everyday=True,
    ),
    "F02": Row(
        "PostgreSQL restarts",
        POSTGRES,
        10,
        "answer-before-commit",
        "lost",
        restart_the_database,
        NO_HANG,
        everyday=True,
    ),
    "F12": Row(
        "workers cut off from PostgreSQL",
        POSTGRES,
        10,
        "wait-for-ever",
        "lost",
        cut_off_the_database,
        NO_HANG,
        Scene(proxied=True),
        everyday=True,
    ),
}
