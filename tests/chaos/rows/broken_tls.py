"""Rows: receivers whose TLS cannot be trusted, or does not come about."""

from collections import Counter
from collections.abc import Mapping
from typing import Any

from tests.chaos.checker import Limits
from tests.chaos.database import End
from tests.chaos.process import wait_for
from tests.chaos.row import BOTH, Row, publish_each, size
from tests.chaos.scene import Scene
from tests.chaos.system import System
from tests.chaos.tls_peers import HERE, MARKER, Peers

TIMEOUT_S = 2.0  # of those that hang: less than a handshake may take in any case
LONG_S = 20.0  # of the others
LATE_S = 0.2  # a slot may be free so long after its deadline
GOOD = "good"
ONCE = {"schedule": [0], "jitter": "none"}


class Strangers(System):
    """The usual, and receivers with TLS; one of them is trusted."""

    def __init__(self, folder: Any, **arguments: Any) -> None:
        super().__init__(folder, **arguments)
        self.peers = Peers(folder)
        self.expected = 0  # requests to each so far

    def settings(self, name: str) -> Mapping[str, str]:
        return {**super().settings(name), "HOOKLINE_CA_FILE": str(self.peers.authorities)}

    def _start(self) -> None:
        super()._start()
        self.of_each = size(self, 4, 25)
        self.types: list[str] = []
        for name, peer in ((GOOD, self.peers.good), *self.peers.bad.items()):
            for n in range(self.of_each):
                self.types.append(f"tls.{name.replace('-', '_')}.n{n}")
                self.create_one(f"https://{HERE}:{peer.port}/{name}/{n}", self.types[-1])

    def create_one(self, url: str, type: str) -> None:
        fields = {
            "timeout_ms": int(1_000 * (TIMEOUT_S if "/silence/" in url else LONG_S)),
            "retry": ONCE,
            "circuit": None,
        }
        status, answer = self.call("POST", "/v1/endpoints", {"url": url, "events": [type], **fields})
        if status != 201:
            raise RuntimeError(f"an endpoint was refused: {answer}")

    def _end(self) -> None:
        super()._end()
        self.peers.close()


def meet_strangers(system: System) -> list[str]:
    """F15: every way in which TLS fails, beside a receiver whose TLS is good and some that have none."""
    assert isinstance(system, Strangers)
    system.publish(20)
    publish_each(system, system.types, round=system.expected, text=MARKER.decode())
    system.expected += system.of_each
    system.published()
    if not system.is_drained():
        left = Counter(_name(each) for each in system.database.ends() if each.state == "pending")
        return [f"tls: attempts at {dict(sorted(left.items()))} never ended"]
    return [*_judge_ends(system), *_judge_what_was_seen(system)]


def _name(end: End) -> str:
    return end.url.split("/")[3]


def _judge_ends(system: Strangers) -> list[str]:
    """Each failed attempt is an error of TLS and ended in time; the good one was delivered."""
    ends = [each for each in system.database.ends() if each.url.startswith("https:")]
    wrong = []
    for name in (GOOD, *system.peers.bad):
        found = Counter((each.state, each.status, each.error) for each in ends if _name(each) == name)
        expected = ("delivered", 200, None) if name == GOOD else ("dead", None, "tls")
        if found != {expected: system.expected}:
            wrong.append(f"tls: of {system.expected} to {name} {dict(found)} came out, expected {expected}")
    slowest = max(each.duration or 0.0 for each in ends if _name(each) == "silence")
    system.worst("slot_s", slowest)
    if slowest > (TIMEOUT_S + LATE_S) * system.leeway:
        wrong.append(f"slots: one was held for {slowest:.2f} s, allowed {TIMEOUT_S + LATE_S:g}")
    return wrong


def _judge_what_was_seen(system: Strangers) -> list[str]:
    """No stranger could read a byte of a request, and no connection to one is left."""
    wrong = []
    for name, peer in system.peers.bad.items():
        if peer.readable or peer.requests:
            wrong.append(f"seen: {name} could read {peer.readable} bytes of {peer.requests} requests")
        if peer.has_seen_the_body:
            wrong.append(f"seen: {name} got a body as it is")
        if peer.connections != system.expected:
            wrong.append(f"seen: {name} had {peer.connections} connections, expected {system.expected}")
    good = system.peers.good
    if good.has_seen_the_body:
        wrong.append("seen: the good one got a body as it is")
    if good.requests != system.expected:
        wrong.append(f"seen: the good one had {good.requests} requests, expected {system.expected}")
    try:
        wait_for(lambda: not any(each.open for each in system.peers.bad.values()), "the last connection", 10)
    except TimeoutError:
        left = {name: peer.open for name, peer in system.peers.bad.items() if peer.open}
        wrong.append(f"left: connections are open at {left}")
    return wrong


ROWS = {
    "F15": Row(
        "TLS that cannot be trusted, that fails, or that hangs",
        BOTH,
        1,
        "certificates-unchecked",
        "seen",
        meet_strangers,
        Limits(deaths=frozenset({"exhausted"})),
        Scene(workers=1, endpoints=2, slowest_s=0.05),
        everyday=True,
        system=Strangers,
    ),
}
