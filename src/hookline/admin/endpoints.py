"""Creates, changes and deletes endpoints.

Every change is a verb of the store. Here it is checked, carried out, and applied to this process at once.
"""

from collections.abc import Collection, Mapping
from typing import Any

import msgspec
import structlog

from hookline.admin.audit import Audit
from hookline.admin.changes import Changes
from hookline.admin.destinations import Destinations
from hookline.clock import Clock
from hookline.config import Settings
from hookline.crypto.sealing import Sealer, Secrets
from hookline.errors import Invalid, NotFound, Overloaded, SealBroken
from hookline.ids import Ids, show
from hookline.model import AuditAction, AuditEntry, Endpoint, EndpointId
from hookline.pipeline.catalogue.catalogue import Catalogue
from hookline.rules.audit_changes import (
    MASK,
    Show,
    differences,
    endpoint_action,
    masked_values,
    without_credentials,
)
from hookline.store.contract import Store
from hookline.validate.endpoint_changes import new_endpoint, patched
from hookline.validate.endpoint_fields import FIELDS, IN_PATCH, EndpointField
from hookline.validate.stored_endpoint import EndpointJudge

_PATCH_TRIES = 10  # against others who change the same endpoint at the same moment

log = structlog.get_logger()


class EndpointAdmin:
    """What an operator changes about endpoints."""

    def __init__(
        self,
        store: Store,
        catalogue: Catalogue,
        changes: Changes,
        clock: Clock,
        ids: Ids,
        settings: Settings,
        audit: Audit,
        *,
        destinations: Destinations,
        sealer: Sealer,
        judge: EndpointJudge,
    ) -> None:
        self._store = store
        self._catalogue = catalogue
        self._changes = changes
        self._clock = clock
        self._ids = ids
        self._settings = settings
        self._audit = audit
        self._destinations = destinations
        self._sealer = sealer
        self._judge = judge

    async def create(self, fields: Mapping[str, Any]) -> Endpoint:
        """Create an endpoint; the returned one has its secret as it is shown to its owner."""
        endpoint = new_endpoint(
            fields,
            id=self._ids.endpoint(),
            now=self._clock.now(),
            private_allowed=self._destinations.private_allowed,
            allowed=self._destinations.allowed,
            denied=self._destinations.denied,
        )
        self._destinations.refuse_own(endpoint.url)
        most = self._settings.endpoints_per_account
        if self._catalogue.count(endpoint.account) >= most:
            raise Invalid(
                f"An account may have at most {most:,} endpoints; delete one first.", pointer="/account"
            )
        entry = self._audit.entry(
            AuditAction.ENDPOINT_CREATED,
            "endpoint",
            show("endpoint", endpoint.id),
            account=endpoint.account,
            changes=differences({}, _fields(endpoint, fields.keys() & IN_PATCH.keys()), shows=_SHOWS),
        )
        await self._store.create_endpoint(self._sealer.sealed(endpoint), now=self._clock.now(), audit=entry)
        await self._changes.tell()
        return endpoint

    async def update(self, id: EndpointId, patch: Mapping[str, Any]) -> Endpoint:
        """Change an endpoint by a merge patch; what others change meanwhile is kept."""
        for _ in range(_PATCH_TRIES):
            found = await self._store.endpoints_by_id([id])
            if not found:
                raise NotFound("endpoint", show("endpoint", id))
            endpoint = patched(
                found[0],
                patch,
                now=self._clock.now(),
                private_allowed=self._destinations.private_allowed,
                allowed=self._destinations.allowed,
                denied=self._destinations.denied,
                secrets=self._opened(found[0]),
                faults=self._judge.faults(found[0]),
            )
            if endpoint.url != found[0].url:
                self._destinations.refuse_own(endpoint.url)
            if self._opened(found[0]) is not None:  # else its secret stays as it is stored
                endpoint = self._sealer.sealed(endpoint)
            else:
                endpoint = self._sealer.sealed_but_secrets(endpoint)
            is_disabled = found[0].enabled and not endpoint.enabled
            entry = self._changed(found[0], endpoint)
            with self._changes.making_due(id):
                is_written = await self._store.update_endpoint(
                    endpoint,
                    was=found[0].updated_at,
                    now=self._clock.now(),
                    announce=is_disabled and self._catalogue.announces,
                    audit=entry,
                )
            if is_written:
                if is_disabled:
                    _say_disabled(endpoint)
                await self._changes.tell(id)  # one that was enabled or resumed has waiting deliveries
                return endpoint
        raise Overloaded(f"The endpoint {show('endpoint', id)} was changed by others meanwhile; try again.")

    def _changed(self, before: Endpoint, after: Endpoint) -> AuditEntry | None:
        """The entry about an update; None if nothing changes."""
        changes = differences(_fields(before, IN_PATCH), _fields(after, IN_PATCH), shows=_SHOWS)
        if not changes:
            return None
        return self._audit.entry(
            endpoint_action(changes),
            "endpoint",
            show("endpoint", after.id),
            account=after.account,
            changes=changes,
        )

    async def _endpoint(self, id: EndpointId) -> Endpoint:
        found = await self._store.endpoints_by_id([id])
        if not found:
            raise NotFound("endpoint", show("endpoint", id))
        return found[0]

    def _opened(self, endpoint: Endpoint) -> Secrets | None:
        try:
            return self._sealer.opened(endpoint)
        except SealBroken:
            return None

    async def delete(self, id: EndpointId) -> None:
        """Delete an endpoint; its pending deliveries are cancelled."""
        endpoint = await self._endpoint(id)
        entry = self._audit.entry(
            AuditAction.ENDPOINT_DELETED,
            "endpoint",
            show("endpoint", id),
            account=endpoint.account,
            changes=differences(_fields(endpoint, ("url", "events")), {}, shows=_SHOWS),
        )
        if not await self._store.delete_endpoint(id, now=self._clock.now(), audit=entry):
            raise NotFound("endpoint", show("endpoint", id))
        await self._changes.tell()

    async def reset_circuit(self, id: EndpointId) -> None:
        """Close an endpoint's circuit: it is sent to again, starting with one request."""
        endpoint = await self._endpoint(id)
        entry = self._audit.entry(
            AuditAction.CIRCUIT_RESET, "endpoint", show("endpoint", id), account=endpoint.account
        )
        with self._changes.making_due(id):
            is_there = await self._store.reset_circuit(id, now=self._clock.now(), audit=entry)
        if not is_there:
            raise NotFound("endpoint", show("endpoint", id))
        await self._changes.tell(id)


def _fields(endpoint: Endpoint, names: Collection[str]) -> dict[str, Any]:
    """The named fields as they are stored, in the order of the table."""
    return {field.name: getattr(endpoint, field.attribute) for field in FIELDS if field.name in names}


def _show_of(field: EndpointField) -> Show | None:
    """How a value of the field is noted; what the API does not show is masked."""
    match field.name:
        case "url":
            return without_credentials
        case "headers":
            return masked_values
    way = field.show
    if way is None:
        return None
    return lambda value: MASK if (shown := way(value)) is msgspec.UNSET else shown


_SHOWS = {field.name: way for field in FIELDS if (way := _show_of(field)) is not None}


def _say_disabled(endpoint: Endpoint) -> None:
    log.info(
        "endpoint.disabled",
        endpoint_id=show("endpoint", endpoint.id),
        account=endpoint.account,
        reason="an operator disabled it",
    )
