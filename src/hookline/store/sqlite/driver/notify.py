"""Sends no notifications on SQLite: one process serves a file."""

from collections.abc import Callable

from hookline.store.contract.notify import Notification


class SqliteNotify:
    """The contract's verbs about notifications. One process serves a file, so there is nobody to notify."""

    async def notify(self, notification: Notification) -> None:
        """See the contract."""

    async def listen(
        self, hear: Callable[[Notification], None], *, on_ready: Callable[[], None] = lambda: None
    ) -> None:
        """See the contract."""
