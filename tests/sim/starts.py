"""Checks whether a request may begin.

The check runs at the first byte of every request, against what the store has committed and what was sent before.
"""

import hmac
from base64 import b64decode, b64encode
from collections import defaultdict
from hashlib import sha256
from typing import TYPE_CHECKING

from tests.sim.admissions import FRESH
from tests.sim.clock import TICK
from tests.sim.suspects import Suspects

if TYPE_CHECKING:
    from tests.sim.admissions import Admissions
    from tests.sim.commits import Commits
    from tests.sim.receivers import Receipt
    from tests.sim.shadow import Row
    from tests.sim.world import World

SLACK = 0.002


class Starts:
    """The checks of a request."""

    def __init__(self, world: "World", commits: "Commits", admissions: "Admissions") -> None:
        self._world = world
        self._commits = commits
        self._admissions = admissions
        self._rows = world.database.shadow.rows
        self._open: dict[bytes, list[Receipt]] = defaultdict(list)  # by endpoint
        self._sent: dict[tuple[object, ...], Receipt] = {}
        self._suspects = Suspects(world, commits)
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
        receipt.replays = row["replays"]
        receipt.dialled = receipt.started_at - self._admissions.of(receipt, delivery).at
        self._owner(receipt, endpoint, lane, is_owner=is_owner)
        self._number(receipt, row, is_owner=is_owner)
        self._once(receipt, delivery, is_owner=is_owner)
        self._due(receipt, row)
        self._shut(receipt, endpoint)
        self._signed(receipt, endpoint)
        self._concurrent(receipt, endpoint, is_owner=is_owner)
        if is_owner:
            self._suspects.started(receipt, delivery, row)
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
        """I8: only the lane's owner sends, or one that cannot know yet that it was buried."""
        now = receipt.started_at
        age = now - receipt.process.clock.pulse.began
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
        """I10: an attempt begins only after the one before was settled, and never for a finished delivery."""
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

    def _once(self, receipt: "Receipt", delivery: bytes, *, is_owner: bool) -> None:
        """I7: one owner sends an attempt once, or again if it found its connection closed."""
        if not is_owner:
            return
        key = (delivery, receipt.replays, receipt.number, receipt.worker, receipt.epoch)
        before = self._sent.get(key)
        self._sent[key] = receipt
        if before is not None and not _is_repeated(before, receipt):
            self._fail("I7 duplicates", f"{receipt.process.name} sends attempt {receipt.number} twice")

    def _due(self, receipt: "Receipt", row: "Row") -> None:
        """I19: not before it is due, by the store's clock; what is ready is due from its commit on."""
        if row["queue"] == "ready":
            return
        early = row["due_at"] - (self._world.database.now() - receipt.dialled)
        since = self._commits.moved_at.get(row["id"], float("-inf"))
        if receipt.started_at - since <= FRESH + SLACK + receipt.dialled:
            return
        if receipt.number == row["attempts"] + 1 and early > TICK + receipt.process.skew:
            self._fail("I19 due discipline", f"{receipt.process.name} starts {early:.3f} s too early")

    def _shut(self, receipt: "Receipt", endpoint: bytes) -> None:
        """I23: nothing begins a second after the endpoint was deleted, disabled or paused."""
        late = receipt.started_at - self._commits.shut_at.get(endpoint, float("inf"))
        if late > FRESH + SLACK:
            self._fail("I23 config change", f"a request {late:.3f} s after its endpoint was shut")

    def _signed(self, receipt: "Receipt", endpoint: bytes) -> None:
        """I15, I23: signed with the current secrets only."""
        admitted = receipt.started_at - receipt.dialled
        row = self._rows["endpoints"].get(endpoint)
        history = self._commits.secrets[endpoint]
        current = [
            secret
            for n, (since, secret) in enumerate(history)
            if since <= admitted and (n + 1 == len(history) or history[n + 1][0] >= admitted - FRESH - SLACK)
        ]
        timestamp = int(receipt.headers["webhook-timestamp"])
        allowed = [secret for _, secret in history[-3:]]  # the current secret, and those that may overlap
        if row is not None and row["old_secret"] is None and len(current) == 1:
            allowed = current
        given = receipt.headers["webhook-signature"].split(" ")
        content = f"{receipt.headers['webhook-id']}.{timestamp}.".encode() + receipt.body
        if not any(_sign(secret, content) in given for secret in current):
            self._fail("I23 config change", "a request is not signed with the endpoint's secret")
        if not set(given) <= {_sign(secret, content) for secret in allowed}:
            self._fail("I23 config change", "a request is signed with a secret of another time")

    def _concurrent(self, receipt: "Receipt", endpoint: bytes, *, is_owner: bool) -> None:
        """I12: no more in flight than the endpoint allows, except those of an owner that died."""
        under_way = [
            each
            for each in self._open[endpoint]
            if each.ended_at is None and not each.process.owner.is_dropped
        ]
        admitted = receipt.started_at - receipt.dialled
        most = max(self._commits.caps_since(endpoint, admitted - FRESH - TICK))
        ours = [each for each in under_way if each.worker == receipt.worker]
        if len(ours) >= most:
            self._fail("I12 concurrency", f"{len(ours) + 1} at once by one owner, at most {most} are allowed")
        # An owner that released the lane had nothing in flight.
        counted = [each for each in under_way if each.worker not in self._commits.buried]
        if is_owner and len(counted) >= most:
            self._fail("I12 concurrency", f"{len(counted) + 1} at once, at most {most} are allowed")
        under_way.append(receipt)
        self._open[endpoint] = under_way

    def _ordered(self, row: "Row", endpoint: bytes) -> None:
        """Strict order: a delivery begins only after all earlier ones have finished, including their retries."""
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
    """Whether it was sent again because its reused connection was found closed."""
    return before.is_cut and before.was_reused and not receipt.was_reused and before.number == receipt.number


def _sign(secret: str, content: bytes) -> str:
    key = b64decode(secret.removeprefix("whsec_"))
    return "v1," + b64encode(hmac.new(key, content, sha256).digest()).decode()
