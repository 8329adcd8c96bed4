"""Defines why an event could not be published in a transaction; each text has the next step.

Nothing was published when one of them is raised.
"""

from hookline.errors import HooklineError


class OutboxError(HooklineError):
    """The event could not be written into the application's transaction."""


class NotInTransaction(OutboxError):
    """The connection is in autocommit: the event would be sent although what it tells is rolled back."""

    def __init__(self, step: str) -> None:
        super().__init__(
            "No transaction is open on this connection, so the event would be sent whatever becomes of your changes. "
            f"{step}"
        )


class TransactionFailed(OutboxError):
    """The transaction can no longer commit a write."""


class OutboxMissing(OutboxError):
    """The database has no outbox table, or one of an earlier version."""


class OutboxForbidden(OutboxError):
    """The application's role may not insert into the outbox table."""


class OutboxBusy(OutboxError):
    """Another connection holds the write lock of the SQLite file."""
