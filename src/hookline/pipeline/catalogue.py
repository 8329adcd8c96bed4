"""Which endpoints are there, as far as this process knows?

A copy in memory, as of a numbered change. Accept carries that number and writes nothing if the store has
moved on, so fan-out from memory is as exact as fan-out in the database.
"""

from collections.abc import Callable, Iterable, Sequence

from hookline.model import EndpointId
from hookline.pipeline.outlet import Outlet
from hookline.rules.fanout import NOBODY, Subscriptions
from hookline.rules.retry import DEFAULT_POLICY, Policy
from hookline.rules.slots import Health
from hookline.store.contract import Change, Store


class Catalogue:
    """All endpoints by id, and who subscribes to what in each account."""

    def __init__(self, store: Store, *, default: Policy = DEFAULT_POLICY) -> None:
        self._store = store
        self._default = default  # the retry policy of endpoints that name none
        self._outlets: dict[EndpointId, Outlet] = {}
        self._members: dict[str, set[EndpointId]] = {}
        self._subscriptions: dict[str, Subscriptions] = {}
        self.n = 0  # the last change this copy includes
        self.on_change: Callable[[EndpointId, Sequence[Change]], None] = lambda _, __: None

    async def open(self) -> None:
        """Read all endpoints."""
        catalogue = await self._store.catalogue()
        for endpoint in catalogue.endpoints:
            self._outlets[endpoint.id] = Outlet(endpoint, default=self._default)
            self._members.setdefault(endpoint.account, set()).add(endpoint.id)
        self.n = catalogue.n

    def outlet(self, endpoint: EndpointId) -> Outlet | None:
        """The endpoint with this id; None when it is not there (any more)."""
        return self._outlets.get(endpoint)

    def find(self, account: str, event_type: str) -> tuple[EndpointId, ...]:
        """The endpoints an event of this account and type goes to."""
        subscriptions = self._subscriptions.get(account)
        if subscriptions is None:
            members = self._members.get(account)
            if members is None:
                return NOBODY.find(event_type)  # not remembered: anybody may name any account
            subscriptions = self._subscriptions[account] = Subscriptions(
                self._outlets[id].endpoint for id in members
            )
        return subscriptions.find(event_type)

    def count(self, account: str) -> int:
        """How many endpoints an account has."""
        return len(self._members.get(account, ()))

    async def catch_up(self) -> None:
        """Read what changed since the last time."""
        while changes := (await self._store.pulse(seen=self.n)).changes:
            await self.apply(changes)

    async def apply(self, changes: Iterable[Change]) -> None:
        """Carry out changes read elsewhere; those that are included already do no harm."""
        fresh = [change for change in changes if change.n > self.n]
        if not fresh:
            return
        touched = list(dict.fromkeys(change.endpoint_id for change in fresh if change.kind == "endpoint"))
        found = {endpoint.id: endpoint for endpoint in await self._store.endpoints_by_id(touched)}
        for id in touched:
            known = self._outlets.pop(id, None)
            endpoint = found.get(id)
            if known is not None:
                self._leave(known.endpoint.account, id)
            if endpoint is not None:
                health = known.health if known and known.endpoint.url == endpoint.url else Health.UNTRIED
                self._outlets[id] = Outlet(endpoint, default=self._default, health=health)
                self._members.setdefault(endpoint.account, set()).add(id)
                self._subscriptions.pop(endpoint.account, None)
        self.n = max(self.n, fresh[-1].n)
        by_endpoint: dict[EndpointId, list[Change]] = {}
        for change in fresh:
            by_endpoint.setdefault(change.endpoint_id, []).append(change)
        for id, changed in by_endpoint.items():
            self.on_change(id, changed)

    def _leave(self, account: str, id: EndpointId) -> None:
        members = self._members[account]
        members.discard(id)
        if not members:
            del self._members[account]
        self._subscriptions.pop(account, None)
