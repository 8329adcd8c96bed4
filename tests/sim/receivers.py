"""The endpoints of a simulated world, and what they remember.

Each has a personality that may change. It records every request before it answers; the checks compare this ledger with
the store.
"""

import json
from collections.abc import Callable
from email.utils import formatdate
from random import Random
from typing import TYPE_CHECKING

from hookline.ids import read
from tests.sim.clock import EPOCH
from tests.sim.loop import Owner

if TYPE_CHECKING:
    from tests.sim.net import SimTransport
    from tests.sim.process import Process
    from tests.sim.world import World

PERSONALITIES = (
    "ok", "slow", "drip", "flap", "rejecting", "failing", "throttling", "hanging", "resetting", "forgetful", "lying",
)  # fmt: skip


class Receipt:
    """One request, from its first byte to the end of its answer."""

    __slots__ = (
        "asked",
        "body",
        "dialled",
        "ended_at",
        "epoch",
        "event",
        "headers",
        "is_cut",
        "number",
        "place",
        "process",
        "processed",
        "replays",
        "replied",
        "seen",
        "started_at",
        "transport",
        "was_reused",
        "worker",
    )

    def __init__(
        self,
        place: int,
        transport: "SimTransport",
        headers: dict[str, str],
        body: bytes,
        at: float,
        worker: bytes,
    ) -> None:
        self.place = place  # which endpoint
        self.transport = transport
        self.process: Process = transport.process
        self.worker = worker
        self.headers = headers
        self.event = read("event", headers["webhook-id"])
        self.number = int(headers["webhook-attempt"])
        self.body = body
        self.started_at = at
        self.processed = False  # the endpoint acted on it
        self.replied: int | None = None  # with this status
        self.asked: float | None = None  # Retry-After, in seconds
        self.seen = False  # the head of the reply reached the sender
        self.ended_at: float | None = None  # answered, cut off or given up
        self.is_cut = False  # the connection was lost before anything came back
        self.dialled = 0.0  # seconds between its admission and its first byte
        self.was_reused = transport.is_reused
        self.epoch = 0  # of the lane when it began
        self.replays = 0


class Receivers:
    """All endpoints, on one network."""

    def __init__(self, world: "World", rng: Random) -> None:
        self._world = world
        self._rng = rng
        self.owner = Owner("receivers")
        self.moods: dict[int, str] = {}
        self.ledger: list[Receipt] = []
        self.poison: bytes | None = None  # an event that kills the process that sends it
        self.is_poisoned = rng.random() < 0.1
        self.is_calm = False  # all endpoints answer with success from now on

    def arrive(self, transport: "SimTransport", data: bytes) -> Receipt:
        """A request was written; it takes its time to arrive."""
        world = self._world
        head, _, body = data.partition(b"\r\n\r\n")
        lines = head.decode("ascii").split("\r\n")
        headers = dict(line.split(": ", 1) for line in lines[1:])
        place = int(lines[0].split("/")[1].partition(" ")[0].partition("?")[0])
        receipt = Receipt(place, transport, headers, body, world.loop.time(), transport.process.worker_id)
        self.ledger.append(receipt)
        world.log("start", transport.process.name, place, headers["webhook-id"], receipt.number)
        world.checks.started(receipt)
        world.loop.call_later(world.faults.travel(), self._serve, receipt, context=self.owner.context)
        return receipt

    def _serve(self, receipt: Receipt) -> None:
        if receipt.process.owner.is_dropped and self._world.faults.coin(0.3):
            return  # it never left the dead process's machine
        if self._is_deadly(receipt):
            receipt.process.was_killed_by = receipt.event
            self._world.crash(receipt.process, at="poison")
            return
        self._world.faults.on_request(receipt.process)
        mood = "ok" if self.is_calm else self.moods.get(receipt.place, "ok")
        if mood == "flap":
            mood = "ok" if int(self._world.loop.time() / 3.0 + receipt.place) % 2 else "failing"
        getattr(self, f"_{mood}")(receipt)

    def _is_deadly(self, receipt: Receipt) -> bool:
        if not self.is_poisoned or self._world.faults.is_over or "crash" not in self._world.faults.on:
            return False
        if self.poison is None and self._rng.random() < 0.1:
            self.poison = receipt.event
        if receipt.event != self.poison or receipt.process.owner.is_dropped:
            return False
        self._world.faults.happened("crash")
        return True

    # --- personalities ---

    def _ok(self, receipt: Receipt) -> None:
        receipt.processed = True
        self._reply(receipt, 200, after=self._rng.uniform(0.005, 0.05))

    def _slow(self, receipt: Receipt) -> None:
        receipt.processed = True
        self._reply(receipt, 200, after=self._rng.uniform(0.4, 1.1) * self._timeout(receipt))

    def _stalling(self, receipt: Receipt) -> None:
        """Answers with success, sometimes only just in time; used by a scene."""
        if self._rng.random() < 0.2:
            receipt.processed = True
            self._reply(receipt, 200, after=0.9 * self._timeout(receipt))
        else:
            self._ok(receipt)

    def _drip(self, receipt: Receipt) -> None:
        """The head at once, the body in drops: sometimes soon enough."""
        receipt.processed = True
        pieces = self._rng.randrange(2, 6)
        pause = self._rng.uniform(0.1, 1.3) * self._timeout(receipt) / pieces
        self._answer(receipt, 200, b"", length=pieces, ends=False)

        def drop(left: int) -> None:
            receipt.transport.reply(b".", None if left else self._ended(receipt))
            if left:
                self._later(pause, drop, left - 1)

        self._later(pause, drop, pieces - 1)

    def _rejecting(self, receipt: Receipt) -> None:
        gone = self._rng.random() < 0.05
        self._reply(receipt, 410 if gone else self._rng.choice((400, 404, 422)), after=0.02)

    def _failing(self, receipt: Receipt) -> None:
        receipt.processed = self._rng.random() < 0.3
        self._reply(receipt, self._rng.choice((500, 502, 503)), after=self._rng.uniform(0.005, 0.2))

    def _throttling(self, receipt: Receipt) -> None:
        seconds = self._rng.randrange(1, 5)
        at = EPOCH + self._world.loop.time() + seconds
        text = str(seconds) if self._rng.random() < 0.7 else formatdate(at, usegmt=True)
        receipt.asked = (
            float(seconds) if text.isdigit() else None
        )  # a date depends on the sender's wall clock
        self._reply(receipt, self._rng.choice((429, 503)), after=0.02, fields=f"retry-after: {text}\r\n")

    def _insistent(self, receipt: Receipt) -> None:
        """Fails, and at the next request sends a Retry-After longer than the run."""
        if self._rng.random() < 0.6:
            self._failing(receipt)
            return
        text = self._rng.choice(("9" * 20, "9" * 60, "86400", "Fri, 31 Dec 9999 23:59:59 GMT"))
        self._reply(receipt, 429, after=0.02, fields=f"retry-after: {text}\r\n")

    def _hanging(self, receipt: Receipt) -> None:
        receipt.processed = self._rng.random() < 0.5

    def _resetting(self, receipt: Receipt) -> None:
        self._hang_up(receipt, reset=self._rng.random() < 0.7)

    def _forgetful(self, receipt: Receipt) -> None:
        """Processes the request, but its answer is lost."""
        receipt.processed = True
        self._hang_up(receipt, reset=self._rng.random() < 0.7)

    def _lying(self, receipt: Receipt) -> None:
        receipt.processed = self._rng.random() < 0.5
        lie = self._rng.choice(
            (
                b"HTTP/1.1 200 OK\r\ncontent-length: 5\r\n",
                b"HTTP/9.9 200 OK\r\n\r\n",
                b"\x16\x03\x01\x02\x00nonsense\r\n\r\n",
                b"HTTP/1.1 302 Found\r\nlocation: http://h0.sim/0\r\ncontent-length: 0\r\n\r\n",
                b"HTTP/1.1 500 Oops\r\ncontent-length: 400\r\n\r\nfewer",
            )
        )
        is_whole = b"302" in lie
        if is_whole:
            receipt.replied = 302
        receipt.transport.reply(lie, self._ended(receipt) if is_whole else None)
        self._later(0.05, self._hang_up, receipt, False)

    # --- how they answer ---

    def _timeout(self, receipt: Receipt) -> float:
        return self._world.timeout_of(receipt.place)

    def _reply(self, receipt: Receipt, status: int, *, after: float, fields: str = "") -> None:
        self._later(after, self._answer, receipt, status, json.dumps({"n": receipt.number}).encode(), fields)

    def _answer(
        self,
        receipt: Receipt,
        status: int,
        body: bytes,
        fields: str = "",
        *,
        length: int | None = None,
        ends: bool = True,
    ) -> None:
        receipt.replied = status
        if self._world.faults.answer_is_lost():
            self._hang_up(receipt, True)
            return
        head = f"HTTP/1.1 {status} X\r\ncontent-length: {len(body) if length is None else length}\r\n{fields}\r\n"

        def arrived() -> None:
            receipt.seen = True
            if ends:
                receipt.ended_at = self._world.loop.time()

        receipt.transport.reply(head.encode() + body, arrived)

    def _ended(self, receipt: Receipt) -> Callable[[], None]:
        def ended() -> None:
            receipt.seen = True
            receipt.ended_at = self._world.loop.time()

        return ended

    def _hang_up(self, receipt: Receipt, reset: bool) -> None:
        receipt.transport.hang_up(reset=reset)

    def _later(self, after: float, what: Callable[..., None], *args: object) -> None:
        self._world.loop.call_later(after, what, *args, context=self.owner.context)
