"""Checks the promises that a store's rows before and after a step can show.

They say nothing of how a verb works, so they hold whatever the reference believes. The names are those of the
list of invariants; what each store answers is compared with the reference besides (`driver`).

| invariant | checked here by |
|---|---|
| I1 no loss | `nothing_vanishes`, and `accept` compared with the reference: one delivery for each endpoint |
| I4 terminal is final | `what_ended_stays`: only a redrive (replays + 1) or a discard of a dead letter changes it |
| I6 attempt bound, I10 numbers | `attempts_are_counted`: those that count are 1 … n of each life, once each |
| I8 one owner | `owners_are_exclusive`: a lane's owner is registered, and changes only through nobody |
| I9 fence | `epochs_only_rise`, with every change of owner; who settles wrongly gets `late`, as in the reference |
| I16 idempotent accept | `keys_stand_for_one_event` |
| I18 conservation | `nothing_vanishes`, and `counts()` compared with the reference after each step |
| no lost wake-up | `free_lanes_wake_in_time`, for lanes that nobody owes a wake |
| changes in order | `changes_are_numbered` |

I17 (accounts) is checked where keys, jobs and lists of two accounts are compared with the reference. I21 (retention)
and everything that concerns requests, clocks and circuits' decisions is not the store's, and not here.
"""

from collections import defaultdict
from collections.abc import Set
from typing import Any

from hookline.model import EndpointId
from tests.model.databases import COLUMNS, Rows

Row = dict[str, Any]
_NAMES = {table: names.split() for table, (names, _) in COLUMNS.items()}


def violations(before: Rows, after: Rows, *, owed: Set[EndpointId], now: float) -> list[str]:
    """What a step broke; `owed` are the lanes that somebody still has to wake."""
    old, new = _named(before), _named(after)
    return [
        *nothing_vanishes(old, new),
        *what_ended_stays(old, new),
        *attempts_are_counted(new),
        *owners_are_exclusive(old, new),
        *epochs_only_rise(old, new),
        *keys_stand_for_one_event(new),
        *free_lanes_wake_in_time(new, owed=owed, now=now),
        *changes_are_numbered(new),
    ]


def _named(rows: Rows) -> dict[str, list[Row]]:
    return {
        table: [dict(zip(_NAMES[table], row, strict=True)) for row in found] for table, found in rows.items()
    }


def _by(rows: list[Row], *names: str) -> dict[Any, Row]:
    return {tuple(row[name] for name in names): row for row in rows}


def nothing_vanishes(old: dict[str, list[Row]], new: dict[str, list[Row]]) -> list[str]:
    keys = {
        "events": ["id"],
        "deliveries": ["id"],
        "attempts": ["delivery_id", "id"],
        "lanes": ["endpoint_id"],
    }
    return [
        f"I1: a row of {table} is gone"
        for table, names in keys.items()
        if not _by(old[table], *names).keys() <= _by(new[table], *names).keys()
    ]


def what_ended_stays(old: dict[str, list[Row]], new: dict[str, list[Row]]) -> list[str]:
    found = []
    now = _by(new["deliveries"], "id")
    for was in old["deliveries"]:
        row = now.get((was["id"],))
        if row is None or was["state"] == "pending" or row == was:
            continue
        is_redriven = row["state"] == "pending" and row["replays"] == was["replays"] + 1
        is_discarded = (was["state"], row["state"], row["reason"]) == ("dead", "cancelled", "discarded")
        if not is_redriven and not is_discarded:
            found.append(f"I4: a delivery went from {was['state']} to {row['state']}")
    return found


def attempts_are_counted(new: dict[str, list[Row]]) -> list[str]:
    numbers = defaultdict(list)
    for attempt in new["attempts"]:
        if not attempt["late"]:
            numbers[attempt["delivery_id"], attempt["replays"]].append(attempt["number"])
    found = [
        f"I6: attempts {sorted(tried)} count in one life"
        for tried in numbers.values()
        if sorted(tried) != list(range(1, len(tried) + 1))
    ]
    return found + [
        f"I6: a delivery says {row['attempts']} attempts, and has others"
        for row in new["deliveries"]
        if row["attempts"] != len(numbers[row["id"], row["replays"]])
    ]


def owners_are_exclusive(old: dict[str, list[Row]], new: dict[str, list[Row]]) -> list[str]:
    registered = {worker["id"] for worker in new["workers"]}
    was = _by(old["lanes"], "endpoint_id")
    found = []
    for lane in new["lanes"]:
        if lane["owner"] is not None and lane["owner"] not in registered:
            found.append("I8: a lane's owner is no worker")
        before = was.get((lane["endpoint_id"],))
        if before and before["owner"] and lane["owner"] not in (None, before["owner"]):
            found.append("I8: a lane went from one owner to another")
    return found


def epochs_only_rise(old: dict[str, list[Row]], new: dict[str, list[Row]]) -> list[str]:
    was = _by(old["lanes"], "endpoint_id")
    buried = {worker["id"] for worker in old["workers"] if worker["buried_at"] is not None}
    found = []
    for lane in new["lanes"]:
        before = was.get((lane["endpoint_id"],))
        if before is None:
            continue
        is_taken = before["owner"] is None and lane["owner"] is not None
        is_freed = before["owner"] in buried and lane["owner"] is None
        if lane["epoch"] < before["epoch"] + (is_taken or is_freed):
            found.append(f"I9: a lane's epoch went from {before['epoch']} to {lane['epoch']}")
    return found


def keys_stand_for_one_event(new: dict[str, list[Row]]) -> list[str]:
    keyed = [event for event in new["events"] if event["idempotency_key"] is not None]
    by_key = {(key["account"], key["key"]): key["event_id"] for key in new["idempotency"]}
    found = [
        "I16: a key does not stand for its event"
        for event in keyed
        if by_key.get((event["account"], event["idempotency_key"])) != event["id"]
    ]
    if len(keyed) != len(new["idempotency"]):
        found.append(f"I16: {len(keyed)} events for {len(new['idempotency'])} keys")
    return found


def free_lanes_wake_in_time(new: dict[str, list[Row]], *, owed: Set[EndpointId], now: float) -> list[str]:
    dues: dict[EndpointId, list[float]] = defaultdict(list)
    pending = set()
    for row in new["deliveries"]:
        if row["state"] == "pending":
            pending.add(row["id"])
            dues[row["endpoint_id"]].append(row["due_at"])
    resets: dict[EndpointId, int] = {}
    for change in new["changes"]:
        if change["kind"] == "reset":
            resets[change["endpoint_id"]] = change["n"]
    found = []
    for lane in new["lanes"]:
        id = lane["endpoint_id"]
        if lane["owner"] is not None or lane["deleted"] or id in owed:
            continue
        first = max(min(dues[id], default=float("inf")), lane["hold_until"], now)
        is_headless = lane["head"] is not None and (not lane["strict"] or lane["head"] not in pending)
        if is_headless or resets.get(id, 0) > lane["applied"]:
            first = now
        if lane["wake_at"] > first:
            found.append(f"a lane sleeps {lane['wake_at'] - first} s longer than it may")
    return found


def changes_are_numbered(new: dict[str, list[Row]]) -> list[str]:
    numbers = [change["n"] for change in new["changes"]]
    [counter] = new["change_counter"]
    is_right = numbers == list(range(1, counter["n"] + 1))
    return [] if is_right else [f"changes are numbered {numbers}, counted {counter['n']}"]
