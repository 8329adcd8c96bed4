"""What can an operator change?

Every change is a verb of the store; here it is checked, carried out, and made known to this process's own
worker at once. The others hear of it with their next pulse.
"""

from collections.abc import Sequence
from typing import Any

from hookline.clock import Clock
from hookline.config import Network, Settings
from hookline.endpoints import EndpointInput, EndpointPatch, new_endpoint, patched, read_fields
from hookline.errors import Invalid, NotFound
from hookline.ids import Ids, show
from hookline.model import Endpoint, EndpointId
from hookline.pipeline.catalogue import Catalogue
from hookline.pipeline.worker import Worker
from hookline.store.contract import Store


class Desk:
    """Carries out what operators ask for."""

    def __init__(
        self, store: Store, catalogue: Catalogue, worker: Worker, clock: Clock, ids: Ids, settings: Settings
    ) -> None:
        self._store = store
        self._catalogue = catalogue
        self._worker = worker
        self._clock = clock
        self._ids = ids
        self._settings = settings

    async def create_endpoint(self, fields: dict[str, Any]) -> Endpoint:
        """Add an endpoint."""
        endpoint = new_endpoint(
            read_fields(EndpointInput, fields),
            id=self._ids.endpoint(),
            now=self._clock.now(),
            private_allowed=self._is_private_allowed,
            allowed=self._allowed,
        )
        most = self._settings.endpoints_per_account
        if self._catalogue.count(endpoint.account) >= most:
            raise Invalid(
                f"An account may have at most {most:,} endpoints; delete one first.", pointer="/account"
            )
        await self._store.create_endpoint(endpoint, now=self._clock.now())
        await self._catalogue.catch_up()
        return endpoint

    async def update_endpoint(self, id: EndpointId, patch: EndpointPatch) -> Endpoint:
        """Change an endpoint by a merge patch."""
        found = await self._store.endpoints_by_id([id])
        if not found:
            raise NotFound("endpoint", show("endpoint", id))
        endpoint = patched(
            found[0],
            patch,
            now=self._clock.now(),
            private_allowed=self._is_private_allowed,
            allowed=self._allowed,
        )
        if not await self._store.update_endpoint(endpoint, now=self._clock.now()):
            raise NotFound("endpoint", show("endpoint", id))
        await self._catalogue.catch_up()
        self._worker.announce(id)  # one that was enabled again has waiting deliveries
        return endpoint

    async def delete_endpoint(self, id: EndpointId) -> None:
        """Delete an endpoint; its pending deliveries are cancelled."""
        if not await self._store.delete_endpoint(id, now=self._clock.now()):
            raise NotFound("endpoint", show("endpoint", id))
        await self._catalogue.catch_up()

    @property
    def _is_private_allowed(self) -> bool:
        return self._settings.dev or bool(self._settings.allow_networks)

    @property
    def _allowed(self) -> Sequence[Network] | None:
        return None if self._settings.dev else self._settings.allow_networks
