"""Keeps what belongs to a whole installation in SQLite: its secret and its accounts' settings."""

import sqlite3

from hookline.model import Account, AuditEntry
from hookline.store import spoiled_rows
from hookline.store.account_row import notify_of
from hookline.store.contract.workers import NO_ENDPOINT
from hookline.store.sqlite.access.audit import note_audit
from hookline.store.sqlite.driver.bulk import Row
from hookline.store.sqlite.driver.connections import SqliteConnections, on_lister, on_writer
from hookline.store.sqlite.driver.values import json_text
from hookline.store.sqlite.workers import write_change

KEEP_INSTALLATION = "INSERT INTO installation (one, secret) VALUES (1, :secret) ON CONFLICT DO NOTHING"
READ_INSTALLATION = "SELECT secret FROM installation"
MARK_SEALED = """
INSERT INTO seal (only, mark) VALUES (1, :mark)
ON CONFLICT (only) DO UPDATE SET mark = iif(seal.mark IS :was, excluded.mark, seal.mark)
RETURNING mark
"""
PUT_ACCOUNT = """
INSERT INTO accounts (id, notify, updated_at) VALUES (:id, :notify, :updated_at)
ON CONFLICT (id) DO UPDATE SET notify = excluded.notify, updated_at = excluded.updated_at
"""
REPLACE_ACCOUNT = (
    "UPDATE accounts SET notify = :notify, updated_at = :updated_at WHERE id = :id AND updated_at = :was"
)
READ_ACCOUNT = "SELECT id, notify, updated_at FROM accounts WHERE id = :id"
READ_ACCOUNTS = "SELECT id, notify, updated_at FROM accounts WHERE id > :after ORDER BY id LIMIT :limit"


class SqliteInstallation(SqliteConnections):
    """The contract's verbs about the installation."""

    @on_writer
    def installation_secret(self, connection: sqlite3.Connection, fresh: bytes) -> bytes:
        """The secret that all processes on this database share; `fresh` becomes it if there was none."""
        connection.execute(KEEP_INSTALLATION, {"secret": fresh})
        (secret,) = connection.execute(READ_INSTALLATION).fetchone()
        return bytes(secret)

    @on_writer
    def mark_sealed(self, connection: sqlite3.Connection, mark: str, *, was: str | None = None) -> str:
        """Store the mark if there is none, or if the stored one is `was`; the mark that is stored then."""
        [[kept]] = connection.execute(MARK_SEALED, {"mark": mark, "was": was}).fetchall()
        return str(kept)

    @on_writer
    def put_account(
        self,
        connection: sqlite3.Connection,
        account: Account,
        *,
        now: float,
        was: float | None = None,
        audit: AuditEntry | None = None,
    ) -> bool:
        """Replace the settings of an account, with `was` only those that were read with `updated_at = was`."""
        values = {"id": account.id, "notify": json_text(account.notify), "updated_at": now}
        if was is None:
            connection.execute(PUT_ACCOUNT, values)
        elif not connection.execute(REPLACE_ACCOUNT, values | {"was": was}).rowcount:
            return False
        note_audit(connection, audit)
        write_change(connection, NO_ENDPOINT, kind="account", now=now)
        return True

    @on_lister
    def account(self, connection: sqlite3.Connection, id: str) -> Account | None:
        """The settings of an account."""
        row = connection.execute(READ_ACCOUNT, {"id": id}).fetchone()
        return None if row is None else read_account(row)

    @on_lister
    def accounts(self, connection: sqlite3.Connection, *, after: str = "", limit: int) -> list[Account]:
        """Accounts that have settings, by id, from above `after`."""
        rows = connection.execute(READ_ACCOUNTS, {"after": after, "limit": limit})
        return spoiled_rows.read_all(map(read_account, rows))


def read_account(row: Row) -> Account | None:
    id, notify, updated_at = row
    values = {"id": id, "notify": notify_of(notify, account=id), "updated_at": updated_at}
    return spoiled_rows.read(Account, values, names="id")
