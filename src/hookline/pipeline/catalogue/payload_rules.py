"""Applies the rules for payloads: schemas and filters.

The schema of an event's type decides whether it may be published. The endpoints' filters decide which of them want it.
A payload is parsed at most once, and not at all where no rule needs it. Judging is done in slices: its cost depends on
producers and endpoints, and everybody else waits meanwhile.
"""

import asyncio
from collections.abc import Generator, Iterable
from typing import TYPE_CHECKING, Any

import msgspec
import structlog

from hookline import ids
from hookline.errors import MissingExtra, SchemaMismatch
from hookline.model import Endpoint, EndpointId, EventType
from hookline.rules.loop_budget import (
    LoopBudget,
    of_endpoints,
    of_payload,
    of_schema,
)

if TYPE_CHECKING:
    from hookline.validate.payload_filter import Filter
    from hookline.validate.schemas.json_schema import Schema

_UNREAD = object()

log = structlog.get_logger()


class Judgement(msgspec.Struct, frozen=True):
    """What the rules decided about a payload, and which rules."""

    n: int  # the last change that the rules included
    asked: tuple[EndpointId, ...]  # the endpoints whose patterns match
    schema: "Schema | UncheckedSchema | None"
    filters: "dict[EndpointId, Filter]"
    wanted: tuple[EndpointId, ...] | SchemaMismatch


class UncheckedSchema:
    """Stands for a schema that this process cannot check: it refuses every payload."""

    weight = 1

    def __init__(self, text: str, lack: MissingExtra) -> None:
        self.text = text
        self.lack = lack

    def errors(self, payload: Any, size: int) -> tuple[tuple[str, str], ...]:
        return (("/payload", f"The server cannot check it: {self.lack}"),)


Judging = Generator[asyncio.Future[Any] | None, None, Judgement]


class PayloadRules:
    """The schemas and filters in force."""

    def __init__(self) -> None:
        self._schemas: dict[str, Schema | UncheckedSchema] = {}
        self._filters: dict[EndpointId, Filter] = {}
        self.matters = False  # is there any schema or filter at all?

    def describe(self, event_types: Iterable[EventType]) -> None:
        """Replace the described types; unchanged ones keep their compiled schema."""
        before = self._schemas
        texts = {each.name: each.schema for each in event_types if each.schema is not None}
        self._schemas = {}
        for name, text in texts.items():
            known = before.get(name)
            schema = known if known is not None and known.text == text else _schema(name, text)
            if schema is not None:
                self._schemas[name] = schema
        self._weigh()

    def check_complete(self) -> None:
        """Raise `MissingExtra` if a schema cannot be checked here."""
        for name, each in self._schemas.items():
            if isinstance(each, UncheckedSchema):
                raise MissingExtra(each.lack.package, what=f"the schema of {name}")

    def subscribe(self, endpoint: Endpoint) -> None:
        """The endpoint was created or changed."""
        filter = None if endpoint.filter is None else _filter(endpoint.id, endpoint.filter)
        if filter is None:
            self.unsubscribe(endpoint.id)
        else:
            self._filters[endpoint.id] = filter
            self._weigh()

    def unsubscribe(self, endpoint: EndpointId) -> None:
        """The endpoint was deleted."""
        if self._filters.pop(endpoint, None) is not None:
            self._weigh()

    def concerns(self, event_type: str, endpoints: tuple[EndpointId, ...]) -> bool:
        """Whether a payload of this type, for these endpoints, decides anything."""
        return event_type in self._schemas or not self._filters.keys().isdisjoint(endpoints)

    def holds(self, judgement: Judgement, event_type: str, endpoints: tuple[EndpointId, ...]) -> bool:
        """Whether the same rules would apply now."""
        return (
            judgement.asked == endpoints
            and judgement.schema is self._schemas.get(event_type)
            and judgement.filters == self._filters_of(endpoints)
        )

    def judge(
        self, n: int, event_type: str, payload: bytes, endpoints: tuple[EndpointId, ...], slice: LoopBudget
    ) -> Judging:
        """Find out which endpoints want the event, or why it is refused.

        Pauses when the slice is used up, to continue in the next one, or with what has to be waited for first.
        """
        schema = self._schemas.get(event_type)
        filters = self._filters_of(endpoints)
        slice.take(of_endpoints(len(endpoints)))
        if schema is None and not filters:
            return Judgement(n, endpoints, schema, filters, endpoints)
        value = _read(payload)
        slice.take(of_payload(len(payload)))
        if schema is not None:
            errors = _NOT_CHECKABLE
            if value is not _UNREAD:
                cost = of_schema(len(payload), schema.weight)
                if cost is None:  # the library releases the interpreter's lock while it checks
                    checking = asyncio.get_running_loop().run_in_executor(
                        None, schema.errors, value, len(payload)
                    )
                    yield checking
                    errors = checking.result()
                else:
                    errors = schema.errors(value, len(payload))
                    slice.take(cost)
            if errors:
                return Judgement(n, endpoints, schema, filters, SchemaMismatch(event_type, errors))
        if not filters or value is _UNREAD:
            # A payload that cannot be read passes every filter.
            return Judgement(n, endpoints, schema, filters, endpoints)
        from hookline.validate.payload_filter import SOON, Budget

        budget = Budget(len(payload))
        wanted = []
        for id in endpoints:
            filter = filters.get(id)
            if filter is not None:
                if slice.is_spent:
                    yield None
                before = budget.left
                passes = filter.passes_soon(value, budget)
                slice.take(SOON if passes is None else before - budget.left)
                if passes is None:
                    passes = yield from _bit_by_bit(filter, value, budget, slice)
                if not passes:
                    continue
            wanted.append(id)
        return Judgement(n, endpoints, schema, filters, tuple(wanted))

    def _filters_of(self, endpoints: tuple[EndpointId, ...]) -> "dict[EndpointId, Filter]":
        filters = self._filters
        return {id: filters[id] for id in endpoints if id in filters} if filters else {}

    def _weigh(self) -> None:
        self.matters = bool(self._schemas or self._filters)


def _bit_by_bit(
    filter: "Filter", value: Any, budget: Any, slice: LoopBudget
) -> Generator[asyncio.Future[Any] | None, None, bool]:
    """Continue a filter that takes longer than a slice."""
    trial = filter.trial(value, budget)
    try:
        while True:
            yield None
            before = budget.left
            passes = trial.go_on()
            slice.take(before - budget.left)
            if passes is not None:
                return passes
    finally:
        trial.close()


_NOT_CHECKABLE: tuple[tuple[str, str], ...] = (
    ("/payload", "The payload holds a number that is too large to be checked."),
)


def _read(payload: bytes) -> Any:
    try:
        return msgspec.json.decode(payload)
    except msgspec.DecodeError:  # well-formed, but with a number out of range
        return _UNREAD


# Both were checked when they were set. If another version of a library let an invalid one through, it is left out:
# a check that is missing is noticed, and does less harm than events that are refused or held back.


def _schema(name: str, text: str) -> "Schema | UncheckedSchema | None":
    from hookline.validate.schemas.json_schema import Schema  # only types with a schema pay for the import

    try:
        return Schema(text)
    except MissingExtra as error:  # publishers must notice: whoever set the schema relies on it
        log.error("event_type.not_checked", name=name, error=str(error))
        return UncheckedSchema(text, error)
    except Exception as error:  # of any kind: a row may hold anything
        log.error("event_type.not_checked", name=name, error=str(error))
        return None


def _filter(id: EndpointId, expression: str) -> "Filter | None":
    from hookline.validate.payload_filter import Filter  # likewise

    try:
        return Filter(expression)
    except Exception as error:  # likewise
        log.error("endpoint.not_filtered", endpoint_id=ids.show("endpoint", id), error=str(error))
        return None
