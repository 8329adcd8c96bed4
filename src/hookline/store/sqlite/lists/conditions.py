"""Collects the conditions of a list with the values that are bound."""

from typing import Any

from hookline.store.sqlite import sql

Statement = tuple[str, dict[str, Any]]

# Rows read in one step of a list, matching or not. The reads of others take their turn between two steps.
STEP_ROWS = 2_000
STEP_EVENTS = 200  # of an account; they may have no deliveries at all


class SqliteConditions:
    """The conditions on a row, with the values that are bound."""

    def __init__(self) -> None:
        self.values: dict[str, Any] = {}
        self._conditions = ["true"]
        self._needs_event = False

    def add(self, condition: str, name: str, value: Any, *, of_event: bool = False) -> None:
        """`condition` names the value; a value of None adds no condition."""
        if value is not None:
            self.values[name] = value
            self._conditions.append(condition)
            self._needs_event = self._needs_event or of_event

    def also(self, *more: str) -> str:
        """All conditions, and these."""
        return " AND ".join([*self._conditions, *more])

    def source(self, deliveries: str) -> str:
        """Where the rows come from: joined with their events only if a condition is about events."""
        return f"{deliveries} {sql.EVENT_OF_DELIVERY}" if self._needs_event else deliveries
