"""The tools of a row that measures.

It has a database and nothing else at the start. The row starts servers, workers and receivers as it needs them, calls
the API, writes rows directly into the database, and compares its figures with what is allowed.
"""

import contextlib
import http.client
import itertools
import json
import sqlite3
import subprocess
import threading
import time
from collections import Counter
from pathlib import Path
from typing import Any, NamedTuple

import psycopg

from hookline import ids
from tests.chaos import seeds
from tests.chaos.process import CEILING_S, wait_for
from tests.chaos.proxy import Proxy
from tests.chaos.scene import Scene
from tests.chaos.system import System


class Arrival(NamedTuple):
    """One request, as the catcher recorded it."""

    id: str
    path: str
    attempt: int
    began: float
    ended: float
    status: int


class Catcher:
    """A receiver in a process of its own."""

    def __init__(self, child: "subprocess.Popen[str]", ledger: Path) -> None:
        self._child = child
        self._ledger = ledger
        self.port = int(self._read())

    def url(self, path: str) -> str:
        return f"http://127.0.0.1:{self.port}{path}"

    def answer(self, path: str = "", **manner: float) -> None:
        """Answer like this from now on: see catcher.py."""
        self._tell(json.dumps({"path": path, **manner}))

    def arrivals(self) -> list[Arrival]:
        """Everything that arrived so far."""
        self._tell("write")
        return [_arrival(line) for line in self._ledger.read_text().splitlines()]

    def _tell(self, line: str) -> None:
        assert self._child.stdin is not None
        self._child.stdin.write(line + "\n")
        self._child.stdin.flush()
        if self._read() != "ok":
            raise RuntimeError("the catcher broke")

    def _read(self) -> str:
        assert self._child.stdout is not None
        return self._child.stdout.readline().strip()


class Stage(System):
    """A database, and everything that a row starts."""

    def __init__(
        self,
        folder: Path,
        *,
        store: str,
        seed: int,
        bug: str = "",
        leeway: float = 1.0,
        is_long: bool = False,
        scale: float = 1.0,
    ) -> None:
        super().__init__(folder, store=store, seed=seed, bug=bug, scene=Scene(workers=0), leeway=leeway)
        self.store = store
        self.is_long = is_long
        self.wrong: list[str] = []
        self._scale = scale
        self._caught: list[Catcher] = []

    def _start(self) -> None:
        self._start_database()

    def size(self, short: float, long: float) -> int:
        """The size of something, in the long set or otherwise."""
        return max(1, int((long if self.is_long else short) * self._scale))

    # figures

    def at_most(self, name: str, value: float, limit: float, *, is_time: bool = False) -> None:
        """Note a figure, and whether it is too large; times get some slack on a shared machine."""
        self.figures[name] = value
        allowed = limit * self.leeway if is_time else limit
        if value > allowed:
            self.wrong.append(f"{name} {value:.6g}, allowed {allowed:.6g}")

    def at_least(self, name: str, value: float, limit: float, *, is_time: bool = False) -> None:
        """Note a figure, and whether it is too small."""
        self.figures[name] = value
        needed = limit / self.leeway if is_time else limit
        if value < needed:
            self.wrong.append(f"{name} {value:.6g}, needed {needed:.6g}")

    # processes

    def configure(self, **settings: str | float) -> None:
        """Set settings of processes that are started from now on, without the prefix."""
        named = {f"HOOKLINE_{name.upper()}": str(value) for name, value in settings.items()}
        self.scene = self.scene._replace(settings={**self.scene.settings, **named})

    def start(self, *, workers: int = 0) -> None:
        """Start the API, and workers beside it; on SQLite the API is the worker."""
        self.serve()
        self.workers = [self.worker() for _ in range(workers if self.store == "postgres" else 0)]

    def run(self, *arguments: str, within: float = CEILING_S) -> tuple[int | None, str]:
        """Run a command of hookline; returns its exit status, None if it still ran, and its output."""
        process = self.begin("command", *arguments)
        try:
            status = process.child.wait(within)
        except subprocess.TimeoutExpired:
            process.kill()
            return None, process.log
        return status, process.log

    def catcher(self) -> Catcher:
        """Start one more receiver."""
        ledger = self.folder / f"arrivals-{len(self._caught)}"
        catcher = Catcher(self._helper("catcher.py", ledger), ledger)
        self._caught.append(catcher)
        return catcher

    def arrivals(self) -> list[Arrival]:
        """What arrived at all catchers."""
        return [each for catcher in self._caught for each in catcher.arrivals()]

    def verb_times(self, verb: str) -> list[tuple[float, float]]:
        """When each call of a store's verb began, in all processes of this stage, and how long it took."""
        found = []
        for file in self.folder.glob("*.times"):
            for line in file.read_text().splitlines():
                name, began, took = line.split()
                if name == verb:
                    found.append((float(began), float(took)))
        return sorted(found)

    def proxied(self) -> Proxy:
        """Send everything that is started from now on to PostgreSQL through a proxy."""
        assert self.server is not None
        self.proxy = Proxy(self.server.port)
        self.url = self.worker_url = self.url.replace(f":{self.server.port}/", f":{self.proxy.port}/")
        return self.proxy

    # the API and the database

    def call(
        self, method: str, path: str, body: Any = None, *, key: str = "", timeout: float = CEILING_S
    ) -> tuple[int, Any]:
        """One call of the API."""
        headers = {"content-type": "application/json"} if body is not None else {}
        if key:
            headers["idempotency-key"] = key
        with contextlib.closing(
            http.client.HTTPConnection("127.0.0.1", self.port, timeout=timeout)
        ) as connection:
            connection.request(method, path, None if body is None else json.dumps(body), headers)
            response = connection.getresponse()
            text = response.read()
            return response.status, json.loads(text) if text else None

    def endpoint(self, url: str, events: str, **fields: Any) -> str:
        """A new endpoint's id."""
        defaults = {"retry": {"schedule": [0.5] * 20, "jitter": "none"}, "circuit": None}
        status, answer = self.call(
            "POST", "/v1/endpoints", {"url": url, "events": [events], **defaults, **fields}
        )
        if status != 201:
            raise RuntimeError(f"no endpoint: {status} {answer}")
        return str(answer["id"])

    def seed(self, endpoints: list[str], count: int, **fields: Any) -> list[str]:
        """Write events with one delivery each, in turn to these endpoints, without the API; returns their ids."""
        lanes = [ids.read("endpoint", each) for each in endpoints]
        return seeds.write(self.url, lanes, count, rng=self.rng, **fields)

    def query(self, statement: str, *values: Any) -> list[Any]:
        """Run a statement on the database without hookline; parameters are %s on PostgreSQL and ? on SQLite."""
        if self.store == "sqlite":
            path = self.url.removeprefix("sqlite:///")
            with contextlib.closing(sqlite3.connect(path, timeout=30, isolation_level=None)) as connection:
                return connection.execute(statement, values).fetchall()
        with psycopg.connect(self.url, autocommit=True, options="-c search_path=hookline") as connection:
            cursor = connection.execute(statement, values or None)  # type: ignore[call-overload]
            return cursor.fetchall() if cursor.description else []

    def events(self) -> set[str]:
        """The ids of all events that the database has."""
        found = self.query("SELECT id FROM events")
        return {ids.show("event", id if isinstance(id, bytes) else id.bytes) for (id,) in found}

    def rest(self, least: float, most: float) -> None:
        """Let it run on for as long as the seed says."""
        time.sleep(self.rng.uniform(least, most))

    def drained(self, seconds: float) -> float:
        """Wait until nothing is pending; returns how long that took."""
        began = time.monotonic()
        wait_for(lambda: self.database.pending() == 0, "the drain", seconds)
        return time.monotonic() - began


class Publishing:
    """Publishes events of these types in turn at a steady rate, in batches, until told to stop."""

    def __init__(
        self,
        stage: Stage,
        types: list[str],
        *,
        per_second: float,
        batch: int = 1,
        threads: int = 1,
        **fields: str,
    ) -> None:
        self._stage = stage
        self._types = types
        self._every = batch * threads / per_second
        self._batch = batch
        self._fields = fields
        self._numbers = itertools.count()
        self._ending = threading.Event()
        self.sent_at: dict[str, float] = {}  # of what was accepted, by its id
        self.statuses: Counter[int] = Counter()
        self.slowest = 0.0
        self._threads = [
            threading.Thread(target=self._run, args=(n * batch / per_second,), daemon=True)
            for n in range(threads)
        ]
        for each in self._threads:
            each.start()

    def stop(self) -> dict[str, float]:
        """When each accepted event was published, by its id."""
        self._ending.set()
        for each in self._threads:
            each.join(CEILING_S)
        return self.sent_at

    def _run(self, delay: float) -> None:
        due = time.monotonic() + delay
        connection: http.client.HTTPConnection | None = None
        while not self._ending.wait(max(0.0, due - time.monotonic())):
            due += self._every
            began = time.time()
            try:
                connection = connection or http.client.HTTPConnection(
                    "127.0.0.1", self._stage.port, timeout=15
                )
                path = "/v1/events/batch" if self._batch > 1 else "/v1/events"
                connection.request("POST", path, self._body(), {"content-type": "application/json"})
                response = connection.getresponse()
                status, answer = response.status, json.loads(response.read())
            except (OSError, http.client.HTTPException):
                status, answer, connection = 0, {}, None
            self.statuses[status] += 1
            self.slowest = max(self.slowest, time.time() - began)
            if status == 202:
                results = answer["results"] if self._batch > 1 else [answer]
                self.sent_at.update({each["id"]: began for each in results if "id" in each})

    def _body(self) -> str:
        events = [
            {"type": self._types[n % len(self._types)], "payload": {"n": n}, **self._fields}
            for n in itertools.islice(self._numbers, self._batch)
        ]
        return json.dumps({"events": events} if self._batch > 1 else events[0])


def waits(arrivals: list[Arrival], sent_at: dict[str, float]) -> list[float]:
    """From publish to first arrival."""
    first: dict[str, float] = {}
    for each in arrivals:
        first.setdefault(each.id, each.began)
    return [first[id] - at for id, at in sent_at.items() if id in first]


def _arrival(line: str) -> Arrival:
    id, path, attempt, began, ended, status = line.split()
    return Arrival(id, path, int(attempt), float(began), float(ended), int(status))
