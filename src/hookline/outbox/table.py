"""Names the outbox table, with the statements that make it and that write into it.

`{}` stands for a value. There is no `%` and no `:` in the INSERT, so one text serves every driver. It returns nothing
and resolves no conflict: both would need the right to read.
"""

import re
from collections.abc import Sequence
from datetime import datetime
from enum import StrEnum
from functools import lru_cache
from typing import Literal, NamedTuple

from hookline.errors import Invalid

Dialect = Literal["postgresql", "sqlite"]

TABLES: dict[Dialect, str] = {"postgresql": "hookline.outbox", "sqlite": "hookline_outbox"}

_COLUMNS = "id, account, type, idempotency_key, deliver_at, hops, payload"
_WIDTH = 7
_NAME = r"[a-z_][a-z0-9_]{0,62}"
_SHAPES: dict[Dialect, re.Pattern[str]] = {
    "postgresql": re.compile(rf"{_NAME}\.{_NAME}"),
    "sqlite": re.compile(_NAME),
}
_ALLOWED: dict[Dialect, str] = {
    "postgresql": "schema.table, such as hookline.outbox",
    "sqlite": "the name of a table in the file itself, such as hookline_outbox",
}

# Every value is text with a cast, but for the payload: drivers disagree about the types of everything else.
_POSTGRES_VALUES = (
    "CAST(CAST({} AS text) AS uuid), CAST({} AS text), CAST({} AS text), CAST({} AS text), "
    "CAST(CAST({} AS text) AS timestamptz), CAST(CAST({} AS text) AS smallint), CAST({} AS bytea)"
)
# Arrays, so that the text is the same for any number of rows and a prepared statement is found again.
_POSTGRES_ROWS = (
    "SELECT CAST(id AS uuid), account, type, key, CAST(due AS timestamptz), CAST(hops AS smallint), payload "
    "FROM unnest(CAST({} AS text[]), CAST({} AS text[]), CAST({} AS text[]), CAST({} AS text[]), CAST({} AS text[]), "
    "CAST({} AS text[]), CAST({} AS bytea[])) WITH ORDINALITY "
    "AS draft (id, account, type, key, due, hops, payload, place) ORDER BY place"
)
_SQLITE_VALUES = "({})".format(", ".join(["{}"] * _WIDTH))


class Placeholders(StrEnum):
    """How a driver spells the place of a value."""

    FORMAT = "%s"
    QUESTION = "?"
    NUMBERED = "$"


class OutboxRow(NamedTuple):
    """A checked draft, as it is written."""

    id: bytes
    account: str
    type: str
    idempotency_key: str | None
    deliver_at: datetime | None  # in UTC
    hops: int
    payload: bytes


Value = str | bytes | int | float | None | list[str] | list[str | None] | list[bytes]


class Insert(NamedTuple):
    """One statement with its values."""

    statement: str
    values: tuple[Value, ...]


def named(dialect: Dialect, table: str | None) -> str:
    """The table's name for statements; `Invalid` for a name of another kind."""
    if table is None:
        return TABLES[dialect]
    if not isinstance(table, str) or not _SHAPES[dialect].fullmatch(table):
        raise Invalid(
            f"The outbox table of {_TITLES[dialect]} is {_ALLOWED[dialect]}, in lower case.", pointer="/table"
        )
    return table


def insert_of(
    rows: Sequence[OutboxRow], dialect: Dialect, placeholders: Placeholders, table: str | None
) -> Insert:
    """The one statement that writes these rows, in their order."""
    name = named(dialect, table)
    if dialect == "sqlite":
        values = [value for row in rows for value in _for_sqlite(row)]
        return Insert(_sqlite_insert(name, placeholders, len(rows)), tuple(values))
    if len(rows) == 1:
        return Insert(_postgres_insert(name, placeholders), _for_postgres(rows[0]))
    columns = zip(*map(_for_postgres, rows), strict=True)
    return Insert(_postgres_insert_many(name, placeholders), tuple([list(column) for column in columns]))


def _for_postgres(row: OutboxRow) -> tuple[str, str, str, str | None, str | None, str, bytes]:
    due = None if row.deliver_at is None else row.deliver_at.isoformat()
    return (row.id.hex(), row.account, row.type, row.idempotency_key, due, str(row.hops), row.payload)


def _for_sqlite(row: OutboxRow) -> tuple[bytes, str, str, str | None, float | None, int, bytes]:
    due = None if row.deliver_at is None else row.deliver_at.timestamp()
    return (row.id, row.account, row.type, row.idempotency_key, due, row.hops, row.payload)


@lru_cache(maxsize=16)
def _postgres_insert(name: str, placeholders: Placeholders) -> str:
    return _spelled(f"INSERT INTO {name} ({_COLUMNS}) VALUES ({_POSTGRES_VALUES})", placeholders)


@lru_cache(maxsize=16)
def _postgres_insert_many(name: str, placeholders: Placeholders) -> str:
    return _spelled(f"INSERT INTO {name} ({_COLUMNS}) {_POSTGRES_ROWS}", placeholders)


@lru_cache(maxsize=16)
def _sqlite_insert(name: str, placeholders: Placeholders, count: int) -> str:
    # In the file itself: a commit over two files, of which one is attached, is torn by a crash.
    rows = ", ".join([_SQLITE_VALUES] * count)
    return _spelled(f"INSERT INTO main.{name} ({_COLUMNS}) VALUES {rows}", placeholders)


def _spelled(statement: str, placeholders: Placeholders) -> str:
    parts = statement.split("{}")
    if placeholders is Placeholders.NUMBERED:
        return "".join([f"{part}${n}" for n, part in enumerate(parts[:-1], 1)]) + parts[-1]
    return placeholders.value.join(parts)


# --- the table ---

_TITLES: dict[Dialect, str] = {"postgresql": "PostgreSQL", "sqlite": "SQLite"}

_POSTGRES_TABLE = """\
CREATE TABLE IF NOT EXISTS {table} (
  seq bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  id uuid NOT NULL CHECK (right(id::text, 5) = '00000')  -- the default is for an INSERT by hand, in any language
    DEFAULT (lpad(to_hex((extract(epoch FROM clock_timestamp()) * 1000)::bigint), 12, '0') || '7'
      || substr(replace(gen_random_uuid()::text, '-', ''), 14, 14) || '00000')::uuid,
  at timestamptz NOT NULL DEFAULT clock_timestamp(),
  deliver_at timestamptz,
  account text NOT NULL DEFAULT 'default',
  type text NOT NULL,
  idempotency_key text,
  hops smallint NOT NULL DEFAULT 0,
  payload bytea NOT NULL
)"""
_SQLITE_TABLE = """\
CREATE TABLE IF NOT EXISTS {table} (
  seq INTEGER PRIMARY KEY AUTOINCREMENT,
  id BLOB NOT NULL CHECK (length(id) = 16),
  at REAL NOT NULL DEFAULT ((julianday('now') - 2440587.5) * 86400.0),
  deliver_at REAL,
  account TEXT NOT NULL DEFAULT 'default',
  type TEXT NOT NULL,
  idempotency_key TEXT,
  hops INTEGER NOT NULL DEFAULT 0,
  payload BLOB NOT NULL CHECK (typeof(payload) = 'blob')
)"""
# Columns that rows which are there can do without.
_ADDED = frozenset({"deliver_at", "account", "idempotency_key", "hops"})


def ddl_statements(dialect: Dialect, *, table: str | None = None) -> tuple[str, ...]:
    """The statements that make the table and its index; they may be repeated."""
    if dialect not in TABLES:
        raise Invalid('A dialect is "postgresql" or "sqlite".', pointer="/dialect")
    name = named(dialect, table)
    schema, _, plain = name.rpartition(".")
    index = f"CREATE INDEX IF NOT EXISTS {plain}_accounts ON {name} (account, seq)"
    if dialect == "sqlite":
        return (_SQLITE_TABLE.format(table=name), index)
    return (
        f"CREATE SCHEMA IF NOT EXISTS {schema}",
        _POSTGRES_TABLE.format(table=name),
        # Moved out of the row and never compressed: it is read once and gone.
        f"ALTER TABLE {name} ALTER payload SET STORAGE EXTERNAL",
        index,
    )


def adding(dialect: Dialect, columns: Sequence[str]) -> str | None:
    """The statements that add these columns to the table; None: it has to be made anew."""
    lines = (_POSTGRES_TABLE if dialect == "postgresql" else _SQLITE_TABLE).splitlines()
    found = {line.split()[0]: line.strip().rstrip(",") for line in lines}
    if not _ADDED.issuperset(columns):
        return None
    return "; ".join(f"ALTER TABLE {TABLES[dialect]} ADD {found[each]}" for each in columns)


def ddl(dialect: Dialect, *, table: str | None = None) -> str:
    """The script that makes the table, for an application's own migrations; it may be repeated."""
    return "".join([f"{statement};\n" for statement in ddl_statements(dialect, table=table)])
