"""Finds ids by their beginning in PostgreSQL."""

from hookline.store.postgres.driver.sessions import PostgresSessions

_RANGE = "SELECT id FROM {table} WHERE id BETWEEN $1 AND $2{also} ORDER BY id LIMIT $3"
_OWN = " AND ($4::text IS NULL OR account = $4)"

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


class PostgresIdRanges(PostgresSessions):
    """The contract's verb that finds ids."""

    async def ids_between(
        self, noun: str, low: bytes, high: bytes, *, account: str | None = None, limit: int
    ) -> list[bytes]:
        """See the contract."""
        statement = IDS_BETWEEN[noun]
        own = [account] if _OWN in statement else []
        return [row["id"] for row in await self._general.fetch(statement, low, high, limit, *own)]
