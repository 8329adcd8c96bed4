"""Whom could an SQLite file's process tell anything?"""

from collections.abc import Callable

from hookline.store.contract.notifications import Notification


class SqliteHints:
    """The contract's verbs about hints. One process serves a file: there is nobody else."""

    async def tell(self, hint: Notification) -> None:
        """See the contract."""

    async def listen(
        self, hear: Callable[[Notification], None], *, on_ready: Callable[[], None] = lambda: None
    ) -> None:
        """See the contract."""
