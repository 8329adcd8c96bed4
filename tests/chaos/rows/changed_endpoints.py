"""Rows: an operator changes an endpoint while deliveries are under way and waiting."""

import base64
import time
from typing import NamedTuple

from tests.chaos.checker import Limits
from tests.chaos.process import wait_for
from tests.chaos.row import BOTH, Row
from tests.chaos.scene import ENDPOINT, Scene
from tests.chaos.system import System

EACH = 8  # events for each endpoint that is changed
FLOW = 120  # events for all of them
CAP = 2
HEARD_S = 1.0  # a change holds for every attempt that starts this much later
LONGEST_S = 10.0  # however slow the machine is


class Changed(NamedTuple):
    """An endpoint, and what was published to it."""

    n: int
    id: str
    path: str
    events: list[str]


def change_endpoints(system: System) -> list[str]:
    """F32: one deleted, one disabled, one moved, one given another secret, each with some under way."""
    trial = int(system.figures.get("changes", 0)) // 4
    system.figures["changes"] = (trial + 1) * 4
    chosen = [(trial * 4 + n) % system.scene.endpoints for n in range(4)]
    system.publish(FLOW)
    system.published()
    if not system.is_drained():
        return ["changed: what was published before is not delivered"]
    for n in chosen:
        system.order(path=f"/{n}", hold=True)
    given = len(system.promises())  # numbers that were not used before
    every = [
        Changed(
            n,
            system.endpoints[n],
            f"/{n}",
            [system.give((given + k) * system.scene.endpoints + n) for k in range(EACH)],
        )
        for n in chosen
    ]
    wait_for(lambda: _all_open(system, every), "requests under way to each of them")
    deleted, disabled, moved, rotated = every
    new_path = f"/moved-{trial}"
    secret = "whsec_" + base64.b64encode(system.rng.randbytes(32)).decode()
    system.order(key=secret)
    _do(system, "DELETE", f"/v1/endpoints/{deleted.id}")
    _do(system, "POST", f"/v1/endpoints/{disabled.id}/disable", {})
    _do(system, "PATCH", f"/v1/endpoints/{moved.id}", {"url": system.address(new_path)})
    _do(system, "POST", f"/v1/endpoints/{rotated.id}/secret/rotate", {"secret": secret, "overlap_s": 3600})
    changed = time.time()
    time.sleep(min(HEARD_S * system.patience, LONGEST_S))
    released = time.time()
    for each in every:
        system.order(path=each.path, wait=0.0)
    wrong = _look(system, every, new_path, changed=changed, released=released)
    _do(system, "POST", f"/v1/endpoints/{disabled.id}/enable", {})
    _do(system, "PATCH", f"/v1/endpoints/{moved.id}", {"url": system.address(moved.path)})
    _do(
        system, "DELETE", f"/v1/endpoints/{rotated.id}"
    )  # another trial may want to rotate it, in its overlap
    for each in (deleted, rotated):
        system.endpoints[each.n] = system.create(each.n)
    return wrong


def _look(
    system: System, every: list[Changed], new_path: str, *, changed: float, released: float
) -> list[str]:
    deleted, disabled, moved, rotated = every
    wrong = []

    def is_done() -> bool:
        stored = system.database.rows()
        finished = (*deleted.events, *moved.events, *rotated.events)
        return all(stored[id].state != "pending" for id in finished)

    wait_for(is_done, "the end of what is not disabled")
    stored = system.database.rows()
    cancelled = [stored[id] for id in deleted.events if stored[id].state == "cancelled"]
    if not cancelled or any(each.reason != "endpoint_deleted" for each in cancelled):
        wrong.append(f"changed: of a deleted endpoint {len(cancelled)} were cancelled, {cancelled[:1]}")
    waiting = sum(stored[id].state == "pending" for id in disabled.events)
    if waiting < EACH - CAP:
        wrong.append(f"changed: of a disabled endpoint only {waiting} still wait")
    starts = system.database.starts()
    later = [
        each
        for each in system.receipts()
        if starts.get((each.id, each.attempt), each.began) >= released and each.began > changed
    ]
    for kind, endpoint in (("deleted", deleted), ("disabled", disabled), ("moved", moved)):
        if late := sum(each.path == endpoint.path for each in later):
            wrong.append(
                f"changed: {late} went to a {kind} endpoint's address {released - changed:.1f} s later"
            )
    if not any(each.path == new_path for each in later):
        wrong.append("changed: nothing went to the new address")
    anew = [each for each in later if each.path == rotated.path]
    if not anew or any(len(each.keys) < 2 for each in anew):
        wrong.append(f"changed: after a rotation not all of {len(anew)} were signed with both secrets")
    return wrong


def _all_open(system: System, every: list[Changed]) -> bool:
    under_way = system.order(ask="open")
    # One is enough: a worker that took a lane just now sends the first alone, and waits for its answer.
    return {one.path for one in every} <= {each["path"] for each in under_way}


def _do(system: System, method: str, path: str, body: object = None) -> None:
    status, answer = system.call(method, path, body)
    if status not in (200, 204):
        raise RuntimeError(f"{method} {path} was answered {status}: {answer}")


ROWS = {
    "F32": Row(
        "endpoints deleted, disabled, moved and rotated under way",
        BOTH,
        10,
        "changes-late",
        "changed",
        change_endpoints,
        Limits(),
        Scene(endpoint={**ENDPOINT, "max_in_flight": CAP, "timeout_ms": 60_000}, slowest_s=0.1),
        everyday=True,
    ),
}
