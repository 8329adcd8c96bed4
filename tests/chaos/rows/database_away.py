"""What becomes of hookline when its database is killed, restarted or out of reach?"""

import contextlib
import time

import psycopg

from tests.chaos.checker import Limits
from tests.chaos.row import BURST, POSTGRES, Row, pause
from tests.chaos.scene import Scene
from tests.chaos.system import System, wait_for


def kill_the_database(system: System) -> list[str]:
    """F01: the postmaster and all its children."""
    return _database_away(system, "kill")


def restart_the_database(system: System) -> list[str]:
    """F02: restarted by an operator, stopped without goodbye, or all its sessions ended."""
    return _database_away(system, system.rng.choice(("restart", "kill", "terminate")))


def _database_away(system: System, how: str) -> list[str]:
    server = system.server
    assert server is not None
    system.publish(BURST)
    pause(system, 0.1, 1.0)
    pids = [each.child.pid for each in (system.api, *system.workers)]
    system.note(f"database {how}")
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
    up = time.time()
    with contextlib.suppress(TimeoutError):
        wait_for(
            lambda: any(each.began > up for each in system.receipts()) or not system.database.pending(),
            "one",
            20,
        )
    took = time.time() - up
    wrong = [f"first delivery after {took:.1f} s"] if took > 5 else []
    if [each.child.pid for each in (system.api, *system.workers) if each.child.poll() is None] != pids:
        wrong.append("a process ended")
    return wrong


def cut_off_the_database(system: System) -> list[str]:
    """F12: packets dropped and connections forgotten, packets dropped for a while, or connections reset."""
    assert system.proxy is not None
    how = ("half-open", "drop", "reset")[len(system.faults) % 3]
    system.publish(BURST)
    pause(system, 0.2, 0.8)
    # An attempt may start for a second after the last look at the database: see pipeline/heart.py.
    system.note(how, lasted=1.5)
    system.proxy.cut(resets=how == "reset")
    pause(system, 1.0, 5.0)
    system.proxy.heal(forgets=how == "half-open")
    healed = time.time()
    with contextlib.suppress(TimeoutError):
        wait_for(
            lambda: any(each.began > healed for each in system.receipts()) or not system.database.pending(),
            "one",
            15,
        )
    took = time.time() - healed
    return [f"first delivery {took:.1f} s after the {how} was healed"] if took > 10 else []


ROWS = {
    "F01": Row("kill -9 PostgreSQL", POSTGRES, 10, "commit-unflushed", "lost", kill_the_database, Limits()),
    "F02": Row(
        "PostgreSQL restarts", POSTGRES, 10, "answer-before-commit", "lost", restart_the_database, Limits()
    ),
    "F12": Row(
        "workers cut off from PostgreSQL",
        POSTGRES,
        10,
        "wait-for-ever",
        "lost",
        cut_off_the_database,
        Limits(),
        Scene(proxied=True),
    ),
}
