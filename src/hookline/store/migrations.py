"""Decides which migrations a database needs before this code may use it.

Both stores share this part: it reads the numbered files and decides. Each store applies them in its own way (one
transaction for each migration and its record, one process at a time).

The level of code is the number of its newest migration. A migration runs while older processes are at work, so it names
the lowest level that it still serves, and the database remembers the highest of those names. Code below it stops. Code
at or above it keeps working, even if it does not know all migrations
(docs/adr/0009-migrations-name-whom-they-serve.md).
"""

import hashlib
import re
from collections.abc import Sequence
from importlib import resources

import msgspec

from hookline.errors import SchemaBehind, SchemaMissing, SchemaOutgrown, StoreRefused

_FILE = re.compile(r"(\d{4})_[a-z0-9_]+\.sql\Z")
_SERVES = re.compile(r"^-- serves: (\d{4})$", re.MULTILINE)
_BY_ITSELF = re.compile(r"^-- each statement by itself$", re.MULTILINE)


class Applied(msgspec.Struct, frozen=True):
    """A row of `schema_migrations`."""

    number: int
    name: str
    checksum: str


class Migration(msgspec.Struct, frozen=True):
    """One numbered file, with what its row in `schema_migrations` will hold."""

    number: int
    name: str  # "0001_tables"
    checksum: str
    sql: str
    serves: int = 0  # the lowest level of code that can work with the schema after it
    is_stepwise: bool = False  # PostgreSQL: its statements must not be in a transaction, and can be repeated


def read_migrations(package: str) -> tuple[Migration, ...]:
    """The migrations among the package's resources, in order."""
    files = (file for file in resources.files(package).iterdir() if _FILE.match(file.name))
    found = [_migration(file.name, file.read_text("utf-8")) for file in files]
    found.sort(key=lambda migration: migration.number)
    if [migration.number for migration in found] != list(range(1, len(found) + 1)):
        raise ValueError(f"the migrations of {package} are not numbered 1, 2, 3 …")
    return tuple(found)


def _migration(file_name: str, sql: str) -> Migration:
    # Line endings depend on the checkout, not on the schema.
    checksum = hashlib.sha256(sql.replace("\r\n", "\n").encode()).hexdigest()
    number = int(file_name[:4])
    serves = _SERVES.search(sql)
    return Migration(
        number,
        file_name.removesuffix(".sql"),
        checksum,
        sql,
        serves=number if serves is None else int(serves[1]),
        is_stepwise=_BY_ITSELF.search(sql) is not None,
    )


def level(known: Sequence[Migration]) -> int:
    """The level of this code: the number of its newest migration."""
    return max((migration.number for migration in known), default=0)


def refuse_outgrown(known: Sequence[Migration], *, newest: str, serves: int) -> None:
    """Refuse a schema that serves only newer code; `newest` is the name of its last migration."""
    if serves > level(known):
        raise SchemaOutgrown(
            f"The database was migrated by a later version (to {newest}), which this one can no longer work with: "
            "upgrade hookline."
        )


def outstanding(
    known: Sequence[Migration], applied: Sequence[Applied], *, serves: int | None
) -> tuple[Migration, ...]:
    """The migrations still to apply, in order; refuses a schema that does not serve this code.

    `serves` is the lowest level that the schema says it serves; None: it does not say, and unknown migrations are
    refused.
    """
    by_number = {migration.number: migration for migration in known}
    for row in applied:
        migration = by_number.pop(row.number, None)
        if migration is None:
            least = row.number if serves is None else serves
            refuse_outgrown(known, newest=applied[-1].name, serves=least)
        elif migration.checksum != row.checksum:
            raise StoreRefused(
                f"Migration {row.name} was edited after it was applied to this database: "
                "restore the file or the database."
            )
    return tuple(by_number[number] for number in sorted(by_number))


def refuse_unless_current(
    known: Sequence[Migration], applied: Sequence[Applied], *, serves: int | None
) -> None:
    """Refuse a database that lacks a migration this code needs, or that no longer serves this code."""
    if missing := outstanding(known, applied, serves=serves):
        if not applied:
            raise SchemaMissing("The database has no tables of hookline's yet: run `hookline migrate`.")
        raise SchemaBehind(
            f"The database is behind this version (missing: {', '.join(m.name for m in missing)}): "
            "run `hookline migrate`."
        )
