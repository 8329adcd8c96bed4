"""Holds all endpoints and event types in memory.

It is a copy as of a numbered change. An accept carries that number and writes nothing if the store has moved on, so
fan-out from memory is as exact as fan-out in the database.
"""

import asyncio
import contextlib
from collections.abc import Callable, Iterable, Mapping, Sequence

import msgspec
import structlog

from hookline import ids
from hookline.crypto.sealing import Sealer, Secrets
from hookline.errors import Invalid, SealBroken, SealGarbled
from hookline.model import OWN_ACCOUNT, Account, Endpoint, EndpointId, Notify
from hookline.pipeline.catalogue.host_limits import Hosts
from hookline.pipeline.catalogue.payload_rules import PayloadRules
from hookline.pipeline.catalogue.prepared_endpoint import PreparedEndpoint, usable
from hookline.rules.fanout import NOBODY, Subscriptions
from hookline.rules.retry import DEFAULT_POLICY, Policy
from hookline.rules.slots import LaneHealth
from hookline.store.contract import NO_ENDPOINT, Change, Store

log = structlog.get_logger()


# Shown, but not used for sending: a fault in one of them does no harm.
_FOR_PEOPLE = frozenset({"account", "description", "metadata", "disabled_reason", "created_at", "updated_at"})

ACCOUNTS_AT_ONCE = 1_000

_OF_NO_ENDPOINT = ("event_type", "account")  # kinds of changes


class Catalogue:
    """All endpoints by id, and the subscriptions of each account."""

    def __init__(
        self,
        store: Store,
        *,
        default: Policy = DEFAULT_POLICY,
        sealer: Sealer | None = None,
        contact: str | None = None,
        hosts: Hosts | None = None,
        judge: Callable[[Endpoint], Mapping[str, str]] = lambda endpoint: endpoint.unread,
    ) -> None:
        self._store = store
        self._default = default  # the retry policy of endpoints that have none
        self._sealer = sealer or Sealer()
        self._contact = contact
        self._hosts = hosts
        self._judge = judge  # finds the fields of a stored endpoint that are at fault, and why
        self.content = PayloadRules()
        self._outlets: dict[EndpointId, PreparedEndpoint] = {}
        self._members: dict[str, set[EndpointId]] = {}
        self._subscriptions: dict[str, Subscriptions] = {}
        self.n = 0  # the last change that this copy includes
        self.notified: Mapping[str, Notify] = {}  # where accounts are notified; the others are not
        self.accounts_changed = asyncio.Event()  # `notified` is to be read again
        self._reads = self._newest_read = 0
        self.announces = False  # whether own events are announced: somebody listens to them
        self.on_change: Callable[[EndpointId, Sequence[Change]], None] = lambda _, __: None
        self.on_own_change: Callable[[], None] = lambda: None

    async def open(self) -> None:
        """Read all endpoints and event types.

        `SealBroken` when secrets are sealed and there is no key, `MissingExtra` when a schema cannot be checked.
        """
        catalogue = await self._store.catalogue()
        self._outlets.clear()  # left from a start that failed: it may be out of date
        self._members.clear()
        self._subscriptions.clear()
        self.content = PayloadRules()
        for endpoint in catalogue.endpoints:
            if not self._sealer.seals:  # whether a key is the right one was checked before
                self._refuse_sealed(endpoint)
            self._put(endpoint)
        # Read after the number, so that they include every change up to it; later changes are read again.
        self.content.describe(await self._store.event_types())
        self.content.check_complete()
        await self.read_notified(refuses_sealed=not self._sealer.seals)
        self.n = catalogue.n
        self._look_for_listeners()

    def prepared(self, endpoint: EndpointId) -> PreparedEndpoint | None:
        """The endpoint with this id; None when it does not exist (any more)."""
        return self._outlets.get(endpoint)

    def find(self, account: str, event_type: str) -> tuple[EndpointId, ...]:
        """The endpoints an event of this account and type goes to."""
        subscriptions = self._subscriptions.get(account)
        if subscriptions is None:
            members = self._members.get(account)
            if members is None:
                return NOBODY.find(event_type)  # not remembered: a caller may name any account
            subscriptions = self._subscriptions[account] = Subscriptions(
                self._outlets[id].endpoint for id in members
            )
        return subscriptions.find(event_type)

    def count(self, account: str) -> int:
        """How many endpoints an account has."""
        return len(self._members.get(account, ()))

    def accounts(self) -> set[str]:
        """The accounts that have endpoints or are notified."""
        return {*self._members, *self.notified}

    async def read_notified(self, *, refuses_sealed: bool = False) -> None:
        """Read where accounts are notified; `SealBroken` when a URL is sealed and that is to be refused.

        Not with the other changes: there may be many accounts, and a pulse must not wait for them.
        """
        self.accounts_changed.clear()
        self._reads += 1
        read = self._reads
        found: dict[str, Notify] = {}
        try:
            last = ""
            while part := await self._store.accounts(after=last, limit=ACCOUNTS_AT_ONCE):
                opened = {each.id: self._notify_of(each, refuses_sealed=refuses_sealed) for each in part}
                found |= {id: notify for id, notify in opened.items() if notify != Notify()}
                last = part[-1].id
        except BaseException:
            self.accounts_changed.set()
            raise
        if read > self._newest_read:  # else one that began later was faster
            self._newest_read = read
            self.notified = found
            self._look_for_listeners()

    def _look_for_listeners(self) -> None:
        own = self._members.get(OWN_ACCOUNT, ())
        self.announces = bool(self.notified) or any(self._outlets[id].endpoint.enabled for id in own)

    async def include_own(self) -> None:
        """Read what was just changed here, and notify the other processes."""
        self.on_own_change()
        await self.catch_up()

    async def catch_up(self) -> None:
        """Read what changed since the last time."""
        while changes := (await self._store.pulse(seen=self.n)).changes:
            await self.apply(changes)

    async def apply(self, changes: Iterable[Change]) -> None:
        """Apply changes that were read elsewhere; changes that are already included do no harm."""
        changes = list(changes)
        while True:
            fresh = [change for change in changes if change.n > self.n]
            if not fresh:
                return
            before = self.n
            if fresh[-1].n - before > len(fresh):
                # Numbers have no gaps: this process was away so long that changes it never read are deleted.
                fresh = [*await self._everything_changed(fresh[0].n), *fresh]
            touched = list(dict.fromkeys(change.endpoint_id for change in fresh if change.kind == "endpoint"))
            found = {endpoint.id: endpoint for endpoint in await self._store.endpoints_by_id(touched)}
            is_described = any(change.kind == "event_type" for change in fresh)
            event_types = await self._store.event_types() if is_described else None
            if self.n == before:
                break  # else another task applied changes meanwhile, and what was read here may be older
        if event_types is not None:
            self.content.describe(event_types)
        if any(change.kind == "account" for change in fresh):
            self.accounts_changed.set()
        for id in touched:
            known = self._outlets.pop(id, None)
            endpoint = found.get(id)
            if known is not None:
                self._leave(known.endpoint.account, id)
                self.content.unsubscribe(id)
            if endpoint is not None:
                health = known.health if known and known.endpoint.url == endpoint.url else LaneHealth.UNTRIED
                self._put(endpoint, health=health)
                self._subscriptions.pop(endpoint.account, None)
        self.n = max(self.n, fresh[-1].n)
        self._look_for_listeners()
        by_endpoint: dict[EndpointId, list[Change]] = {}
        for change in fresh:
            if change.kind in _OF_NO_ENDPOINT:
                continue
            by_endpoint.setdefault(change.endpoint_id, []).append(change)
        for id, changed in by_endpoint.items():
            self.on_change(id, changed)

    async def _everything_changed(self, n: int) -> list[Change]:
        ids = {each.id for each in (await self._store.catalogue()).endpoints} | self._outlets.keys()
        return [
            *(Change(n, id, "endpoint") for id in sorted(ids)),
            *(Change(n, NO_ENDPOINT, kind) for kind in _OF_NO_ENDPOINT),
        ]

    def _refuse_sealed(self, endpoint: Endpoint) -> None:
        with contextlib.suppress(SealGarbled):
            self._sealer.opened(endpoint)
            self._sealer.open_certificate(endpoint)
            self._sealer.open_headers(endpoint)

    def _notify_of(self, account: Account, *, refuses_sealed: bool) -> Notify:
        try:
            return self._sealer.open_notify(account)
        except SealBroken as error:
            if refuses_sealed and not isinstance(error, SealGarbled):
                raise
            # Another process wrote it, with another key, since this one started: mail still arrives.
            log.error("account.sealed", account=account.id, error=str(error))
            return Notify(email=account.notify.email)

    def _put(self, endpoint: Endpoint, *, health: LaneHealth = LaneHealth.UNTRIED) -> None:
        prepared = self._prepared(endpoint, health)
        self._outlets[endpoint.id] = prepared
        self._members.setdefault(endpoint.account, set()).add(endpoint.id)
        self.content.subscribe(prepared.endpoint)

    def _prepared(self, endpoint: Endpoint, health: LaneHealth) -> PreparedEndpoint:
        faults = {name: why for name, why in self._judge(endpoint).items() if name not in _FOR_PEOPLE}
        secrets = None
        try:
            secrets = self._sealer.opened(endpoint)
            endpoint = self._sealer.open_certificate(endpoint)
            endpoint = msgspec.structs.replace(endpoint, headers=self._sealer.open_headers(endpoint))
        except SealGarbled:
            pass  # a fault in its secret, its certificate or its headers
        except SealBroken as error:
            # Another process wrote it, with another key, since this one started: this process must not send to it.
            log.error("endpoint.sealed", endpoint_id=ids.show("endpoint", endpoint.id), error=str(error))
            secrets = None
            faults.pop("secret", None)
            faults.pop("client_certificate", None)
            faults.pop("headers", None)
            endpoint = msgspec.structs.replace(
                endpoint, headers={}, client_certificate=None
            )  # nothing is sent with them
        if not faults:
            try:
                return self._make(endpoint, secrets, health)
            # The rules allow it, but it cannot be sent to.
            except Invalid as error:
                faults = {error.pointer.strip("/").partition("/")[0]: error.detail}
            except Exception as error:
                faults = {"": repr(error)}
        field, why = next(iter(faults.items()))
        fault = f"endpoint.{field} is not valid: {why}" if field else f"The endpoint cannot be used: {why}"
        log.error("endpoint.invalid", endpoint_id=ids.show("endpoint", endpoint.id), error=fault)
        return self._make(usable(endpoint, faults), secrets, health, fault=fault)

    def _make(
        self, endpoint: Endpoint, secrets: Secrets | None, health: LaneHealth, *, fault: str | None = None
    ) -> PreparedEndpoint:
        return PreparedEndpoint(
            endpoint,
            secrets,
            default=self._default,
            contact=self._contact,
            health=health,
            hosts=self._hosts,
            fault=fault,
        )

    def _leave(self, account: str, id: EndpointId) -> None:
        members = self._members[account]
        members.discard(id)
        if not members:
            del self._members[account]
        self._subscriptions.pop(account, None)
