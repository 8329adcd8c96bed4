"""Finds deliveries that were lost, sent twice without cause, or invented.

It joins what the producer was promised, what the receiver got and what the database says, around the moments at
which something was killed. Pure: ledgers in, one report out.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from operator import sub
from typing import Any, NamedTuple, Self

GRACE_S = 0.5  # by then everything that a process wrote before it died is read; nobody replaces it sooner
CLOCKS_S = 0.05  # between the store's time and this machine's, which are one clock read in two places
TERMINAL = frozenset({"delivered", "dead", "cancelled"})


class Receipt(NamedTuple):
    """One line of the receiver's ledger."""

    id: str
    digest: str
    path: str
    began: float
    signed: bool = True
    ended: float = 0.0  # when it was about to be answered
    attempt: int = 1
    status: int = 200  # the status of the answer
    stamp: int = 0  # the sender's wall clock, as signed
    by: str = ""  # the process that sent it
    keys: tuple[int, ...] = (0,)  # the secrets it was signed with, by the receiver's numbers

    @property
    def is_accepted(self) -> bool:
        return 200 <= self.status < 300

    @classmethod
    def of(cls, line: Mapping[str, Any]) -> Self:
        """Read it from a line of the ledger."""
        return cls(
            **{name: line[name] for name in cls._fields if name not in ("signed", "keys")},
            signed=bool(line["keys"]),
            keys=tuple(line["keys"]),
        )


class Stored(NamedTuple):
    """A delivery as the database has it at the end; every event of these runs has one."""

    digest: str
    state: str
    done_at: float | None = None
    settled: int = 1  # attempts that counted
    late: int = 0
    reason: str | None = None


class Fault(NamedTuple):
    """Something happened to the sender `who`, or to all of them (None)."""

    at: float
    kind: str
    who: str | None = None
    excuses: bool = True  # False: nothing may be sent twice because of it
    lasted: float = GRACE_S  # requests sent this much later still count as caused by it
    owed_from: float = 0.0  # when a sender was there again to redeliver; at once, if others were left
    is_exact: bool = True  # False: its time is unknown, so it excuses duplicates but is not measured


class Limits(NamedTuple):
    """What a row allows."""

    # The duplicates of one fault whose first request was not answered at that time: each held one of the process's
    # slots. Those that were answered and not yet settled had given theirs back.
    in_flight: int | None = None
    redelivery_s: float | None = None
    publish_s: float | None = None  # the slowest answer to a publish, of whatever kind
    deaths: frozenset[str] = frozenset()  # reasons for which a delivery may die

    def with_leeway(self, times: float) -> Self:
        """The same limits with timings that may be so many times as long."""
        return self._replace(
            redelivery_s=None if self.redelivery_s is None else self.redelivery_s * times,
            publish_s=None if self.publish_s is None else self.publish_s * times,
        )


def check(
    promises: Iterable[Mapping[str, Any]],
    receipts: Sequence[Receipt],
    stored: Mapping[str, Stored],
    faults: Sequence[Fault],
    limits: Limits,
) -> dict[str, Any]:
    """The report; `violations` is empty if everything held."""
    intents: dict[str, str] = {}
    acks: dict[str, str] = {}
    doubtful: set[str] = set()
    statuses: Counter[int] = Counter()
    slowest = 0.0
    for line in promises:
        match line["did"]:
            case "intent":
                intents[line["key"]] = line["digest"]
            case "ack":
                acks[line["key"]] = line["id"]
            case _:
                doubtful.add(line["key"])
                statuses[line["status"]] += 1
        slowest = max(slowest, line.get("took", 0.0))
    arrived = Counter(receipt.id for receipt in receipts)
    refused = Counter(receipt.id for receipt in receipts if not receipt.is_accepted)
    digests = frozenset(intents.values())
    lost = [key for key, id in acks.items() if _is_lost(stored.get(id), arrived[id])]
    events_of: defaultdict[str, set[str]] = defaultdict(set)
    for id, row in stored.items():
        events_of[row.digest].add(id)
    blame = _attribute(receipts, stored, faults)
    destinations = [_in_flight(receipts, stored, fault) if fault.excuses else 0 for fault in faults]
    report = {
        "published": len(intents),
        "acked": len(acks),
        "in_doubt": len(doubtful - acks.keys()),
        "delivered": sum(row.state == "delivered" for row in stored.values()),
        "lost": len(lost),
        "duplicated": sum(blame.duplicates) + blame.unexplained,
        "duplicate_bound": sum(destinations),
        "worst_fault": max(blame.duplicates, default=0),
        "worst_unanswered": max(blame.unanswered, default=0),
        "worst_unsettled": max(map(sub, blame.duplicates, blame.unanswered), default=0),
        "unexplained": blame.unexplained,
        "corrupt": sum(
            receipt.digest not in digests
            or (receipt.id in stored and stored[receipt.id].digest != receipt.digest)
            for receipt in receipts
        ),
        "unexpected": len(arrived.keys() - stored.keys()),
        "unsigned": sum(not receipt.signed for receipt in receipts),
        "twins": sum(len(ids) > 1 for ids in events_of.values()),
        "moved": sum(id not in events_of[intents[key]] for key, id in acks.items() if id in stored),
        "resettled": sum(row.settled > 1 + refused[id] for id, row in stored.items()),
        "pending": sum(row.state not in TERMINAL for row in stored.values()),
        "dead": sum(row.state == "dead" and row.reason not in limits.deaths for row in stored.values()),
        "late": sum(row.late for row in stored.values()),
        "errors_5xx": sum(count for status, count in statuses.items() if status >= 500 and status != 503),
        "slowest_publish_s": round(slowest, 2),
        "redelivery_s": None if blame.redelivery is None else round(blame.redelivery, 2),
    }
    zeroes = ("lost", "unexplained", "corrupt", "unexpected", "unsigned", "twins", "moved", "resettled")
    violations = [
        f"{name} {report[name]}" for name in (*zeroes, "pending", "dead", "errors_5xx") if report[name]
    ]
    for fault, count, waiting, bound in zip(
        faults, blame.duplicates, blame.unanswered, destinations, strict=True
    ):
        if count > bound:
            violations.append(f"{fault.kind} sent {count} twice, allowed {bound}")
        if limits.in_flight is not None and waiting > limits.in_flight and fault.is_exact:
            violations.append(f"{fault.kind} cut off {waiting} requests, allowed {limits.in_flight}")
    if limits.redelivery_s is not None and (blame.redelivery or 0.0) > limits.redelivery_s:
        violations.append(f"redelivery after {blame.redelivery:.1f} s, allowed {limits.redelivery_s:g}")
    if limits.publish_s is not None and slowest > limits.publish_s:
        violations.append(f"a publish was answered after {slowest:.1f} s, allowed {limits.publish_s:g}")
    return {**report, "violations": violations}


def _is_lost(row: Stored | None, arrived: int) -> bool:
    return row is None or row.state not in TERMINAL or (row.state == "delivered" and not arrived)


def _was_in_flight(receipt: Receipt, row: Stored | None, fault: Fault) -> bool:
    if fault.who is not None and receipt.by != fault.who:
        return False
    if receipt.began > fault.at + fault.lasted:
        return False
    return row is None or row.done_at is None or row.done_at > fault.at - CLOCKS_S


def _in_flight(receipts: Sequence[Receipt], stored: Mapping[str, Stored], fault: Fault) -> int:
    return len({each.id for each in receipts if _was_in_flight(each, stored.get(each.id), fault)})


class Blame(NamedTuple):
    """Which fault caused which duplicates."""

    duplicates: list[int]  # by fault
    unanswered: list[int]  # of those, the ones whose first request was not answered when the fault came
    unexplained: int  # duplicates that no fault caused
    redelivery: float | None  # the longest wait for a fault's first duplicate


def _attribute(receipts: Sequence[Receipt], stored: Mapping[str, Stored], faults: Sequence[Fault]) -> Blame:
    duplicates = [0] * len(faults)
    unanswered = [0] * len(faults)
    firsts: dict[int, float] = {}
    unexplained = 0
    before: dict[str, Receipt] = {}
    for receipt in sorted(receipts, key=lambda each: each.began):
        earlier = before.get(receipt.id)
        before[receipt.id] = receipt
        if earlier is None or not (earlier.is_accepted or earlier.attempt == receipt.attempt):
            continue
        causes = [
            n
            for n, fault in enumerate(faults)
            if fault.at < receipt.began and _was_in_flight(earlier, stored.get(receipt.id), fault)
        ]
        if causes:
            duplicates[causes[-1]] += 1
            cause = faults[causes[-1]]
            unanswered[causes[-1]] += earlier.ended > cause.at
            if cause.is_exact:
                firsts.setdefault(causes[-1], max(0.0, receipt.began - max(cause.at, cause.owed_from)))
        else:
            unexplained += 1
    return Blame(duplicates, unanswered, unexplained, max(firsts.values(), default=None))
