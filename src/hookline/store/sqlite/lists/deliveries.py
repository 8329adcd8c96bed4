"""Builds the statements that list deliveries by a filter.

Each starts where the fewest rows are read. States are literals, so that the partial indexes can be used; everything
else is bound.
"""

from hookline.ids import event_of
from hookline.model import DeliveryId, State
from hookline.store.contract.deliveries import DeliveryFilter
from hookline.store.sqlite import sql
from hookline.store.sqlite.driver.values import ABOVE_ALL_IDS, delivery_range
from hookline.store.sqlite.lists.conditions import STEP_EVENTS, STEP_ROWS, SqliteConditions, Statement

_REPLAYED = "d.state = 'pending' AND d.death_at IS NOT NULL"
_DIED_AT = "iif(d.state = 'dead', d.done_at, d.death_at)"


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
    asked.values["limit"] = limit
    state = _state(filter)
    if is_by_account(filter):
        _within_events(asked, after=after, floor=floor)
        source, order = sql.LIST_OF_ACCOUNT, "e.id DESC, d.id DESC"
    else:
        asked.add("d.id < :after", "after", after)
        asked.add("d.id >= :floor", "floor", floor)
        source, order = asked.source(_start(filter, gathers=gathers)), "d.id DESC"
    statement = sql.LIST_DELIVERIES.format(source=source, conditions=asked.also(state), order=order)
    return statement, asked.values


def _within_events(asked: SqliteConditions, *, after: DeliveryId | None, floor: bytes | None) -> None:
    asked.values["above"] = ABOVE_ALL_IDS
    # With a plus, so that the rows of an event are searched between its id and the next event's, and not up to here.
    asked.add("+d.id < :after", "after", after)
    asked.add("+d.id >= :floor", "floor", floor)
    asked.add("e.id <= :after_event", "after_event", None if after is None else event_of(after))
    asked.add("e.id >= :floor_event", "floor_event", None if floor is None else event_of(DeliveryId(floor)))


def pending_ahead(filter: DeliveryFilter) -> Statement | None:
    """How many are pending, counted as far as the choice between gathering and walking needs; None: no such choice."""
    if filter.state is not State.PENDING or filter.is_replayed or filter.event_id is not None:
        return None
    asked = SqliteConditions()
    asked.add("endpoint_id = :endpoint", "endpoint", filter.endpoint_id)
    asked.values["limit"] = STEP_ROWS
    return sql.LOOK_AT_PENDING.format(conditions=asked.also()), asked.values


def events_ahead(filter: DeliveryFilter, *, after: DeliveryId | None) -> Statement:
    """How many events of the account come next, and the id of the last: one step reads no further."""
    asked = SqliteConditions()
    asked.add("e.account = :account", "account", filter.account)
    asked.add("e.id <= :after_event", "after_event", None if after is None else event_of(after))
    asked.values["limit"] = STEP_EVENTS
    source = "events e INDEXED BY events_account"
    return sql.LOOK_AHEAD.format(
        id="e.id", source=source, conditions=asked.also(), order="e.id DESC"
    ), asked.values


def look_ahead(filter: DeliveryFilter, *, after: DeliveryId | None, floor: bytes | None = None) -> Statement:
    """How many rows a list reads next, matching or not, and the id of the last: one step reads no further."""
    asked = SqliteConditions()
    asked.values["limit"] = STEP_ROWS
    if is_by_account(filter):
        asked.add("e.account = :account", "account", filter.account)
        _within_events(asked, after=after, floor=floor)
        source, order, conditions = sql.LIST_OF_ACCOUNT, "e.id DESC, d.id DESC", asked.also()
    else:
        _narrow(asked, filter)
        asked.add("d.id < :after", "after", after)
        # Rows in one of these states have an index of their own; for the others every row is read.
        by_state = filter.is_replayed or filter.state in (State.DEAD, State.CANCELLED)
        source, order = _start(filter), "d.id DESC"
        conditions = asked.also(_state(filter)) if by_state else asked.also()
    return sql.LOOK_AHEAD.format(id="d.id", source=source, conditions=conditions, order=order), asked.values


def _state(filter: DeliveryFilter) -> str:
    if filter.is_replayed:
        return _REPLAYED
    return "true" if filter.state is None else sql.IN_STATE[filter.state]


def dead_count(
    filter: DeliveryFilter,
    *,
    before: float | None = None,
    after: DeliveryId | None = None,
    last: DeliveryId | None = None,
) -> Statement:
    """How many dead letters match among those that died `before`, by id above `after` up to `last`."""
    asked = _asked(filter)
    asked.add("d.done_at < :before", "before", before)
    asked.add("d.id > :after", "after", after)
    asked.add("d.id <= :upto", "upto", last)
    return sql.COUNT_DEAD.format(
        source=asked.source(_start_of_dead(filter)), conditions=_dead(asked)
    ), asked.values


def dead_ahead(filter: DeliveryFilter, *, after: DeliveryId | None, limit: int) -> Statement:
    """How many dead letters, at most `limit`, come next by id, matching or not, and the id of the last."""
    asked = _asked(DeliveryFilter(endpoint_id=filter.endpoint_id, event_id=filter.event_id))
    asked.add("d.id > :after", "after", after)
    asked.values["limit"] = limit
    return sql.LOOK_AT_DEAD.format(source=_start_of_dead(filter), conditions=_dead(asked)), asked.values


def dead_to_pick(
    filter: DeliveryFilter, *, before: float, after: DeliveryId | None, last: DeliveryId, limit: int
) -> Statement:
    """The matching ones that died `before`, by id above `after` up to `last`."""
    asked = _asked(filter)
    asked.add("d.done_at < :before", "before", before)
    asked.add("d.id > :after", "after", after)
    asked.add("d.id <= :upto", "upto", last)
    asked.values["limit"] = limit
    return sql.PICK_DEAD.format(
        source=asked.source(_start_of_dead(filter)), conditions=_dead(asked)
    ), asked.values


def _asked(filter: DeliveryFilter) -> SqliteConditions:
    asked = SqliteConditions()
    _narrow(asked, filter)
    asked.add("e.account = :account", "account", filter.account, of_event=True)
    asked.add("e.type = :type", "type", filter.event_type, of_event=True)
    asked.add("e.created_at >= :since", "since", filter.since, of_event=True)
    asked.add("e.created_at < :until", "until", filter.until, of_event=True)
    reason = "d.death_reason" if filter.is_replayed else "d.reason"
    asked.add(f"{reason} = :reason", "reason", filter.reason)
    asked.add(f"{_DIED_AT} >= :died_since", "died_since", filter.died_since)
    asked.add(f"{_DIED_AT} < :died_until", "died_until", filter.died_until)
    return asked


def _narrow(asked: SqliteConditions, filter: DeliveryFilter) -> None:
    asked.add("d.endpoint_id = :endpoint", "endpoint", filter.endpoint_id)
    if filter.event_id is not None:
        ends = delivery_range(filter.event_id)
        asked.add("d.id >= :first", "first", ends["first"])
        asked.add("d.id <= :last", "last", ends["last"])


def is_by_account(filter: DeliveryFilter) -> bool:
    """Whether the filter names only an account, and none of the short lists."""
    return (
        filter.account is not None
        and filter.endpoint_id is None
        and filter.event_id is None
        and not filter.is_replayed
        and filter.state in (None, State.DELIVERED)
    )


def _start(filter: DeliveryFilter, *, gathers: bool = False) -> str:
    if filter.event_id is not None:
        return sql.LIST_ALL
    if filter.is_replayed:
        return sql.LIST_REPLAYED
    match filter.state:
        case State.PENDING if gathers:
            return sql.LIST_PENDING if filter.endpoint_id is None else sql.LIST_PENDING_OF_ENDPOINT
        case State.DEAD | State.CANCELLED:
            return sql.LIST_ENDED if filter.endpoint_id is None else sql.LIST_ENDED_OF_ENDPOINT[filter.state]
    return sql.LIST_ALL if filter.endpoint_id is None else sql.LIST_OF_ENDPOINT


def _start_of_dead(filter: DeliveryFilter) -> str:
    return _start(DeliveryFilter(state=State.DEAD, endpoint_id=filter.endpoint_id, event_id=filter.event_id))


def _dead(asked: SqliteConditions) -> str:
    return asked.also(sql.IN_STATE[State.DEAD])
