"""Checks what becomes of the rows of the outbox.

An event exists exactly if its row was committed, and once. A row leaves only when its event is stored or the row is kept
with its reason. An event is pruned only after its row has left. Events of one transaction, and of one account where one
commit was acknowledged before the other publish began, are stored in that order, and each lane has them in it.
"""

from collections import defaultdict
from collections.abc import Sequence
from typing import TYPE_CHECKING

import msgspec

from hookline.ids import show

if TYPE_CHECKING:
    from tests.sim.commits import Commits
    from tests.sim.shadow import Row
    from tests.sim.store import Call
    from tests.sim.world import World

Content = tuple[str, bytes, float | None]


class Transaction:
    """An application's transaction."""

    def __init__(self, account: str) -> None:
        self.account = account
        self.rows: list[PublishedRow] = []
        self.is_committed = False
        self.acknowledged_at: int | None = None  # counted


class PublishedRow(msgspec.Struct, frozen=True, kw_only=True):
    """A row, from its INSERT on."""

    seq: int
    id: bytes
    deliver_at: float | None
    account: str
    type: str
    key: str | None
    payload: bytes
    values: tuple[object, ...]  # as they are written
    began: int  # when it was published, counted
    transaction: Transaction
    code: str | None  # why it has to be refused

    @property
    def content(self) -> Content:
        return (self.type, self.payload, self.deliver_at)


class OutboxRows:
    """The checks, and what they remember."""

    def __init__(self, world: "World", commits: "Commits") -> None:
        self._world = world
        self._commits = commits
        self._ticks = 0
        self._rows: dict[bytes, PublishedRow] = {}  # also of transactions that are open or rolled back
        self._of_account: dict[str, list[PublishedRow]] = defaultdict(list)  # that are committed
        self._waiting: dict[bytes, PublishedRow] = {}  # in the table
        self._stored: set[bytes] = set()  # events of rows, also those that are pruned
        self._refused: dict[bytes, str] = {}
        self._of_key: dict[tuple[str, str], set[Content]] = defaultdict(set)  # of all events there ever were

    def _fail(self, detail: str) -> None:
        self._world.fail("outbox", detail)

    @property
    def waiting(self) -> int:
        """The number of rows that have not left."""
        return len(self._waiting)

    # --- what applications do ---

    def tick(self) -> int:
        """The next moment: what has a lower one was before."""
        self._ticks += 1
        return self._ticks

    def published(self, row: PublishedRow) -> None:
        self._rows[row.id] = row

    def committed(self, transaction: Transaction) -> None:
        transaction.is_committed = True
        for row in transaction.rows:
            self._of_account[row.account].append(row)
            self._waiting[row.id] = row

    def acknowledged(self, transaction: Transaction) -> None:
        transaction.acknowledged_at = self.tick()

    # --- what hookline does ---

    def stored(self, events: "Sequence[Row]") -> None:
        """Events were stored in one commit, from rows or otherwise."""
        for event in events:
            if event["idempotency_key"] is not None:
                content = (event["type"], event["payload"], event["deliver_at"])
                self._of_key[event["account"], event["idempotency_key"]].add(content)
            if event["id"] in self._rows:
                self._store(event, self._rows[event["id"]])
        for event in events:
            if event["id"] in self._rows:
                self._ordered(self._rows[event["id"]])

    def _store(self, event: "Row", row: PublishedRow) -> None:
        if not row.transaction.is_committed:
            self._fail(f"{_name(row)} is stored, and its transaction was not committed")
        if row.id in self._stored:
            self._fail(f"{_name(row)} is stored a second time")
        if row.code is not None:
            self._fail(f"{_name(row)} is stored, and is {row.code}")
        self._stored.add(row.id)
        kept = (event["account"], event["type"], event["payload"], event["deliver_at"])
        if kept != (row.account, *row.content) or event["idempotency_key"] != row.key:
            self._fail(f"{_name(row)} is stored otherwise than it was published")

    def _ordered(self, row: PublishedRow) -> None:
        """All rows that were published before are stored, and come first in every lane that has both."""
        ours = self._seqs(row)
        for other in self._before(row):
            if other.id not in self._stored:
                if not self._is_done(other) and other.code is None:
                    self._fail(f"{_name(row)} is stored before {_name(other)}, which was published earlier")
                continue
            theirs = self._seqs(other)
            if any(theirs[endpoint] > ours[endpoint] for endpoint in theirs.keys() & ours.keys()):
                self._fail(f"{_name(row)} comes before {_name(other)} in a lane")

    def _before(self, row: PublishedRow) -> list[PublishedRow]:
        found = []
        for other in self._of_account[row.account]:
            if other.transaction is row.transaction:
                if other.seq < row.seq:
                    found.append(other)
            elif (at := other.transaction.acknowledged_at) is not None and at < row.began:
                found.append(other)
        return found

    def _seqs(self, row: PublishedRow) -> dict[bytes, int]:
        """The places of its deliveries, by endpoint; a replay has a new one."""
        deliveries = self._commits.rows["deliveries"]
        endpoints = self._commits.rows["endpoints"]
        found = {}
        for endpoint in endpoints:
            delivery = self._commits.deliveries_of.get((row.id, endpoint))
            kept = None if delivery is None else deliveries.get(delivery)
            if kept is not None and not kept["replays"]:
                found[endpoint] = kept["seq"]
        return found

    def _is_done(self, row: PublishedRow) -> bool:
        """Whether its event is stored, it is refused, or its key stands for another event."""
        if row.id in self._stored or row.id in self._refused:
            return True
        return row.key is not None and bool(self._of_key[row.account, row.key])

    def dropped(self, call: "Call") -> None:
        """A row leaves when it is done."""
        for place in call.args[0]:
            row = self._rows.get(place.id)
            if row is None or row.seq != place.seq:
                self._fail("a row is dropped that nobody published")
                return
            if row.id in self._stored or row.id in self._refused:
                pass
            elif row.key is None or row.content not in self._of_key[row.account, row.key]:
                self._fail(f"{_name(row)} left the outbox, and its event is not stored")
            self._waiting.pop(row.id, None)

    def refused(self, kept: "Row") -> None:
        """A row is kept with its reason."""
        row = self._rows.get(kept["id"])
        if row is None or not row.transaction.is_committed:
            self._fail("a row is refused that nobody committed")
            return
        code = self._refused[row.id] = kept["code"]
        if row.code is not None:
            is_right = code == row.code
        else:
            others = self._of_key[row.account, row.key] - {row.content} if row.key is not None else set()
            is_right = code == "idempotency_conflict" and bool(others)
        if not is_right or row.id in self._stored:
            self._fail(f"{_name(row)} is refused as {code}")

    def pruned(self, id: bytes) -> None:
        """A row that comes back after its event was pruned would be sent a second time."""
        if id in self._waiting:
            self._fail(f"{_name(self._waiting[id])} is pruned, and its row is still in the outbox")

    # --- the end ---

    def at_rest(self) -> None:
        """Every committed row became an event or was refused, and the table is empty."""
        if left := self._world.applications.left():
            self._fail(f"{left} rows are left in the outbox")
        for rows in self._of_account.values():
            for row in rows:
                if not self._is_done(row):
                    self._fail(f"{_name(row)} was committed and is gone")
        lost = self._stored - self._commits.rows["events"].keys() - self._commits.pruned_events
        if lost:
            self._fail(f"{len(lost)} events of rows are gone")


def _name(row: PublishedRow) -> str:
    return f"row {row.seq} ({show('event', row.id)})"
