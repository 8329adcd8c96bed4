"""Whom could an SQLite file's process tell anything?"""

from collections.abc import Callable

from hookline.store.contract.notifications import Hint


class SqliteHints:
    """The contract's verbs about hints. One process serves a file: there is nobody else."""

    async def tell(self, hint: Hint) -> None:
        """See the contract."""

    async def listen(
        self, hear: Callable[[Hint], None], *, on_ready: Callable[[], None] = lambda: None
    ) -> None:
        """See the contract."""
