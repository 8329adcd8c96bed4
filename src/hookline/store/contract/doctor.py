"""Defines what `hookline doctor` reads of a database, without changing it."""

import msgspec

from hookline.model import Account, Endpoint, EndpointId, EventType
from hookline.store.contract.figures import Snapshot
from hookline.store.contract.workers import WorkerRow
from hookline.store.spoiled_rows import Spoiled

HOUR = 3_600.0  # seconds
MOST_COUNTED = 10_000  # of a backlog: of a larger one, it is enough to know that it is large

# What both databases are asked about endpoints' secrets, in SQL that both understand.
SEAL = "SELECT mark FROM seal"
SEALED = """
SELECT id, secret FROM endpoints WHERE secret LIKE 'sealed1 %'
UNION ALL SELECT id, old_secret FROM endpoints WHERE old_secret LIKE 'sealed1 %'
"""
NOTIFIED = "SELECT id, notify FROM accounts WHERE notify LIKE '%://%' OR notify LIKE '%sealed1 %'"
PLAIN = """
SELECT count(*) FROM endpoints WHERE secret NOT LIKE 'sealed1 %' OR old_secret NOT LIKE 'sealed1 %'
OR client_certificate LIKE '%-----BEGIN %'
"""

# Likewise about outboxes.
REFUSED = f"SELECT count(*) FROM (SELECT 1 FROM outbox_refused LIMIT {MOST_COUNTED}) AS refused"
SOURCES = "SELECT name FROM outbox_sources ORDER BY name"


class Waiting(msgspec.Struct, frozen=True, kw_only=True):
    """Deliveries that could be sent now, in lanes that nothing holds back."""

    deliveries: int  # MOST_COUNTED at most
    since: float  # when the first of them was due


class OpenCircuit(msgspec.Struct, frozen=True, kw_only=True):
    """An endpoint that is not sent to."""

    endpoint_id: EndpointId
    reason: str
    probe_at: float | None  # when it is tried again


class Holder(msgspec.Struct, frozen=True, kw_only=True):
    """A session that keeps others from writing."""

    what: str  # the table that it locked
    pid: int | None
    name: str  # of its application
    seconds: float | None  # since its transaction began; None: the database does not say


class OutboxExamination(msgspec.Struct, frozen=True, kw_only=True):
    """Facts about an outbox, wherever it is."""

    server: str
    is_old: bool = False  # a version that hookline cannot read
    has_table: bool = True
    missing_columns: tuple[str, ...] = ()
    missing_rights: tuple[str, ...] = ()  # "DELETE on hookline.outbox"
    reuses_numbers: bool = False  # SQLite without AUTOINCREMENT
    was_used: bool = False  # SQLite: there ever was a row
    waiting: int = 0  # rows, MOST_COUNTED at most
    oldest_age_s: float | None = None


OUTBOX_COLUMNS = (
    "seq",
    "id",
    "at",
    "deliver_at",
    "account",
    "type",
    "idempotency_key",
    "hops",
    "payload",
)


class Examination(msgspec.Struct, frozen=True, kw_only=True):
    """Facts only; whether they are good is decided elsewhere."""

    server: str  # "SQLite 3.40.1", "PostgreSQL 15.4"
    now: float  # its time, in seconds since 1970; for a file: the latest time that was written into it
    settings: dict[str, str]  # the ones that decide whether a commit survives a crash
    unsafe: str | None  # why it must not be used: too old, a standby, commits that can be lost
    schema: str | None  # what is wrong with the schema; None: it is the one this code knows
    missing_rights: tuple[str, ...] = ()  # "UPDATE on lanes"
    connections: int | None = None  # to the server, of all users together; None: not counted
    needed_connections: int = 0  # by one process
    seal: str = ""  # the mark beside the secrets that only their key opens; empty: any key is right
    sealed: tuple[tuple[bytes, str], ...] = ()  # endpoints' sealed secrets, each with its endpoint
    plain: int = 0  # endpoints with a secret that is not sealed
    notified: tuple[Account, ...] = ()  # those with a URL
    endpoints: tuple[Endpoint, ...] = ()  # MOST_COUNTED at most
    event_types: tuple[EventType, ...] = ()  # likewise
    spoiled: tuple[Spoiled, ...] = ()  # rows of other tables that cannot be read as they are
    workers: tuple[WorkerRow, ...] = ()
    waiting: Waiting | None = None
    circuits: tuple[OpenCircuit, ...] = ()  # that are not closed, MOST_COUNTED at most
    dead_last_hour: int = 0  # MOST_COUNTED at most
    refused: int = 0  # rows of outboxes, MOST_COUNTED at most
    sources: tuple[str, ...] = ()  # the names of outboxes that were ever read
    holders: tuple[Holder, ...] = ()
    snapshots: tuple[Snapshot, ...] = ()
    unanswered: tuple[str, ...] = ()  # what the database did not say in time
