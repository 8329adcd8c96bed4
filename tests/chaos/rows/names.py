"""Rows: names that are not found, and names that point elsewhere at every look."""

import os
import secrets
import socket
import time
from collections import Counter
from collections.abc import Callable, Mapping
from typing import Any
from urllib.parse import urlsplit

from hookline.rules.lookups import NOT_FOUND_S
from tests.chaos.checker import Limits
from tests.chaos.database import End
from tests.chaos.figures import percentile
from tests.chaos.process import CEILING_S, Process, wait_for
from tests.chaos.resolving import HEALTHY, INSIDE, OUTSIDE, Names
from tests.chaos.row import BOTH, Row, publish_each, size
from tests.chaos.scene import Scene
from tests.chaos.system import System
from tests.security import namespace

OF_EACH = 20  # names: a hundred together
LOST = ("silent", "failing", "truncated", "unknown")
FLIP = "flip"
AGAIN = ("failing", "truncated", "unknown", FLIP)  # a silent one may still be asked for
BUDGET_S = 5.0  # of a lookup
LATE_S = 0.2  # a lookup may end so long after its budget
FORGOTTEN_S = 30.0  # a failed lookup is
SLOWER = 2.0
FLOORS_MS = 25.0  # a ratio of times below this is due to scheduling, not to hookline
FIELDS = {"retry": {"schedule": [0], "jitter": "none"}, "circuit": None, "timeout_ms": 20_000}


class Strayed(System):
    """hookline as it is for strangers, in a network where every name and address is ours."""

    def __init__(self, folder: Any, **arguments: Any) -> None:
        super().__init__(folder, **arguments)
        self._key = secrets.token_urlsafe(24)
        self.names = Names(folder, of_each=OF_EACH)
        self.rounds = self.mended = 0

    def settings(self, name: str) -> Mapping[str, str]:
        return {**super().settings(name), "HOOKLINE_API_KEY": self._key}

    def begin(self, kind: str, *arguments: str, url: str | None = None) -> Process:
        # In development mode every address may be dialled.
        return super().begin(kind, *(each for each in arguments if each != "--dev"), url=url)

    def call(self, method: str, path: str, body: Any = None, **headers: str) -> tuple[int, dict[str, Any]]:
        return super().call(method, path, body, authorization=f"Bearer {self._key}", **headers)

    def _start(self) -> None:
        self._hear_what_is_inside()
        self._start_database()
        self._receipts.touch()
        self.serve()
        self.workers = [self.worker() for _ in range(self._wanted)]
        self.types = [f"lost.{kind}.n{n}" for kind in (*LOST, FLIP) for n in range(OF_EACH)]
        for each in self.types:
            _, kind, n = each.split(".")
            self.create_at(f"{n}.{kind}.test", each)
        self.create_at(HEALTHY, "healthy")

    def create_at(self, name: str, type: str) -> None:
        """An endpoint at this name."""
        url = f"http://{name}:{self.names.port}/"
        status, answer = self.call("POST", "/v1/endpoints", {"url": url, "events": [type], **FIELDS})
        if status != 201:
            raise RuntimeError(f"an endpoint was refused: {answer}")

    def _hear_what_is_inside(self) -> None:
        """Show that a connection that must not be made would be seen."""
        socket.create_connection((INSIDE, self.names.port), timeout=CEILING_S).close()
        wait_for(lambda: self.names.dialled_inside == [INSIDE], "a connection inside")
        self.names.dialled_inside.clear()

    def _end(self) -> None:
        super()._end()
        self.names.close()


def lose_names(system: System) -> list[str]:
    """F14: names of which nothing is heard, that fail, that are unknown, cut off, or move in and out."""
    assert isinstance(system, Strayed)
    mended = f"m{system.mended}.mended.test"
    system.mended += 1
    system.create_at(mended, f"mended.n{system.mended}")
    before = _Steady(system, size(system, 5, 200), size(system, 100, 50) / 1e3)
    publish_each(system, [f"mended.n{system.mended}"], look="first")
    if not system.is_drained():
        return ["names: an unknown one was not given up"]
    failed_at = time.monotonic()
    before.send()
    beside = _Steady(system, size(system, 18, 300), size(system, 400, 50) / 1e3)
    asked = {kind: system.names.asked(f"n0.{kind}.test") for kind in AGAIN}
    _lose(system)
    beside.send(every_s=3.0, also=lambda: _lose(system) if size(system, 0, 1) else None)
    if not system.is_drained():
        left = Counter(_kind(each) for each in system.database.ends() if each.state == "pending")
        return [f"{kind}: {count} attempts never ended" for kind, count in sorted(left.items())]
    unasked = [kind for kind, times in asked.items() if system.names.asked(f"n0.{kind}.test") == times]
    wrong = [f"names: {kind} ones were not looked up again" for kind in unasked]
    system.names.zone[mended] = [OUTSIDE]
    forgotten_s = size(system, int(min(NOT_FOUND_S + 1, FORGOTTEN_S)), int(FORGOTTEN_S))
    time.sleep(max(0.0, failed_at + forgotten_s - time.monotonic()))
    again = publish_each(system, [f"mended.n{system.mended}"], look="second")
    if not system.is_drained():
        return [*wrong, "names: a mended one was not tried"]
    if set(again) - {each.id for each in system.names.arrivals}:
        wrong.append(f"names: a failure was still remembered after {FORGOTTEN_S:g} s")
    return wrong + _judge_ends(system) + _judge_the_healthy(system, before, beside)


class _Steady:
    """Events for the healthy name, one after the other."""

    def __init__(self, system: Strayed, count: int, every_s: float) -> None:
        self._system = system
        self._count = count
        self._every_s = every_s
        self.sent_at: dict[str, float] = {}

    def send(self, *, every_s: float = 1e9, also: Callable[[], None] = lambda: None) -> None:
        """Publish them at their pace; and do this other thing now and then."""
        due = time.monotonic()
        next_at = due + every_s
        for n in range(self._count):
            time.sleep(max(0.0, due - time.monotonic()))
            due += self._every_s
            if due > next_at:
                next_at += every_s
                also()
            at = time.time()
            [id] = publish_each(self._system, ["healthy"], number=n, at=at)
            self.sent_at[id] = at

    def p99_ms(self) -> float:
        found = {each.id: each.at for each in reversed(self._system.names.arrivals)}
        waited = [found[id] - at for id, at in self.sent_at.items() if id in found]
        return 1e3 * percentile(waited, 0.99)


def _lose(system: Strayed) -> None:
    system.rounds += 1
    publish_each(system, system.types, round=system.rounds)


def _kind(end: End) -> str:
    host = urlsplit(end.url).hostname or ""
    return host if host == HEALTHY else host.split(".")[1]


def _judge_ends(system: Strayed) -> list[str]:
    ends = [each for each in system.database.ends() if _kind(each) in (*LOST, FLIP)]
    wrong = []
    for kind in LOST:
        found = Counter((each.state, each.error) for each in ends if _kind(each) == kind)
        if found != {("dead", "dns"): OF_EACH * system.rounds}:
            wrong.append(f"{kind}: of {OF_EACH * system.rounds} {dict(found)}, expected dns errors")
    flipped = Counter((each.state, each.error) for each in ends if _kind(each) == FLIP)
    for end in (("delivered", None), ("dead", "blocked_address")):
        system.worst(f"flips_{end[1] or end[0]}", flipped[end])
        if not flipped.pop(end, 0):
            wrong.append(f"flip: none was {end[1] or end[0]}")
    if flipped:
        wrong.append(f"flip: {dict(flipped)}, expected deliveries and blocked addresses")
    if system.names.dialled_inside:
        wrong.append(f"flip: {sorted(set(system.names.dialled_inside))} dialled")
    looked_for = max((each.duration or 0.0 for each in ends if each.error == "dns"), default=0.0)
    system.worst("lookup_s", looked_for)
    if looked_for > (BUDGET_S + LATE_S) * system.leeway:
        wrong.append(f"names: one was looked up for {looked_for:.2f} s, allowed {BUDGET_S + LATE_S:g}")
    return wrong


def _judge_the_healthy(system: Strayed, before: _Steady, beside: _Steady) -> list[str]:
    arrived = Counter(each.id for each in system.names.arrivals if each.host == HEALTHY)
    sent = before.sent_at.keys() | beside.sent_at.keys()
    wrong = []
    if missing := sent - arrived.keys():
        wrong.append(f"healthy: {len(missing)} of {len(sent)} were not delivered")
    if twice := sum(count > 1 for count in arrived.values()):
        wrong.append(f"healthy: {twice} arrived twice")
    base_ms, beside_ms = before.p99_ms(), beside.p99_ms()
    ratio = beside_ms / max(base_ms, FLOORS_MS)
    system.worst("healthy_p99_before_ms", base_ms)
    system.worst("healthy_p99_ms", beside_ms)
    system.worst("healthy_p99_ratio", ratio)
    if ratio > SLOWER * system.leeway:
        wrong.append(f"slower: the healthy p99 is {ratio:.1f} times as long as before, allowed {SLOWER:g}")
    return wrong


def _missing() -> str | None:
    if os.geteuid() != 0:
        return "root"
    return namespace.missing() or None


ROWS = {
    "F14": Row(
        "a hundred names that are not found or move, beside one that is healthy",
        BOTH,
        5,
        "one-lookup-at-a-time",
        "healthy",
        lose_names,
        Limits(deaths=frozenset({"exhausted"})),
        Scene(workers=1, endpoints=0),
        everyday=True,
        system=Strayed,
        needs=(_missing,),
        own_network=True,
    ),
}
