"""May this request begin?

Asked at the first byte of every request, of what the store has committed by then and of what was sent before.
"""

import hmac
import json
from base64 import b64decode, b64encode
from collections import defaultdict
from hashlib import sha256
from typing import TYPE_CHECKING

from hookline.store.contract import INLINE_PAYLOAD_BYTES
from tests.sim.clock import EPOCH

if TYPE_CHECKING:
    from tests.sim.commits import Commits
    from tests.sim.receivers import Receipt
    from tests.sim.shadow import Row
    from tests.sim.world import World

FRESH = 1.0  # seconds that a worker may act on what its last pulse told it
SLACK = 0.002
MOST_DEATHS = 7


class Starts:
    """The checks of a request."""

    def __init__(self, world: "World", commits: "Commits") -> None:
        self._world = world
        self._commits = commits
        self._rows = world.database.shadow.rows
        self._open: dict[bytes, list[Receipt]] = defaultdict(list)  # by endpoint
        self._admitted: dict[bytes, list[tuple[float, float]]] = defaultdict(list)  # when, and how far off
        self._probes: dict[bytes, tuple[float, Receipt | None]] = {}  # None: it is not known which it was
        self._sent: dict[tuple[object, ...], Receipt] = {}
        self.endpoint_of: dict[int, bytes] = {}

    def _fail(self, invariant: str, detail: str) -> None:
        self._world.fail(invariant, detail)

    def started(self, receipt: "Receipt") -> None:
        """A request begins."""
        endpoint = self._endpoint(receipt.place)
        if endpoint is None:
            self._fail("I3 no invention", f"a request to endpoint {receipt.place}, which never was")
            return
        commits = self._commits
        delivery = commits.deliveries_of.get((receipt.event, endpoint))
        event = self._rows["events"].get(receipt.event)
        row = None if delivery is None else self._rows["deliveries"].get(delivery)
        if delivery is None or event is None or row is None:
            self._fail("I3 no invention", f"a request for an event that is not stored, to {receipt.place}")
            return
        if receipt.body != event["payload"]:
            self._fail("I3 no invention", "a request does not carry its event's bytes")
        lane = self._rows["lanes"][endpoint]
        is_owner = lane["owner"] == receipt.worker
        receipt.epoch = lane["epoch"]
        receipt.process.note_skew(self._world.database.now())
        receipt.replays = row["replays"]
        self._owner(receipt, endpoint, lane, is_owner=is_owner)
        self._number(receipt, row, is_owner=is_owner)
        is_again = self._once(receipt, delivery, is_owner=is_owner)
        self._due(receipt, row)
        self._shut(receipt, endpoint)
        self._signed(receipt, endpoint)
        self._concurrent(receipt, endpoint, is_owner=is_owner)
        if is_owner:
            # A large payload is read between the decision to send it and its first byte: when that was is not known.
            is_large = len(receipt.body) > INLINE_PAYLOAD_BYTES
            if not is_again and not is_large:
                self._rate(receipt, endpoint)
            self._circuit(receipt, endpoint, lane, is_again=is_again, is_large=is_large)
            self._suspect(receipt, delivery)
            self._careful(receipt, endpoint, row)
            self._ordered(row, endpoint)
        commits.started_of[delivery].append(receipt)

    def _endpoint(self, place: int) -> bytes | None:
        found = self.endpoint_of.get(place)
        if found is None:
            for id, row in self._rows["endpoints"].items():
                self.endpoint_of[int(row["url"].rpartition("/")[2].partition("?")[0])] = id
            found = self.endpoint_of.get(place)
        return found

    def _owner(self, receipt: "Receipt", endpoint: bytes, lane: "Row", *, is_owner: bool) -> None:
        """I8: only by the lane's owner, or one that cannot have heard yet that it was buried."""
        now = receipt.started_at
        age = now - receipt.process.good_pulse
        if age >= FRESH + SLACK:
            self._fail("I8 exclusive lane", f"{receipt.process.name} starts {age:.3f} s after its last pulse")
        if is_owner:
            return
        lost_at, verb = self._commits.lost.get((endpoint, receipt.worker), (float("-inf"), "nothing"))
        if verb != "free" or now - lost_at > FRESH + SLACK:
            self._fail(
                "I8 exclusive lane",
                f"{receipt.process.name} sends for a lane it lost {now - lost_at:.3f} s ago by {verb}",
            )

    def _number(self, receipt: "Receipt", row: "Row", *, is_owner: bool) -> None:
        """I10: an attempt begins after the one before it was settled, and of nothing that ended."""
        since = max(
            self._commits.moved_at.get(row["id"], float("-inf")),
            self._commits.ended_at.get(row["id"], float("-inf"))
            if row["state"] == "cancelled"
            else float("-inf"),
        )
        if receipt.started_at - since <= FRESH + SLACK + receipt.dialled or not is_owner:
            return
        if row["state"] != "pending":
            self._fail("I4 terminal is final", f"a request for a delivery that is {row['state']}")
        elif receipt.number != row["attempts"] + 1:
            self._fail("I10 retry order", f"attempt {receipt.number} begins after {row['attempts']}")

    def _once(self, receipt: "Receipt", delivery: bytes, *, is_owner: bool) -> bool:
        """I7: one owner sends an attempt once; says whether it is sent again for a connection that was found closed."""
        if not is_owner:
            return False
        key = (delivery, receipt.replays, receipt.number, receipt.worker, receipt.epoch)
        before = self._sent.get(key)
        self._sent[key] = receipt
        if before is not None and not _is_repeated(before, receipt):
            self._fail("I7 duplicates", f"{receipt.process.name} sends attempt {receipt.number} twice")
        return before is not None

    def _due(self, receipt: "Receipt", row: "Row") -> None:
        """I19: not before it is due, by the store's clock; what is ready is due from its commit on."""
        if row["queue"] == "ready":
            return
        early = row["due_at"] - (self._world.database.now() - receipt.dialled)
        since = self._commits.moved_at.get(row["id"], float("-inf"))
        if receipt.started_at - since <= FRESH + SLACK + receipt.dialled:
            return
        if receipt.number == row["attempts"] + 1 and early > SLACK + receipt.process.skew + receipt.dialled:
            self._fail("I19 due discipline", f"{receipt.process.name} starts {early:.3f} s too early")

    def _shut(self, receipt: "Receipt", endpoint: bytes) -> None:
        """I23: nothing begins a second after the endpoint was deleted, disabled or paused."""
        late = receipt.started_at - self._commits.shut_at.get(endpoint, float("inf"))
        if late > FRESH + SLACK:
            self._fail("I23 config change", f"a request {late:.3f} s after its endpoint was shut")

    def _signed(self, receipt: "Receipt", endpoint: bytes) -> None:
        """I15, I23: signed with the secrets of the moment, and with no other."""
        admitted = receipt.started_at - receipt.dialled
        row = self._rows["endpoints"].get(endpoint)
        history = self._commits.secrets[endpoint]
        current = [
            secret
            for n, (since, secret) in enumerate(history)
            if since <= admitted and (n + 1 == len(history) or history[n + 1][0] >= admitted - FRESH - SLACK)
        ]
        timestamp = int(receipt.headers["webhook-timestamp"])
        allowed = [secret for _, secret in history[-3:]]  # whoever is current, and those that may overlap
        if row is not None and row["old_secret"] is None and len(current) == 1:
            allowed = current
        given = receipt.headers["webhook-signature"].split(" ")
        content = f"{receipt.headers['webhook-id']}.{timestamp}.".encode() + receipt.body
        if not any(_sign(secret, content) in given for secret in current):
            self._fail("I23 config change", "a request is not signed with the endpoint's secret")
        if not set(given) <= {_sign(secret, content) for secret in allowed}:
            self._fail("I23 config change", "a request is signed with a secret of another time")

    def _concurrent(self, receipt: "Receipt", endpoint: bytes, *, is_owner: bool) -> None:
        """I12: no more at once by one owner than the endpoint allows."""
        under_way = [
            each
            for each in self._open[endpoint]
            if each.ended_at is None and not each.process.owner.is_dropped
        ]
        ours = [each for each in under_way if each.worker == receipt.worker and each.epoch == receipt.epoch]
        caps = self._commits.caps[endpoint]
        admitted = receipt.started_at - receipt.dialled
        latest = [
            cap
            for n, (_, cap) in enumerate(caps)
            if n + 1 == len(caps) or caps[n + 1][0] >= admitted - FRESH - SLACK
        ]
        if is_owner and len(ours) + 1 > max(latest):
            self._fail("I12 concurrency", f"{len(ours) + 1} at once, at most {max(latest)} are allowed")
        under_way.append(receipt)
        self._open[endpoint] = under_way

    def _rate(self, receipt: "Receipt", endpoint: bytes) -> None:
        """I11: in no stretch of time more than rate · length + burst, whoever sends."""
        row = self._rows["endpoints"].get(endpoint)
        if row is None or row["rate_limit"] is None:
            return
        limit = json.loads(row["rate_limit"])
        at, off = receipt.started_at - receipt.dialled, receipt.process.skew
        admitted = self._admitted[endpoint]
        since = self._commits.rates.get(endpoint, 0.0) + FRESH
        if at < since:
            admitted.clear()
            return
        admitted.append((at, off))
        admitted.sort()
        for n, (begin, other) in enumerate(admitted):
            allowed = limit["per_second"] * (at - begin + off + other + SLACK) + limit["burst"]
            if at >= begin and len(admitted) - n > allowed + 1e-6 and admitted[-1][0] <= at:
                self._fail(
                    "I11 rate", f"{len(admitted) - n} within {at - begin:.3f} s, allowed are {allowed:.2f}"
                )
                return

    def _circuit(
        self, receipt: "Receipt", endpoint: bytes, lane: "Row", *, is_again: bool, is_large: bool
    ) -> None:
        """I13: while the circuit is not closed, nothing but one probe in its time."""
        changed = self._commits.circuit_at.get(endpoint, float("-inf"))
        if lane["circuit"] == "closed" or receipt.started_at - receipt.dialled <= changed:
            return
        # Closed by hand, which the owner has not written down yet; one that was stopped hears of it when it goes on.
        if self._commits.resets.get(endpoint, 0) > lane["applied"]:
            return
        if is_large:
            self._probes[endpoint] = (changed, None)  # it may be the probe, or may have been admitted before
            return
        if lane["circuit"] == "open":
            if not is_again:
                self._fail("I13 circuit", "a request begins while the circuit is open")
            return
        when, probe = self._probes.get(endpoint, (float("-inf"), None))
        if is_again:
            if when == changed and probe is not None and probe.event == receipt.event:
                self._probes[endpoint] = (changed, receipt)
        elif when != changed:
            self._probes[endpoint] = (changed, receipt)
        elif probe is None:
            return
        elif probe.ended_at is None:
            self._fail("I13 circuit", "a second request begins while one probes")
        elif not _closes(probe):
            self._fail("I13 circuit", "a request begins after a probe that failed")

    def _suspect(self, receipt: "Receipt", delivery: bytes) -> None:
        """I6: under one delivery no more workers die than care allows, before it is given up.

        Four marks are the end. Some deaths may go uncounted: of a crowd of freed lanes each has only its first few
        deliveries marked, so one further back can kill once or twice more until it stands in front.
        """
        died = {
            before.worker
            for before in self._commits.started_of[delivery]
            if before.number == receipt.number
            and before.replays == receipt.replays
            and before.process.was_killed_by == receipt.event
        }
        if len(died) > MOST_DEATHS:
            self._fail("I6 crash budget", f"{len(died)} workers died under one delivery")

    def _careful(self, receipt: "Receipt", endpoint: bytes, row: "Row") -> None:
        """I6: the first that is sent of a lane whose owner died is marked."""
        taken = self._commits.taken_suspect.pop(endpoint, None)
        if taken is None or row["marks"] or self._commits.written_at[row["id"]] >= taken:
            return
        if row["due_at"] < EPOCH + taken:  # what comes due later is not among the suspects
            self._fail(
                "I6 crash budget", f"{receipt.process.name} sends of a dead worker's lane without care"
            )

    def _ordered(self, row: "Row", endpoint: bytes) -> None:
        """Strict order: nothing begins before what was published earlier, or behind one that is to be tried again."""
        settings = self._rows["endpoints"].get(endpoint)
        if settings is None or settings["ordering"] != "strict" or endpoint in self._commits.reordered:
            return
        written = self._commits.written_at
        for other in self._rows["deliveries"].values():
            if other["endpoint_id"] != endpoint or other["state"] != "pending" or other is row:
                continue
            if other["attempts"] and not row["attempts"]:
                self._fail("strict order", "a delivery begins while an earlier one waits to be tried again")
            is_first = other["seq"] < row["seq"] and written[other["id"]] < written[row["id"]]
            if is_first and other["queue"] == row["queue"] == "ready":
                self._fail("strict order", "a delivery begins before one that was published earlier")


def _is_repeated(before: "Receipt", receipt: "Receipt") -> bool:
    """Was it sent again because its connection, used before, was found closed?"""
    return before.is_cut and before.was_reused and not receipt.was_reused and before.number == receipt.number


def _closes(probe: "Receipt") -> bool:
    """Is this an answer after which a circuit is closed?"""
    return probe.seen and probe.replied is not None and probe.replied < 500 and probe.replied != 429


def _sign(secret: str, content: bytes) -> str:
    key = b64decode(secret.removeprefix("whsec_"))
    return "v1," + b64encode(hmac.new(key, content, sha256).digest()).decode()
