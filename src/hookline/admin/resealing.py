"""Seals, unseals and counts what is secret in a database.

It goes from one endpoint, and one account, to the next, each in a transaction of its own, while servers keep working.
"""

from collections.abc import AsyncIterator, Callable

import msgspec
import structlog

from hookline import ids
from hookline.admin.audit import Audit
from hookline.crypto.sealing import Seal, Sealer
from hookline.errors import ConfigError, Invalid, Overloaded, SealGarbled
from hookline.model import Account, AuditAction, AuditEntry, Endpoint, Notify
from hookline.store.contract import Store
from hookline.validate.endpoint_changes import later_than, written_whole

ACCOUNTS_AT_ONCE = 1_000
_TRIES = 10  # against others who change the same endpoint or account at the same moment

log = structlog.get_logger()


class Rewritten(msgspec.Struct, frozen=True):
    """How many had to be written."""

    endpoints: int
    accounts: int


class SealCounts(msgspec.Struct, frozen=True, kw_only=True):
    """How many endpoints, or accounts, have a secret that is stored like this. One may count several times."""

    current: int = 0
    older: int = 0
    plain: int = 0
    closed: int = 0


class SealReport(msgspec.Struct, frozen=True, kw_only=True):
    """How the secrets of a database are stored."""

    keys: int  # in HOOKLINE_SECRET_KEY
    endpoints: SealCounts
    accounts: SealCounts
    mark: Seal  # of the check value; PLAIN: there is none

    @property
    def is_whole(self) -> bool:
        """Whether everything is sealed with the first key, so that no other key is needed."""
        left = sum(each.older + each.plain + each.closed for each in (self.endpoints, self.accounts))
        return self.keys > 0 and self.mark in (Seal.CURRENT, Seal.PLAIN) and not left


async def seal_all(store: Store, sealer: Sealer, audit: Audit) -> Rewritten:
    """Seal every secret with the first key."""
    if not sealer.seals:
        raise ConfigError("HOOKLINE_SECRET_KEY is not set; set it to the key that is to encrypt the secrets.")
    mark = await store.mark_sealed(sealer.mark())
    renewed = sealer.renewed_mark(mark)  # refuses a wrong key
    await store.write_audit(_about_all(audit, AuditAction.SECRETS_SEALED))
    await store.mark_sealed(renewed, was=mark)
    return await _rewrite_all(store, sealer.sealed, sealer.sealed_notify)


async def unseal_all(store: Store, sealer: Sealer, audit: Audit) -> Rewritten:
    """Store every secret plain."""
    if not sealer.seals:
        raise ConfigError("HOOKLINE_SECRET_KEY is not set; set it to the key that encrypted the secrets.")
    mark = await store.mark_sealed(sealer.mark())
    sealer.renewed_mark(mark)  # refuses a wrong key
    await store.write_audit(_about_all(audit, AuditAction.SECRETS_UNSEALED))
    written = await _rewrite_all(store, sealer.plain, sealer.open_notify)
    await store.mark_sealed("", was=mark)  # from now on any key is right
    return written


def _about_all(audit: Audit, action: AuditAction) -> AuditEntry:
    """It tells of all endpoints and accounts: they follow in transactions of their own."""
    return audit.entry(action, "installation", "secrets", account=None)


async def count_seals(store: Store, sealer: Sealer, *, keys: int) -> SealReport:
    """Count how secrets are stored, without changing any of them."""
    endpoints = [sealer.seals_of(each) for each in (await store.catalogue()).endpoints]
    accounts = [sealer.seals_of(each) async for each in _accounts(store)]
    mark = await store.mark_sealed("", was="")  # stores nothing that means anything: an empty mark is none
    return SealReport(
        keys=keys,
        endpoints=_counts(endpoints),
        accounts=_counts(accounts),
        mark=sealer.seal_of_mark(mark),
    )


def _counts(found: list[frozenset[Seal]]) -> SealCounts:
    return SealCounts(**{seal.value: sum(seal in each for each in found) for seal in Seal})


async def _accounts(store: Store) -> AsyncIterator[Account]:
    last = ""
    while part := await store.accounts(after=last, limit=ACCOUNTS_AT_ONCE):
        for each in part:
            yield each
        last = part[-1].id


async def _rewrite_all(
    store: Store, of_endpoint: Callable[[Endpoint], Endpoint], of_account: Callable[[Account], Notify]
) -> Rewritten:
    now = (await store.pulse(seen=0)).now
    endpoints = accounts = 0
    for endpoint in (await store.catalogue()).endpoints:
        try:
            endpoints += await _rewrite(store, endpoint, of_endpoint, now=now)
        except (Invalid, SealGarbled) as error:  # only this endpoint is affected
            log.warning("secret.left", endpoint_id=ids.show("endpoint", endpoint.id), error=str(error))
    async for account in _accounts(store):
        try:
            accounts += await _rewrite_account(store, account, of_account, now=now)
        except SealGarbled as error:
            log.warning("secret.left", account=account.id, error=str(error))
    return Rewritten(endpoints, accounts)


async def _rewrite(
    store: Store, endpoint: Endpoint, rewritten: Callable[[Endpoint], Endpoint], *, now: float
) -> bool:
    for _ in range(_TRIES):
        changed = rewritten(endpoint)
        if changed == endpoint:
            return False
        changed = written_whole(changed, given=())
        changed = msgspec.structs.replace(changed, updated_at=later_than(endpoint.updated_at, now))
        if await store.update_endpoint(changed, was=endpoint.updated_at, now=now):
            return True
        found = await store.endpoints_by_id([endpoint.id])
        if not found:
            return False
        [endpoint] = found
    raise Overloaded("An endpoint was changed by others meanwhile; try again.")


async def _rewrite_account(
    store: Store, account: Account, rewritten: Callable[[Account], Notify], *, now: float
) -> bool:
    for _ in range(_TRIES):
        notify = rewritten(account)
        if notify == account.notify or account.updated_at is None:
            return False
        changed = msgspec.structs.replace(account, notify=notify)
        at = later_than(account.updated_at, now)
        if await store.put_account(changed, was=account.updated_at, now=at):
            return True
        found = await store.account(account.id)
        if found is None:
            return False
        account = found
    raise Overloaded("An account was changed by others meanwhile; try again.")
