"""What may be said about an account?

Any account can be named; one that nothing was said about has nothing to tell. Where it wants to be notified is
kept here and used by alerts.
"""

import re
from collections.abc import Callable, Mapping
from typing import Any
from urllib.parse import urlsplit

import msgspec

from hookline import rfc3339
from hookline.clock import Clock
from hookline.errors import Invalid, NotFound
from hookline.model import Account, Notify
from hookline.pipeline.catalogue.catalogue import Catalogue
from hookline.store.contract import Store
from hookline.validate.names import check_account, check_known, is_text

MAX_EMAIL = 254
_EMAIL = re.compile(r"[^\s@\x00-\x20\x7f<>(),;:\"\\\[\]]{1,64}@[A-Za-z0-9](?:[A-Za-z0-9.-]*[A-Za-z0-9])?")
_SLACK_HOSTS = ("hooks.slack.com", "hooks.slack-gov.com")
_WAYS = ("email", "webhook", "slack")


class NotifyReport(msgspec.Struct, kw_only=True):
    """Where an account wants to be told about trouble."""

    email: str | None
    webhook: str | None
    slack: str | None


class AccountReport(msgspec.Struct, kw_only=True):
    """An account and what was said about it."""

    id: str
    notify: NotifyReport
    endpoints: int
    updated_at: str | None


class Accounts:
    """What is said about accounts."""

    def __init__(
        self, store: Store, catalogue: Catalogue, clock: Clock, *, canonical: Callable[[str], str]
    ) -> None:
        self._store = store
        self._catalogue = catalogue
        self._clock = clock
        self._canonical = canonical  # of a URL that hookline may send to

    async def read(self, id: str) -> AccountReport:
        """An account, whether or not anything was said about it."""
        try:
            check_account(id)
        except Invalid:
            raise NotFound("account", id) from None
        return self._shown(await self._store.account(id) or Account(id=id))

    async def put(self, id: str, fields: Mapping[str, Any]) -> AccountReport:
        """Replace what is said about an account."""
        check_account(id, pointer="/id")
        check_known(fields, ("notify",))
        now = self._clock.now()
        account = Account(id=id, notify=self._notify(fields.get("notify")), updated_at=now)
        await self._store.put_account(account, now=now)
        return self._shown(account)

    def _notify(self, value: Any) -> Notify:
        if value is None:
            return Notify()
        if not isinstance(value, Mapping):
            raise Invalid("notify is an object of email, webhook and slack.", pointer="/notify")
        check_known(value, _WAYS, at="/notify")
        return Notify(
            email=_email(value.get("email")),
            webhook=self._url(value.get("webhook"), "webhook"),
            slack=self._slack(value.get("slack")),
        )

    def _slack(self, value: Any) -> str | None:
        url = self._url(value, "slack")
        if url is not None and (urlsplit(url).hostname not in _SLACK_HOSTS or not url.startswith("https:")):
            raise Invalid(
                "slack is an incoming webhook's URL, https://hooks.slack.com/…; any other goes under webhook.",
                pointer="/notify/slack",
            )
        return url

    def _url(self, value: Any, name: str) -> str | None:
        if value is None:
            return None
        if not isinstance(value, str):
            raise Invalid(f"{name} is a URL.", pointer=f"/notify/{name}")
        try:
            return self._canonical(value)
        except Invalid as error:
            raise Invalid(error.detail, pointer=f"/notify/{name}", code=error.code) from None

    def _shown(self, account: Account) -> AccountReport:
        return AccountReport(
            id=account.id,
            notify=NotifyReport(**msgspec.structs.asdict(account.notify)),
            endpoints=self._catalogue.count(account.id),
            updated_at=None if account.updated_at is None else rfc3339.show(account.updated_at),
        )


def _email(value: Any) -> str | None:
    if value is None:
        return None
    if (
        not isinstance(value, str)
        or len(value) > MAX_EMAIL
        or not is_text(value)
        or not _EMAIL.fullmatch(value)
        or ".." in value
    ):
        raise Invalid("email is an address such as ops@example.com.", pointer="/notify/email")
    return value
