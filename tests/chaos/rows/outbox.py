"""Rows: an application publishes in its own transactions, and everything is killed."""

import contextlib
import sqlite3
import subprocess
import sys
from collections.abc import Mapping
from contextlib import closing
from pathlib import Path
from typing import Any

import psycopg

from hookline.outbox import ddl
from tests.chaos.application import ORDERS
from tests.chaos.checker import Limits
from tests.chaos.process import CEILING_S, wait_for
from tests.chaos.row import ARMED_S, BOTH, Row, pause, replace, size
from tests.chaos.scene import IN_FLIGHT, Scene
from tests.chaos.system import BUGGY_S, LONGEST_DRAIN_S, System

HERE = Path(__file__).parents[1]
BURST = 300  # orders of one trial
PLACES = (
    "outbox.looked",
    "accept.before",
    "accept.after",
    "outbox.accepted",
    "outbox.dropped",
    "random",
)
STEP_OF_THE_BUG = "outbox.dropped"


class Shop(System):
    """An application with its own tables, in hookline's database and in one of its own.

    Its ledger is its table of orders: what is committed there was promised, and nothing else was.
    """

    application: subprocess.Popen[str]

    def settings(self, name: str) -> Mapping[str, str]:
        return {**self.scene.settings, "HOOKLINE_OUTBOX": self.source}

    def _start_database(self) -> None:
        super()._start_database()
        self.taken = 0
        self.databases: list[str] = []
        if self.server is not None:
            own = self.server.url(self.server.create_database())
            self.source = own
            self.databases = [self.url, own]
            with psycopg.connect(own, autocommit=True) as connection:
                connection.execute(ddl("postgresql"))
        else:
            file = self.folder / "shop.db"
            self.source = f"sqlite:///{file}"
            self.databases = [str(file)]
            with closing(sqlite3.connect(file)) as connection:
                connection.execute("PRAGMA journal_mode = WAL")
                connection.executescript(ddl("sqlite"))

    def _start(self) -> None:
        super()._start()
        for each in self.databases:
            self._ask(each, ORDERS)
        self.open_shop()

    def _end(self) -> None:
        if hasattr(self, "application"):
            self._helpers.append(self.application)
        super()._end()

    def open_shop(self) -> None:
        """Start the application."""
        command = [sys.executable, "-m", "tests.chaos.application", str(self.scene.endpoints)]
        self.application = subprocess.Popen(
            [*command, *self.databases],
            cwd=HERE.parents[1],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def close_shop(self) -> None:
        """Kill the application in the middle of its transactions; what it had not committed was never promised."""
        self.application.kill()
        self.application.wait(CEILING_S)
        for pipe in (self.application.stdin, self.application.stdout):
            if pipe is not None:
                with contextlib.suppress(BrokenPipeError):
                    pipe.close()
        self._is_publishing = False

    def publish(self, count: int) -> None:
        assert self.application.stdin is not None
        self._is_publishing = True
        self.application.stdin.write(f"{self.taken} {count}\n")
        self.application.stdin.flush()
        self.taken += count

    def published(self) -> None:
        if self._is_publishing:
            assert self.application.stdout is not None
            if self.application.stdout.readline().strip() != "done":
                raise RuntimeError("the application broke")
        self._is_publishing = False

    def promises(self) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = []
        for database in self.databases:
            for n, part, event, digest in self._ask(database, "SELECT n, part, event, digest FROM orders"):
                key = f"order-{n}-{part}"
                found.append({"did": "intent", "key": key, "digest": digest})
                found.append({"did": "ack", "key": key, "id": event})
        return found

    def is_drained(self, seconds: float = 30.0) -> bool:
        patience = BUGGY_S if self.bug else min(seconds * self.patience, LONGEST_DRAIN_S)
        with contextlib.suppress(TimeoutError):
            wait_for(lambda: not any(map(self.waiting, self.databases)), "the outboxes to be empty", patience)
            return super().is_drained(seconds)
        return False

    def waiting(self, database: str) -> int:
        """The rows of an outbox."""
        table = "hookline.outbox" if self.is_postgres else "hookline_outbox"
        [(count,)] = self._ask(database, f"SELECT count(*) FROM {table}")
        return int(count)

    def _ask(self, database: str, statement: str) -> list[Any]:
        if not self.is_postgres:
            with closing(sqlite3.connect(database, timeout=20.0)) as file, file:
                return file.execute(statement).fetchall()
        with psycopg.connect(database, autocommit=True, connect_timeout=5) as session:
            cursor = session.execute(statement)
            return cursor.fetchall() if cursor.description else []


def kill_all_around_an_outbox(system: System) -> list[str]:
    """F37: the application, who moves its rows, or the database; whoever is killed comes back."""
    assert isinstance(system, Shop)
    kinds = ["application", "mover", "mover", *(["database"] if system.is_postgres else [])]
    system.publish(size(system, BURST // 2, BURST))
    pause(system, 0.1, 0.6)
    match "mover" if system.bug else system.rng.choice(kinds):
        case "application":
            system.close_shop()
            system.open_shop()
        case "mover":
            _kill_a_mover(system)
        case _:
            server = system.server
            assert server is not None
            system.note("database kill", lasted=1.5)  # attempts may start as long after the last heartbeat
            server.kill()
            pause(system, 0.0, 1.0)
            server.start()
    return []


def _kill_a_mover(system: Shop) -> None:
    """At a step of moving, or at a random moment; any process that delivers may be the mover."""
    place = STEP_OF_THE_BUG if system.bug else system.rng.choice(PLACES)
    movers = system.senders
    if place != "random":
        for each in movers:
            each.arm(f"{place}=kill@{system.rng.randint(1, 4)}")
        with contextlib.suppress(TimeoutError):
            wait_for(lambda: not all(each.lives for each in movers), "a mover's death", ARMED_S)
    dead = [each for each in movers if not each.lives]
    for each in movers:
        if each.lives and place != "random":
            each.disarm()
    dead = dead or [each for each in movers if not each.lives] or [system.rng.choice(movers)]
    for each in dead:
        died_there = not each.lives
        each.kill()
        system.note(f"kill at {place}" if died_there else "kill", each)
    for each in dead:
        replace(system, each)


ROWS = {
    "F37": Row(
        "kill -9 around an outbox",
        BOTH,
        15,
        "drop-before-accept",
        "lost",
        kill_all_around_an_outbox,
        Limits(in_flight=IN_FLIGHT),
        Scene(workers=2, endpoints=12),
        everyday=True,
        system=Shop,
    ),
}
