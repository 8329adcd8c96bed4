"""Starts and ends the processes that take part.

PostgreSQL or a file, a receiver, a producer, `hookline serve`, and on PostgreSQL workers beside it. All are
children of this process, on loopback, in one temporary folder; whatever still runs at the end is killed.
"""

import base64
import contextlib
import hashlib
import http.client
import json
import random
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from datetime import datetime
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import psutil

from tests.chaos.checker import GRACE_S, Fault, Receipt
from tests.chaos.database import Database
from tests.chaos.drag import Drag
from tests.chaos.process import CEILING_S, Process, wait_for
from tests.chaos.proxy import Proxy
from tests.chaos.scene import IN_FLIGHT, TAKEOVER_S, Scene
from tests.postgres_server import PostgresServer, installations

HERE = Path(__file__).parent
PATIENT, MOST_PATIENT = 3.0, 60.0  # times its figure: how long to wait at most on a busy machine
LONGEST_DRAIN_S = 240.0
STARVED_S = 15.0
BUGGY_S = 10.0  # with a bug planted it may never be drained


class System:
    """Everything, running."""

    def __init__(
        self, folder: Path, *, store: str, seed: int, bug: str = "", scene: Scene, leeway: float = 1.0
    ) -> None:
        self.folder = folder
        self.scene = scene
        self.bug = bug
        self._leeway = leeway
        self.drag = Drag()
        self.rng = random.Random(seed)
        self.faults: list[Fault] = []
        self.figures: dict[str, float] = {}  # what a row measured besides the ledgers
        self.starts: list[float] = []  # seconds; the first is of an empty database, with nothing to recover
        self.server: PostgresServer | None = None
        self.workers: list[Process] = []
        self._begun: list[Process] = []  # also those that have ended
        self.endpoints: list[str] = []  # their ids
        self.is_postgres = store == "postgres"
        self._names = iter(range(1, 1_000_000))
        self._helpers: list[subprocess.Popen[str]] = []
        self._wanted = scene.workers if self.is_postgres else 0
        self.url = f"sqlite:///{folder}/hookline.db"
        self.worker_url = self.url
        self.proxy: Proxy | None = None  # between workers and database, where a row cuts them off
        self.port = 0
        self._is_publishing = False
        self._arrived: list[Receipt] = []
        self._read = 0  # bytes of the receiver's ledger

    def __enter__(self) -> Self:
        try:
            self._start()
        except BaseException:
            self._end()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._end()

    def start_server(self) -> PostgresServer:
        """The PostgreSQL of this run."""
        found = installations()
        if not found:
            raise RuntimeError("no PostgreSQL on this machine: see CONTRIBUTING.md")
        server = PostgresServer(found[0])
        server.start()
        return server

    def settings(self, name: str) -> Mapping[str, str]:
        """The environment of the hookline process of this name."""
        return self.scene.settings

    def _start_database(self) -> None:
        if self.is_postgres:
            self.server = self.start_server()
            self.url = self.worker_url = self.server.url(self.server.create_database())
            if self.scene.proxied:
                self.proxy = Proxy(self.server.port)
                self.worker_url = self.url.replace(f":{self.server.port}/", f":{self.proxy.port}/")
        self.database = Database(self.url)

    def _start(self) -> None:
        self._start_database()
        self.secret = "whsec_" + base64.b64encode(self.rng.randbytes(32)).decode()
        self._receiver = self._helper("receiver.py", self._receipts, self.secret, str(self.scene.slowest_s))
        self.receiver_port = int(_line(self._receiver))
        self.serve()
        self.workers = [self.begin_worker() for _ in range(self._wanted)]
        for n in range(self.scene.endpoints):
            self.endpoints.append(self.create(n))
        for each in self.workers:
            each.wait_until(r"(delivering) from")
        self._producer = self._helper(
            "producer.py", self._promises, str(self.port), str(self.scene.endpoints)
        )

    @property
    def leeway(self) -> float:
        """How many times its figure a timing may be, on a machine this busy; infinite where only counts are judged."""
        return self._leeway

    @property
    def patience(self) -> float:
        """How many times its figure something is waited for: longer on a busy machine, since waiting is not judging.

        Not in the long set, and not with a bug planted: a wait for something that will not come should be short.
        """
        if self.bug or self._leeway <= 1.0:
            return min(self._leeway, PATIENT)
        return min(PATIENT * self.drag.worst, MOST_PATIENT)

    # --- processes ---

    def serve(self, *, waits: bool = True) -> None:
        """Start the API, on the port it had; on PostgreSQL the workers deliver.

        Waits until it listens; without `waits` it may also have died on the way.
        """
        flags = ["--no-worker"] if self.is_postgres else []
        began = time.monotonic()
        self.api = self.begin("serve", "serve", "--dev", "--port", str(self.port), *flags, url=self.url)
        if not waits:
            wait_for(lambda: not self.api.lives or "listening on" in self.api.log, "the API, or its death")
            return
        self.port = int(self.api.wait_until(r"listening on http://[^ ]*:(\d+)"))
        self.starts.append(time.monotonic() - began)

    def worker(self) -> Process:
        """Start one more worker, and wait until it delivers."""
        started = self.begin_worker()
        started.wait_until(r"(delivering) from")
        return started

    def begin_worker(self) -> Process:
        """Start one more worker."""
        return self.begin("worker", "worker", "--dev", url=self.worker_url)

    def begin(self, kind: str, *arguments: str, url: str | None = None) -> Process:
        """Start a command of hookline."""
        name = f"{kind}-{next(self._names)}"
        settings = {
            "HOOKLINE_DATABASE": url or self.worker_url,
            "HOOKLINE_HEARTBEAT_S": str(TAKEOVER_S / 5),
            "HOOKLINE_TAKEOVER_S": str(TAKEOVER_S),
            "HOOKLINE_POLL_S": "0.1",
            "HOOKLINE_MAX_IN_FLIGHT": str(IN_FLIGHT),
            "HOOKLINE_CONTACT": name,  # told to the receiver, which knows by it who sent what
            "CHAOS_BUG": self.bug,
            **self.settings(name),
        }
        self._begun.append(Process(self.folder, name, *arguments, settings=settings))
        return self._begun[-1]

    def replace(self, ended: Process, *, waits: bool = True) -> None:
        """Start another process in the place of one that ended; `waits`: until it delivers."""
        if ended is self.api:
            self.serve(waits=waits)
            if not self.is_postgres and self.faults:  # until now there was nobody
                self.faults[-1] = self.faults[-1]._replace(owed_from=time.time())
        else:
            self.workers[self.workers.index(ended)] = self.worker() if waits else self.begin_worker()

    @property
    def hooklines(self) -> list[Process]:
        return [self.api, *self.workers]

    @property
    def senders(self) -> list[Process]:
        """The processes that deliver."""
        return self.workers if self.is_postgres else [self.api]

    def busy(self) -> Process:
        """A process that is sending, chosen by the seed."""
        if not self.is_postgres:
            return self.api

        def choose() -> Process | None:
            owners = [each for each in self.workers if self.database.paths_of(each.child.pid)]
            return self.rng.choice(owners) if owners else None

        return wait_for(choose, "a worker that owns a lane")

    def owner(self, path: str) -> Process | None:
        """Who owns the lane of the endpoint with this path now."""
        if not self.is_postgres:
            return self.api
        owners = (each for each in self.workers if path in (self.database.paths_of(each.child.pid) or ()))
        return next(owners, None)

    # --- what is published ---

    def publish(self, count: int) -> None:
        """Begin to publish."""
        assert self._producer.stdin is not None
        self._is_publishing = True
        self._producer.stdin.write(f"{count}\n")
        self._producer.stdin.flush()

    def published(self) -> None:
        """Wait until the producer has done what it was told."""
        if self._is_publishing and _line(self._producer) != "done":
            raise RuntimeError("the producer broke")
        self._is_publishing = False

    def offer(self, n: int, *, filling: str = "") -> tuple[str, str, Callable[[], tuple[int, str]]]:
        """An event that is not the producer's: its key, its digest, and a function that publishes it once."""
        payload = json.dumps({"offer": n, "filling": filling}).encode()
        body = b'{"type":"chaos.t%d","payload":%b}' % (n % self.scene.endpoints, payload)
        key = f"offer-{n}"

        def publish() -> tuple[int, str]:
            status, answer = self.call("POST", "/v1/events", body, **{"idempotency-key": key})
            return status, answer.get("id", "")

        return key, hashlib.sha256(payload).hexdigest(), publish

    def give(self, n: int, *, filling: str = "") -> str:
        """Publish such an event, once; returns its id."""
        key, digest, publish = self.offer(n, filling=filling)
        self.promise(did="intent", key=key, digest=digest)
        status, id = publish()
        if status != 202:
            raise RuntimeError(f"a publish was answered {status}")
        self.promise(did="ack", key=key, id=id, at=time.time())
        return id

    def promise(self, **line: object) -> None:
        """Note what was promised to somebody other than the producer."""
        with self._promises.open("a") as ledger:
            ledger.write(json.dumps(line) + "\n")

    # --- the API ---

    def call(self, method: str, path: str, body: Any = None, **headers: str) -> tuple[int, dict[str, Any]]:
        """Call the API; returns the status and the answer."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=CEILING_S)
        text = body if body is None or isinstance(body, bytes) else json.dumps(body).encode()
        with contextlib.closing(connection):
            connection.request(method, path, text, {"content-type": "application/json", **headers})
            response = connection.getresponse()
            answer = response.read()
            return response.status, json.loads(answer) if answer else {}

    def create(self, n: int, *, path: str | None = None) -> str:
        """Create the n-th endpoint; returns its id."""
        status, answer = self.call(
            "POST",
            "/v1/endpoints",
            {
                "url": self.address(path or f"/{n}"),
                "events": [f"chaos.t{n}"],
                "secret": self.secret,
                **self.scene.endpoint,
            },
        )
        if status != 201:
            raise RuntimeError(f"an endpoint was refused: {answer}")
        return str(answer["id"])

    def address(self, path: str) -> str:
        """The receiver's address."""
        return f"http://127.0.0.1:{self.receiver_port}{path}"

    # --- what is seen ---

    def order(self, **order: object) -> Any:
        """Tell the receiver how to behave, or ask it something: see receiver.py."""
        assert self._receiver.stdin is not None
        self._receiver.stdin.write(json.dumps(order) + "\n")
        self._receiver.stdin.flush()
        return json.loads(_line(self._receiver))

    def note(
        self, kind: str, process: Process | None = None, *, excuses: bool = True, lasted: float = GRACE_S
    ) -> None:
        """Something happened just now to this process, or to all of them."""
        who = None if process is None else process.name
        if process is not None and not process.lives:
            lasted = float("inf")  # it sent nothing since, even if the receiver reads it later
        self.faults.append(Fault(time.time(), kind, who, excuses, lasted))

    def burials(self) -> list[Fault]:
        """Workers that found they had been taken for dead: they were stopped, cut off, or waited for their turn.

        Others send what they had in flight again, and they may notice much later than it happened.
        """
        return [
            Fault(
                datetime.fromisoformat(at).timestamp() - STARVED_S,
                "buried alive",
                each.name,
                lasted=STARVED_S,
                is_exact=False,
            )
            for each in self._begun
            for at in re.findall(r'"event": "worker.buried".*"timestamp": "([^"]+)"', each.log)
        ]

    def counts(self, process: Process) -> tuple[int, int, int]:
        """How many tasks its event loop has, how many connections to receivers are open, and how many of them idle."""
        file = process.arm_file.with_suffix(".counts")
        file.unlink(missing_ok=True)
        process.child.send_signal(signal.SIGUSR2)
        line = wait_for(lambda: file.read_text() if file.exists() else None, f"what {process.name} counts")
        tasks, connections, idle = map(int, line.split())
        return tasks, connections, idle

    def tasks(self, process: Process) -> int:
        """How many tasks its event loop has."""
        return self.counts(process)[0]

    def rss_mb(self, process: Process) -> float:
        return float(psutil.Process(process.child.pid).memory_info().rss) / 1e6

    def worst(self, name: str, value: float) -> None:
        """Keep the largest value of a figure."""
        self.figures[name] = max(value, self.figures.get(name, value))

    def is_drained(self, seconds: float = 30.0) -> bool:
        """Wait until nothing is pending, for so long times the patience."""
        patience = BUGGY_S if self.bug else min(seconds * self.patience, LONGEST_DRAIN_S)
        with contextlib.suppress(TimeoutError):
            return wait_for(lambda: self.database.pending() == 0, "the drain", patience)
        return False

    @property
    def _receipts(self) -> Path:
        return self.folder / "receipts.jsonl"

    @property
    def _promises(self) -> Path:
        return self.folder / "promises.jsonl"

    def receipts(self) -> list[Receipt]:
        """Everything that arrived so far."""
        with self._receipts.open("rb") as ledger:
            ledger.seek(self._read)
            # A line that is being written has no end yet, and its request no answer.
            whole, end, _ = ledger.read().rpartition(b"\n")
        self._arrived += [Receipt.of(json.loads(line)) for line in whole.splitlines()]
        self._read += len(whole) + len(end)
        return list(self._arrived)

    def promises(self) -> list[dict[str, Any]]:
        if not self._promises.exists():
            return []
        whole, _, _ = self._promises.read_text().rpartition(
            "\n"
        )  # a line that is being written has no end yet
        return [json.loads(line) for line in whole.splitlines()]

    def _helper(self, script: str, ledger: Path, *arguments: str) -> "subprocess.Popen[str]":
        command = [sys.executable, str(HERE / script), str(ledger), *arguments]
        child = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self._helpers.append(child)
        return child

    def _end(self) -> None:
        children: list[subprocess.Popen[Any]] = [*self._helpers, *(each.child for each in self._begun)]
        for child in children:
            child.kill()  # also one that is stopped
            child.wait(CEILING_S)
        for helper in self._helpers:
            for pipe in (helper.stdin, helper.stdout):
                if pipe is not None:
                    with contextlib.suppress(BrokenPipeError):
                        pipe.close()
        self.drag.close()
        if hasattr(self, "database"):
            self.database.close()
        if self.proxy is not None:
            self.proxy.close()
        if self.server is not None:
            self.server.destroy()


def _line(child: "subprocess.Popen[str]") -> str:
    assert child.stdout is not None
    return child.stdout.readline().strip()
