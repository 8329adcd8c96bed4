"""Finds ids by their beginning in an SQLite file."""

import sqlite3

from hookline.store.sqlite.driver.connections import SqliteConnections, on_lister

_RANGE = "SELECT id FROM {table} WHERE id BETWEEN :low AND :high{also} ORDER BY id LIMIT :limit"
_OWN = " AND (:account IS NULL OR account = :account)"

# By noun; each walks the table's own key, and no further than the range.
IDS_BETWEEN = {
    "endpoint": _RANGE.format(table="endpoints", also=_OWN),
    "event": _RANGE.format(table="events", also=_OWN),
    "delivery": _RANGE.format(table="deliveries", also=""),
    "replay": _RANGE.format(table="jobs", also=f" AND kind = 'replay'{_OWN}"),
    "discard": _RANGE.format(table="jobs", also=f" AND kind = 'discard'{_OWN}"),
    "worker": _RANGE.format(table="workers", also=""),
    "alert": _RANGE.format(table="alerts", also=_OWN),
    "key": _RANGE.format(table="keys", also=""),
}


class SqliteIdRanges(SqliteConnections):
    """The contract's verb that finds ids."""

    @on_lister
    def ids_between(
        self,
        connection: sqlite3.Connection,
        noun: str,
        low: bytes,
        high: bytes,
        *,
        account: str | None = None,
        limit: int,
    ) -> list[bytes]:
        """The ids of a noun from `low` to `high`, both included, in order; with an account only its own."""
        values = {"low": low, "high": high, "limit": limit}
        if _OWN in IDS_BETWEEN[noun]:
            values["account"] = account
        return [id for (id,) in connection.execute(IDS_BETWEEN[noun], values)]
