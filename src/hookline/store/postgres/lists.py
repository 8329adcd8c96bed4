"""Which statement lists the deliveries that match a filter, from the start that reads the fewest rows?

States stand in it as literals, so that the partial indexes can be used; everything else is bound.
"""

from typing import Any

from hookline.model import DEFAULT_ACCOUNT, DeliveryId, State
from hookline.store.contract import DeliveryFilter
from hookline.store.postgres import sql

_IN_STATE = {state: f"d.state = '{state.value}'" for state in State}
_REPLAYED = "d.state = 'pending' AND d.death_at IS NOT NULL"
_DIED_AT = "CASE WHEN d.state = 'dead' THEN d.done_at ELSE d.death_at END"

Statement = tuple[str, list[Any]]


class Conditions:
    """What a row has to be, with the values that are bound."""

    def __init__(self) -> None:
        self.values: list[Any] = []
        self._conditions = ["true"]
        self.needs_event = False

    def bind(self, value: Any, kind: str) -> str:
        """The value's place in the statement."""
        self.values.append(value)
        return f"${len(self.values)}::{kind}"

    def add(self, condition: str, value: Any, kind: str, *, of_event: bool = False) -> None:
        """`condition` has `{}` where the value belongs; nothing is asked for by None."""
        if value is not None:
            place = self.bind(value, kind)
            self._conditions.append(condition.format(f"to_timestamp({place})" if kind == "float8" else place))
            self.needs_event = self.needs_event or of_event

    def also(self, *more: str) -> str:
        """All of them, and these."""
        return " AND ".join([*self._conditions, *more])

    def source(self, deliveries: str = "deliveries d") -> str:
        """Where the rows come from: with their events only if a condition is about those."""
        return sql.LIST_WITH_EVENTS.format(deliveries=deliveries) if self.needs_event else deliveries


def delivery_list(filter: DeliveryFilter, *, after: DeliveryId | None, limit: int) -> Statement:
    """Newest first, from below `after`."""
    asked = _asked(filter)
    asked.add("d.id < {}", after, "uuid")
    most = asked.bind(limit, "int")
    parts = [
        sql.LIST_PART.format(source=source, conditions=conditions, order=order, limit=most)
        for source, conditions, order in _parts(filter, asked, after=after)
    ]
    return sql.LIST_DELIVERIES.format(parts=" UNION ALL ".join(parts), limit=most), asked.values


def dead_count(filter: DeliveryFilter, *, before: float | None = None) -> Statement:
    """How many dead letters match, of those that died `before`."""
    asked = _asked(filter)
    asked.add("d.done_at < {}", before, "float8")
    conditions = asked.also(_IN_STATE[State.DEAD])
    return sql.COUNT_DEAD.format(source=asked.source(), conditions=conditions), asked.values


def dead_ahead(filter: DeliveryFilter, *, after: DeliveryId | None, limit: int) -> Statement:
    """How many dead letters, at most `limit`, come next by id whether they match or not, and the last one's id."""
    looked_for = DeliveryFilter(endpoint_id=filter.endpoint_id, event_id=filter.event_id)
    asked = _asked(looked_for)
    asked.add("d.id > {}", after, "uuid")
    most = asked.bind(limit, "int")
    return sql.LOOK_AT_DEAD.format(conditions=asked.also(_IN_STATE[State.DEAD]), limit=most), asked.values


def dead_to_pick(
    filter: DeliveryFilter, *, before: float, after: DeliveryId | None, last: DeliveryId, limit: int
) -> Statement:
    """Those that match and died `before`, by id above `after` up to `last`."""
    asked = _asked(filter)
    asked.add("d.done_at < {}", before, "float8")
    asked.add("d.id > {}", after, "uuid")
    asked.add("d.id <= {}", last, "uuid")
    most = asked.bind(limit, "int")
    conditions = asked.also(_IN_STATE[State.DEAD])
    return sql.PICK_DEAD.format(source=asked.source(), conditions=conditions, limit=most), asked.values


def _asked(filter: DeliveryFilter) -> Conditions:
    asked = Conditions()
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
    """Does an account's own index find its rows sooner than a walk through everybody's?

    Rows in a state that most are not in are found by that state.
    """
    return (
        filter.account not in (None, DEFAULT_ACCOUNT)
        and filter.state in (None, State.DELIVERED)
        and filter.endpoint_id is None
        and filter.event_id is None
    )


def _parts(
    filter: DeliveryFilter, asked: Conditions, *, after: DeliveryId | None
) -> list[tuple[str, str, str]]:
    """Where each part of the list comes from, what its rows have to be, and the column that orders it."""
    if filter.is_replayed:
        return [(asked.source(), asked.also(_REPLAYED), "d.id")]
    if _is_by_account(filter):
        account = asked.bind(filter.account, "text")
        below = "true" if after is None else f"id <= {asked.bind(after, 'uuid')}"
        one = [] if filter.state is None else [_IN_STATE[filter.state]]
        return [
            (
                sql.LIST_OF_ACCOUNT.format(account=account, below=below),
                asked.also(*one),
                "e.id DESC, d.id",
            )
        ]
    if filter.endpoint_id is None or filter.event_id is not None:
        one = [] if filter.state is None else [_IN_STATE[filter.state]]
        return [(asked.source(), asked.also(*one), "d.id")]
    parts = []
    for state in State if filter.state is None else (filter.state,):
        deliveries, order = "deliveries d", "d.id"
        if state is State.PENDING:
            endpoint = asked.bind(filter.endpoint_id, "uuid")
            below = "true" if after is None else f"id < {asked.bind(after, 'uuid')}"
            deliveries, order = sql.LIST_PENDING.format(endpoint=endpoint, below=below), "waiting.id"
        parts.append((asked.source(deliveries), asked.also(_IN_STATE[state]), order))
    return parts
