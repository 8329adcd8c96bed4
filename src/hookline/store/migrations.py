"""Which changes does this database's schema still need, and may this code use it at all?

The part both stores share: it reads the numbered files and decides; each store carries them out in its own
way (one transaction for each migration and its record, one process at a time).
"""

import hashlib
import re
from collections.abc import Sequence
from importlib import resources

import msgspec

from hookline.errors import SchemaMissing, StoreRefused

_FILE = re.compile(r"(\d{4})_[a-z0-9_]+\.sql\Z")


class Applied(msgspec.Struct, frozen=True):
    """A row of `schema_migrations`."""

    number: int
    name: str
    checksum: str


class Migration(msgspec.Struct, frozen=True):
    """One numbered file, and what its row in `schema_migrations` will say."""

    number: int
    name: str  # "0001_tables"
    checksum: str
    sql: str


def read_migrations(package: str) -> tuple[Migration, ...]:
    """The migrations among the package's resources, in order."""
    files = (file for file in resources.files(package).iterdir() if _FILE.match(file.name))
    found = [_migration(file.name, file.read_text("utf-8")) for file in files]
    found.sort(key=lambda migration: migration.number)
    if [migration.number for migration in found] != list(range(1, len(found) + 1)):
        raise ValueError(f"the migrations of {package} are not numbered 1, 2, 3 …")
    return tuple(found)


def _migration(file_name: str, sql: str) -> Migration:
    # Line endings are the checkout's business, not the schema's.
    checksum = hashlib.sha256(sql.replace("\r\n", "\n").encode()).hexdigest()
    return Migration(int(file_name[:4]), file_name.removesuffix(".sql"), checksum, sql)


def outstanding(known: Sequence[Migration], applied: Sequence[Applied]) -> tuple[Migration, ...]:
    """What is still to be applied, in order; refuses a schema that this code does not know."""
    by_number = {migration.number: migration for migration in known}
    for row in applied:
        migration = by_number.pop(row.number, None)
        if migration is None:
            raise StoreRefused(
                f"The database has migration {row.name}, which this version does not know: upgrade hookline."
            )
        if migration.checksum != row.checksum:
            raise StoreRefused(
                f"Migration {row.name} was edited after it was applied to this database: "
                "restore the file or the database."
            )
    return tuple(by_number[number] for number in sorted(by_number))


def refuse_unless_current(known: Sequence[Migration], applied: Sequence[Applied]) -> None:
    """Refuse a database that is not exactly at this code's schema."""
    if missing := outstanding(known, applied):
        if not applied:
            raise SchemaMissing("The database has no tables of hookline's yet: run `hookline migrate`.")
        raise StoreRefused(
            f"The database is behind this version (missing: {', '.join(m.name for m in missing)}): "
            "run `hookline migrate`."
        )
