"""Which processes take part, and how are they started and ended?

PostgreSQL or a file, a receiver, a producer, `hookline serve`, and on PostgreSQL workers beside it. All are
children of this process, on loopback, in one temporary folder; whatever still runs at the end is killed.
"""

import base64
import contextlib
import hashlib
import http.client
import json
import os
import random
import re
import signal
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import Self, TypeVar

from tests.chaos.checker import GRACE_S, Fault, Receipt
from tests.chaos.database import Database
from tests.chaos.proxy import Proxy
from tests.chaos.scene import IN_FLIGHT, TAKEOVER_S, Scene
from tests.postgres_server import PostgresServer, installations

T = TypeVar("T")

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
CEILING_S = 30.0


class Process:
    """A `hookline` of this run; `bug` is planted in it."""

    def __init__(self, system: "System", name: str, *arguments: str) -> None:
        self._arm_file = system.folder / f"{name}.arm"
        self._log = system.folder / f"{name}.log"
        inherited = {key: value for key, value in os.environ.items() if not key.startswith("HOOKLINE_")}
        settings = {
            "HOOKLINE_DATABASE": system.url if arguments[0] == "serve" else system.worker_url,
            "HOOKLINE_HEARTBEAT_S": str(TAKEOVER_S / 5),
            "HOOKLINE_TAKEOVER_S": str(TAKEOVER_S),
            "HOOKLINE_POLL_S": "0.1",
            "HOOKLINE_MAX_IN_FLIGHT": str(IN_FLIGHT),
            "CHAOS_ARM": str(self._arm_file),
            "CHAOS_BUG": system.bug,
            **system.scene.settings,
        }
        with self._log.open("wb") as log:
            self.child = subprocess.Popen(
                [sys.executable, "-m", "tests.chaos.planted", *arguments],
                cwd=ROOT,
                env={**inherited, **settings},
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
            )

    @property
    def log(self) -> str:
        return self._log.read_text(errors="replace")

    def wait_until(self, pattern: str) -> str:
        """Wait for a line that matches; what its group caught."""

        def find() -> "re.Match[str] | None":
            if self.child.poll() is not None:
                raise RuntimeError(f"hookline ended ({self.child.returncode}):\n{self.log[-2000:]}")
            return re.search(pattern, self.log)

        return wait_for(find, f"the line {pattern!r}").group(1)

    def arm(self, failpoints: str) -> None:
        """Switch failpoints on while it runs."""
        self._arm_file.write_text(failpoints)
        self.child.send_signal(signal.SIGUSR1)

    def kill(self) -> None:
        self.child.kill()
        self.child.wait(CEILING_S)


class System:
    """Everything, running."""

    def __init__(self, folder: Path, *, store: str, seed: int, bug: str = "", scene: Scene) -> None:
        self.folder = folder
        self.scene = scene
        self.bug = bug
        self.rng = random.Random(seed)
        self.faults: list[Fault] = []
        self.figures: dict[str, float] = {}  # what a row measured beside the ledgers
        self.starts: list[float] = []  # seconds; the first is of an empty database, with nothing to recover
        self.server: PostgresServer | None = None
        self.workers: list[Process] = []
        self._names = iter(range(1, 1_000_000))
        self._helpers: list[subprocess.Popen[str]] = []
        self._wanted = 0 if store == "sqlite" else scene.workers
        self._is_postgres = store == "postgres"
        self.url = f"sqlite:///{folder}/hookline.db"
        self.worker_url = self.url
        self.proxy: Proxy | None = None  # between workers and database, where a row cuts them off
        self.port = 0
        self._is_publishing = False

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

    def _start_database(self) -> None:
        if self._is_postgres:
            found = installations()
            if not found:
                raise RuntimeError("no PostgreSQL on this machine: see CONTRIBUTING.md")
            self.server = PostgresServer(found[0])
            self.server.start()
            self.url = self.worker_url = self.server.url(self.server.create_database())
            if self.scene.proxied:
                self.proxy = Proxy(self.server.port)
                self.worker_url = self.url.replace(f":{self.server.port}/", f":{self.proxy.port}/")
        self.database = Database(self.url)

    def _start(self) -> None:
        self._start_database()
        secret = "whsec_" + base64.b64encode(self.rng.randbytes(32)).decode()
        self._receiver = self._helper("receiver.py", self._receipts, secret, str(self.scene.slowest_s))
        receiver_port = int(_line(self._receiver))
        self.serve()
        self.workers = [self.worker() for _ in range(self._wanted)]
        for n in range(self.scene.endpoints):
            self._create(f"http://127.0.0.1:{receiver_port}/{n}", f"chaos.t{n}", secret)
        self._producer = self._helper(
            "producer.py", self._promises, str(self.port), str(self.scene.endpoints)
        )

    def serve(self) -> None:
        """Start the API, on the port it had; on PostgreSQL it leaves delivering to the workers."""
        flags = ["--no-worker"] if self._is_postgres else []
        name = f"serve-{next(self._names)}"
        self.api = Process(self, name, "serve", "--dev", "--port", str(self.port), *flags)
        began = time.monotonic()
        self.port = int(self.api.wait_until(r"listening on http://[^ ]*:(\d+)"))
        self.starts.append(time.monotonic() - began)

    def worker(self) -> Process:
        """One more worker, delivering."""
        started = self.begin_worker()
        started.wait_until(r"(delivering) from")
        return started

    def begin_worker(self) -> Process:
        """One more worker, starting."""
        return Process(self, f"worker-{next(self._names)}", "worker", "--dev")

    def replace(self, ended: Process) -> None:
        """Another one in the place of one that ended."""
        if ended is self.api:
            self.serve()
            if not self._is_postgres:  # until now there was nobody
                self.faults[-1] = self.faults[-1]._replace(owed_from=time.time())
        else:
            self.workers[self.workers.index(ended)] = self.worker()

    def publish(self, count: int) -> None:
        """Begin to publish."""
        assert self._producer.stdin is not None
        self._is_publishing = True
        self._producer.stdin.write(f"{count}\n")
        self._producer.stdin.flush()

    def offer(self, n: int, *, filling: str = "") -> tuple[str, str, Callable[[], tuple[int, str]]]:
        """An event that is not the producer's: its key, its digest, and how to publish it once."""
        payload = json.dumps({"offer": n, "filling": filling}).encode()
        body = b'{"type":"chaos.t%d","payload":%b}' % (n % self.scene.endpoints, payload)
        headers = {"content-type": "application/json", "idempotency-key": f"offer-{n}"}

        def publish() -> tuple[int, str]:
            connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=CEILING_S)
            with contextlib.closing(connection):
                connection.request("POST", "/v1/events", body, headers)
                response = connection.getresponse()
                answer = json.loads(response.read())
                return response.status, answer.get("id", "")

        return headers["idempotency-key"], hashlib.sha256(payload).hexdigest(), publish

    def promise(self, **line: object) -> None:
        """Note what was promised to somebody who is not the producer."""
        with self._promises.open("a") as ledger:
            ledger.write(json.dumps(line) + "\n")

    def published(self) -> None:
        """Wait until the producer has done what it was told."""
        if self._is_publishing and _line(self._producer) != "done":
            raise RuntimeError("the producer broke")
        self._is_publishing = False

    def busy(self) -> Process:
        """A process that is sending, by the seed."""
        if not self._is_postgres:
            return self.api

        def choose() -> Process | None:
            owners = [each for each in self.workers if self.database.paths_of(each.child.pid)]
            return self.rng.choice(owners) if owners else None

        return wait_for(choose, "a worker that owns a lane")

    def note(
        self, kind: str, process: Process | None = None, *, excuses: bool = True, lasted: float = GRACE_S
    ) -> None:
        """Something happened just now to the lanes of this process, or to all of them."""
        at = time.time()
        paths = None if process is None else self.database.paths_of(process.child.pid)
        self.faults.append(Fault(at, kind, paths, excuses, lasted))

    def is_drained(self, seconds: float) -> bool:
        """Wait until nothing is pending."""
        with contextlib.suppress(TimeoutError):
            return wait_for(lambda: self.database.pending() == 0, "the drain", seconds)
        return False

    @property
    def _receipts(self) -> Path:
        return self.folder / "receipts.jsonl"

    @property
    def _promises(self) -> Path:
        return self.folder / "promises.jsonl"

    def receipts(self) -> list[Receipt]:
        lines = map(json.loads, self._receipts.read_text().splitlines())
        return [
            Receipt(each["id"], each["digest"], each["path"], each["began"], each["signed"], each["ended"])
            for each in lines
        ]

    def promises(self) -> list[dict[str, object]]:
        if not self._promises.exists():
            return []
        return [json.loads(line) for line in self._promises.read_text().splitlines()]

    def _helper(self, script: str, ledger: Path, *arguments: str) -> "subprocess.Popen[str]":
        command = [sys.executable, str(HERE / script), str(ledger), *arguments]
        child = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self._helpers.append(child)
        return child

    def _create(self, url: str, event_type: str, secret: str) -> None:
        endpoint = {
            "url": url,
            "events": [event_type],
            "secret": secret,
            **self.scene.endpoint,
        }
        request = urllib.request.Request(
            f"http://127.0.0.1:{self.port}/v1/endpoints",
            json.dumps(endpoint).encode(),
            {"content-type": "application/json"},
        )
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        opener.open(request, timeout=CEILING_S).close()

    def _end(self) -> None:
        ours = [*self.workers, *([self.api] if hasattr(self, "api") else [])]
        for child in [*self._helpers, *(each.child for each in ours)]:
            child.kill()  # also one that is stopped
            child.wait(CEILING_S)
        for helper in self._helpers:
            for pipe in (helper.stdin, helper.stdout):
                if pipe is not None:
                    with contextlib.suppress(BrokenPipeError):
                        pipe.close()
        if self.proxy is not None:
            self.proxy.close()
        if self.server is not None:
            self.server.destroy()


def wait_for(look: Callable[[], T | None], what: str, seconds: float = CEILING_S) -> T:
    """The first true thing that a look finds."""
    deadline = time.monotonic() + seconds
    while not (found := look()):
        if time.monotonic() > deadline:
            raise TimeoutError(f"waited {seconds:g} s for {what}")
        time.sleep(0.02)
    return found


def _line(child: "subprocess.Popen[str]") -> str:
    assert child.stdout is not None
    return child.stdout.readline().strip()
