"""Lists the accounts that are known: those with endpoints, and those that are told of trouble.

Every name is an account, so no other list of them exists. The answer comes from this process's copy of the catalogue.
"""

from collections.abc import Sequence

import msgspec

from hookline.pipeline.catalogue.catalogue import Catalogue


class KnownAccount(msgspec.Struct, frozen=True, kw_only=True):
    """An account with what is known of it."""

    id: str
    endpoints: int
    channels: tuple[str, ...]  # on which it is told of trouble


class AccountList:
    """The accounts of the whole installation: for operators."""

    def __init__(self, catalogue: Catalogue) -> None:
        self._catalogue = catalogue

    def find(self, *, part: str = "", after: str = "", limit: int) -> Sequence[KnownAccount]:
        """By name, from above `after`; with a part only those whose name has it."""
        known = self._catalogue.accounts()
        names = sorted(name for name in known if name > after and part.lower() in name.lower())
        return [self._shown(name) for name in names[:limit]]

    def one(self, name: str) -> KnownAccount | None:
        """The account of exactly this name, if it is known."""
        return self._shown(name) if name in self._catalogue.accounts() else None

    def _shown(self, name: str) -> KnownAccount:
        notify = self._catalogue.notified.get(name)
        channels = () if notify is None else ("email", "webhook", "slack")
        return KnownAccount(
            id=name,
            endpoints=self._catalogue.count(name),
            channels=tuple(each for each in channels if getattr(notify, each) is not None),
        )
