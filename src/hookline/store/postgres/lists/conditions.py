"""Collects the conditions of a list with the values that are bound."""

from typing import Any

from hookline.store.postgres import sql

Statement = tuple[str, list[Any]]

# Rows read in each step of a list, matching or not, so that no statement takes longer than allowed. The first step is
# short: most lists find their page among the newest rows.
STEPS = (1_000, 10_000, 50_000)


class PostgresConditions:
    """The conditions on a row, with the values that are bound."""

    def __init__(self) -> None:
        self.values: list[Any] = []
        self._conditions = ["true"]
        self.needs_event = False

    def bind(self, value: Any, kind: str) -> str:
        """The value's placeholder in the statement."""
        self.values.append(value)
        return f"${len(self.values)}::{kind}"

    def add(self, condition: str, value: Any, kind: str, *, of_event: bool = False) -> None:
        """`condition` has `{}` where the value belongs; a value of None adds no condition."""
        if value is not None:
            place = self.bind(value, kind)
            self._conditions.append(condition.format(f"to_timestamp({place})" if kind == "float8" else place))
            self.needs_event = self.needs_event or of_event

    def also(self, *more: str) -> str:
        """All conditions, and these."""
        return " AND ".join([*self._conditions, *more])

    def source(self, deliveries: str = "deliveries d") -> str:
        """Where the rows come from: joined with their events only if a condition is about events."""
        return sql.LIST_WITH_EVENTS.format(deliveries=deliveries) if self.needs_event else deliveries
