"""Reads and changes the settings of accounts: where each is told of trouble.

Every name is an account; one without settings is told of nothing. The account `hookline` is the operators' own. A URL
of a channel is shown without what follows its host, because whoever knows it can write there.
"""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Annotated, Any

import msgspec

from hookline import rfc3339
from hookline.admin.audit import Audit
from hookline.clock import Clock
from hookline.crypto.sealing import Sealer
from hookline.errors import Invalid, NotFound, SealBroken
from hookline.model import Account, AuditAction, Notify
from hookline.pipeline.catalogue.catalogue import Catalogue
from hookline.pipeline.notifying.channels import ChannelAnswer
from hookline.rules.audit_changes import differences
from hookline.rules.people import HIDDEN, masked
from hookline.store.contract import Store
from hookline.validate.api_schema import Moment
from hookline.validate.names import check_account, check_known, is_email

_SETTINGS = ("email", "webhook", "slack")

TryChannels = Callable[[str], Awaitable[Sequence[ChannelAnswer]]]


class NotifyReport(msgspec.Struct, kw_only=True):
    """Where an account is told of trouble; of a URL only the scheme and the host are shown."""

    email: str | None
    webhook: str | None
    slack: str | None


class AccountReport(msgspec.Struct, kw_only=True):
    """An account with its settings."""

    id: str
    notify: NotifyReport
    endpoints: int
    updated_at: Moment | None  # null: nothing was ever set


class ChannelReport(msgspec.Struct, kw_only=True):
    """What came of a test alert on one channel; `detail` is the receiver's answer or the error."""

    channel: Annotated[str, msgspec.Meta(extra_json_schema={"enum": ["email", "slack", "webhook", "events"]})]
    recipient: str
    ok: bool
    detail: str


class AlertTestReport(msgspec.Struct, kw_only=True):
    """What came of a test alert; without a configured channel there are no results."""

    account: str
    results: list[ChannelReport]


class Accounts:
    """The settings of accounts."""

    def __init__(
        self,
        store: Store,
        catalogue: Catalogue,
        clock: Clock,
        audit: Audit,
        *,
        sealer: Sealer,
        canonical: Callable[[str], str],
        try_channels: TryChannels,
    ) -> None:
        self._store = store
        self._catalogue = catalogue
        self._clock = clock
        self._audit = audit
        self._sealer = sealer
        self._canonical = canonical  # the one spelling of a URL that may be sent to
        self._try_channels = try_channels

    async def read(self, id: str) -> AccountReport:
        """An account, with or without settings."""
        _refuse_unnamed(id)
        return self._shown(await self._stored(id))

    async def put(self, id: str, fields: Mapping[str, Any]) -> AccountReport:
        """Replace the settings of an account; when this returns, they are in force here."""
        check_account(id)
        check_known(fields, ("notify",))
        before = self._kept(await self._stored(id))
        notify = self._notify(fields.get("notify"), kept=before)
        now = self._clock.now()
        # Whoever knows the URL of a channel can write there.
        changes = differences(
            _channels(before), _channels(notify), shows={"webhook": masked, "slack": masked}
        )
        entry = None
        if changes:
            entry = self._audit.entry(AuditAction.ACCOUNT_UPDATED, "account", id, account=id, changes=changes)
        sealed = self._sealer.sealed_notify(Account(id=id, notify=notify))
        await self._store.put_account(Account(id=id, notify=sealed, updated_at=now), now=now, audit=entry)
        await self._catalogue.include_own()
        await self._catalogue.read_notified()
        return self._shown(await self._stored(id))

    async def test(self, id: str) -> AlertTestReport:
        """Send a test alert on every channel of an account, and wait for the answers."""
        _refuse_unnamed(id)
        answers = await self._try_channels(id)
        return AlertTestReport(
            account=id,
            results=[
                ChannelReport(channel=each.channel, recipient=each.recipient, ok=each.ok, detail=each.detail)
                for each in answers
            ],
        )

    async def _stored(self, id: str) -> Account:
        return await self._store.account(id) or Account(id=id)

    def _kept(self, account: Account) -> Notify:
        """The settings to which a request may refer; URLs that no key opens can only be replaced."""
        try:
            return self._sealer.open_notify(account)
        except SealBroken:
            return Notify()

    def _notify(self, value: Any, *, kept: Notify) -> Notify:
        if value is None:
            return Notify()
        if not isinstance(value, Mapping):
            raise Invalid("notify is an object with email, webhook and slack.", pointer="/notify")
        check_known(value, _SETTINGS, at="/notify")
        return Notify(
            email=_email(value.get("email")),
            webhook=self._url(value.get("webhook"), "webhook", kept=kept.webhook),
            slack=self._url(value.get("slack"), "slack", kept=kept.slack),
        )

    def _url(self, value: Any, name: str, *, kept: str | None) -> str | None:
        if value is None:
            return None
        pointer = f"/notify/{name}"
        if not isinstance(value, str):
            raise Invalid(f"{name} is a URL.", pointer=pointer)
        if value.endswith(HIDDEN):
            if kept is not None and masked(kept) == value:
                return kept
            raise Invalid(
                f"{name} ends with {HIDDEN} but is not the stored URL as it is shown; give the whole URL.",
                pointer=pointer,
            )
        try:
            return self._canonical(value)
        except Invalid as error:
            raise Invalid(error.detail, pointer=pointer, code=error.code) from None

    def _shown(self, account: Account) -> AccountReport:
        notify, changed = self._sealer.open_notify(account), account.updated_at
        return AccountReport(
            id=account.id,
            notify=NotifyReport(
                email=notify.email,
                webhook=None if notify.webhook is None else masked(notify.webhook),
                slack=None if notify.slack is None else masked(notify.slack),
            ),
            endpoints=self._catalogue.count(account.id),
            updated_at=None if changed is None else rfc3339.show(self._clock.shown(changed)),
        )


def _channels(notify: Notify) -> dict[str, Any]:
    return {"email": notify.email, "webhook": notify.webhook, "slack": notify.slack}


def _refuse_unnamed(id: str) -> None:
    """NotFound for what no account can be called."""
    try:
        check_account(id)
    except Invalid:
        raise NotFound("account", id) from None


def _email(value: Any) -> str | None:
    if value is None:
        return None
    if not isinstance(value, str) or not is_email(value):
        raise Invalid("email is one address in ASCII, such as ops@example.com.", pointer="/notify/email")
    return value
