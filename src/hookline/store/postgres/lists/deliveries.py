"""Builds the statements that list deliveries by a filter.

Each starts where the fewest rows are read. States are literals, so that the partial indexes can be used; everything
else is bound.
"""

from hookline.ids import event_of
from hookline.model import DEFAULT_ACCOUNT, DeliveryId, State
from hookline.store.contract.deliveries import DeliveryFilter
from hookline.store.postgres import sql
from hookline.store.postgres.lists.conditions import PostgresConditions, Statement

FEW_PENDING = 10_000  # up to this many are gathered from their indexes and sorted
_IN_STATE = {state: f"d.state = '{state.value}'" for state in State}
_REPLAYED = "d.state = 'pending' AND d.death_at IS NOT NULL"
_DIED_AT = "CASE WHEN d.state = 'dead' THEN d.done_at ELSE d.death_at END"


def delivery_list(
    filter: DeliveryFilter,
    *,
    after: DeliveryId | None,
    limit: int,
    floor: bytes | None = None,
    gathers: bool = False,
) -> Statement:
    """Newest first, from below `after`, not below `floor`; `gathers`: pending rows, being few, are sorted."""
    asked = _asked(filter)
    most = asked.bind(limit, "int")
    parts = _parts(filter, asked, after=after, floor=floor, gathers=gathers)
    union = _union(parts, columns="d.*", limit=most)
    return sql.LIST_DELIVERIES.format(parts=union, limit=most), asked.values


def takes_steps(filter: DeliveryFilter) -> bool:
    """Whether it can read many rows that do not match; otherwise an index finds the matching ones."""
    by_event = filter.event_type, filter.since, filter.until, filter.account
    by_row = filter.reason, filter.died_since, filter.died_until
    if any(each is not None for each in (*by_event, *by_row)):
        return True
    if filter.is_replayed:
        return filter.endpoint_id is not None
    return _walks_all(filter)


def pending_ahead(filter: DeliveryFilter) -> Statement | None:
    """How many are pending, counted as far as the choice between gathering and walking needs; None: no such choice."""
    if filter.state is not State.PENDING or not _walks_all(filter):
        return None
    return sql.LOOK_AT_PENDING, [FEW_PENDING]


def events_ahead(filter: DeliveryFilter, *, after: DeliveryId | None, limit: int) -> Statement | None:
    """How many events of the account come next, at most `limit`, and the id of the last; None: the walk is another."""
    if not _is_by_account(filter):
        return None
    asked = PostgresConditions()
    asked.add("e.account = {0} AND e.account <> 'default'", filter.account, "text")
    asked.add("e.id <= {}", after, "uuid")
    part = sql.LOOK_PART.format(
        id="e.id",
        source="events e",
        conditions=asked.also(),
        order="e.account DESC, e.id",
        limit=asked.bind(limit, "int"),
    )
    return sql.LOOK_AHEAD.format(looked=part), asked.values


def look_ahead(
    filter: DeliveryFilter, *, after: DeliveryId | None, limit: int, floor: bytes | None = None
) -> Statement:
    """How many rows a list reads next, at most `limit`, matching or not, and the id of the last."""
    by_state = filter.endpoint_id is not None or filter.state in (State.DEAD, State.CANCELLED)
    start = DeliveryFilter(
        endpoint_id=None if filter.is_replayed else filter.endpoint_id,
        event_id=filter.event_id,
        account=filter.account if _is_by_account(filter) else None,
        state=filter.state if by_state else None,
        is_replayed=filter.is_replayed,
    )
    asked = _asked(start)
    most = asked.bind(limit, "int")
    union = _union(_parts(start, asked, after=after, floor=floor), columns="d.id", limit=most)
    merged = sql.LOOK_MERGED.format(parts=union, limit=most)
    return sql.LOOK_AHEAD.format(looked=merged), asked.values


def _walks_all(filter: DeliveryFilter) -> bool:
    """Whether every row is read on the way, because no index has the rows in this state by id."""
    return (
        filter.state in (State.PENDING, State.DELIVERED)
        and filter.endpoint_id is None
        and filter.event_id is None
        and not filter.is_replayed
    )


def _union(parts: list[tuple[str, str, str]], *, columns: str, limit: str) -> str:
    return " UNION ALL ".join(
        sql.LIST_PART.format(columns=columns, source=source, conditions=conditions, order=order, limit=limit)
        for source, conditions, order in parts
    )


def dead_count(
    filter: DeliveryFilter,
    *,
    before: float | None = None,
    after: DeliveryId | None = None,
    last: DeliveryId | None = None,
) -> Statement:
    """How many dead letters match among those that died `before`, by id above `after` up to `last`."""
    asked = _asked(filter)
    asked.add("d.done_at < {}", before, "float8")
    asked.add("d.id > {}", after, "uuid")
    asked.add("d.id <= {}", last, "uuid")
    conditions = asked.also(_IN_STATE[State.DEAD])
    return sql.COUNT_DEAD.format(source=asked.source(), conditions=conditions), asked.values


def dead_ahead(filter: DeliveryFilter, *, after: DeliveryId | None, limit: int) -> Statement:
    """How many dead letters, at most `limit`, come next by id, matching or not, and the id of the last."""
    looked_for = DeliveryFilter(endpoint_id=filter.endpoint_id, event_id=filter.event_id)
    asked = _asked(looked_for)
    asked.add("d.id > {}", after, "uuid")
    most = asked.bind(limit, "int")
    return sql.LOOK_AT_DEAD.format(conditions=asked.also(_IN_STATE[State.DEAD]), limit=most), asked.values


def dead_to_pick(
    filter: DeliveryFilter, *, before: float, after: DeliveryId | None, last: DeliveryId, limit: int
) -> Statement:
    """The matching ones that died `before`, by id above `after` up to `last`."""
    asked = _asked(filter)
    asked.add("d.done_at < {}", before, "float8")
    asked.add("d.id > {}", after, "uuid")
    asked.add("d.id <= {}", last, "uuid")
    most = asked.bind(limit, "int")
    conditions = asked.also(_IN_STATE[State.DEAD])
    return sql.PICK_DEAD.format(source=asked.source(), conditions=conditions, limit=most), asked.values


def _asked(filter: DeliveryFilter) -> PostgresConditions:
    asked = PostgresConditions()
    asked.add("d.endpoint_id = {}", filter.endpoint_id, "uuid")
    asked.add("d.id BETWEEN {0} AND last_delivery_of({0})", filter.event_id, "uuid")
    asked.add("e.account = {}", filter.account, "text", of_event=True)
    asked.add("e.type = {}", filter.event_type, "text", of_event=True)
    asked.add("e.created_at >= {}", filter.since, "float8", of_event=True)
    asked.add("e.created_at < {}", filter.until, "float8", of_event=True)
    asked.add(("d.death_reason" if filter.is_replayed else "d.reason") + " = {}", filter.reason, "text")
    asked.add(_DIED_AT + " >= {}", filter.died_since, "float8")
    asked.add(_DIED_AT + " < {}", filter.died_until, "float8")
    return asked


def _is_by_account(filter: DeliveryFilter) -> bool:
    """Whether an account's own index finds its rows sooner than a walk through all accounts.

    Rows in a rare state are found by that state.
    """
    return (
        filter.account not in (None, DEFAULT_ACCOUNT)
        and filter.state in (None, State.DELIVERED)
        and filter.endpoint_id is None
        and filter.event_id is None
    )


def _parts(
    filter: DeliveryFilter,
    asked: PostgresConditions,
    *,
    after: DeliveryId | None,
    floor: bytes | None,
    gathers: bool = False,
) -> list[tuple[str, str, str]]:
    """The source of each part of the list, the conditions on its rows, and the column that orders it."""
    ends = _ends(asked, after=after, floor=floor)
    one = [] if filter.state is None else [_IN_STATE[filter.state]]
    if filter.is_replayed:
        return [(asked.source(), asked.also(_REPLAYED, ends.format("d.id")), "d.id")]
    if _is_by_account(filter):
        account = asked.bind(filter.account, "text")
        within = _ends(
            asked, after=after, floor=None if floor is None else event_of(DeliveryId(floor)), upto="<="
        )
        source = sql.LIST_OF_ACCOUNT.format(account=account, within=within.format("id"))
        return [(source, asked.also(*one, ends.format("d.id")), "e.id DESC, d.id")]
    if gathers:
        return [_pending(asked, of="true", ends=ends)]
    if filter.endpoint_id is None or filter.event_id is not None:
        return [(asked.source(), asked.also(*one, ends.format("d.id")), "d.id")]
    parts = []
    for state in State if filter.state is None else (filter.state,):
        if state is State.PENDING:
            endpoint = asked.bind(filter.endpoint_id, "uuid")
            parts.append(_pending(asked, of=f"endpoint_id = {endpoint}", ends=ends))
        else:
            parts.append((asked.source(), asked.also(_IN_STATE[state], ends.format("d.id")), "d.id"))
    return parts


def _ends(
    asked: PostgresConditions, *, after: DeliveryId | None, floor: bytes | None, upto: str = "<"
) -> str:
    """The two ends of the walk, with `{}` for the id."""
    ends = ["true"]
    if after is not None:
        ends.append(f"{{0}} {upto} {asked.bind(after, 'uuid')}")
    if floor is not None:
        ends.append(f"{{0}} >= {asked.bind(floor, 'uuid')}")
    return " AND ".join(ends)


def _pending(asked: PostgresConditions, *, of: str, ends: str) -> tuple[str, str, str]:
    # The ends are given only where the rows are gathered: otherwise the planner would walk all ids between them.
    source = asked.source(sql.LIST_PENDING.format(of=of, within=ends.format("id")))
    return source, asked.also(_IN_STATE[State.PENDING]), "waiting.id"
