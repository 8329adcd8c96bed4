"""Which calls are about the installation as a whole?"""

from collections.abc import Mapping, Sequence
from typing import Any

from hookline.client import call as calls
from hookline.client.aio.listing import AsyncListing, AsyncSends
from hookline.client.call import step
from hookline.client.overview import Conservation, EventType, Key, Worker


class AsyncInstallationMethods(AsyncSends):
    """Is it well, and who may use it?"""

    async def conservation(self, *, account: str | None = None) -> Conservation:
        """Where all deliveries are that were ever accepted, of one account or of all."""
        return await self.send(calls.get("/v1/conservation", Conservation, account=account))

    def workers(self) -> AsyncListing[Worker]:
        """The processes that deliver."""
        return AsyncListing(self, "/v1/workers", Worker)

    # --- event types ---

    def event_types(self) -> AsyncListing[EventType]:
        """The types that were described, by name."""
        return AsyncListing(self, "/v1/event-types", EventType)

    async def event_type(self, name: str) -> EventType:
        """One that was described."""
        return await self.send(calls.get(f"/v1/event-types/{step(name)}", EventType))

    async def put_event_type(
        self, name: str, *, description: str | None = None, schema: Mapping[str, Any] | None = None
    ) -> EventType:
        """Describe a type; payloads published from now on have to fit the JSON Schema."""
        fields = calls.said(description=description, schema=schema)
        return await self.send(calls.put(f"/v1/event-types/{step(name)}", EventType, fields))

    async def delete_event_type(self, name: str) -> None:
        """Forget what was said about a type; it can be published all the same."""
        await self.send(calls.delete(f"/v1/event-types/{step(name)}"))

    # --- keys ---

    def keys(self) -> AsyncListing[Key]:
        """The keys that open the API, revoked ones too; none is shown itself."""
        return AsyncListing(self, "/v1/keys", Key)

    async def key(self, id: str) -> Key:
        """One key, not shown itself."""
        return await self.send(calls.get(f"/v1/keys/{step(id)}", Key))

    async def create_key(
        self, scopes: Sequence[str], *, name: str | None = None, account: str | None = None
    ) -> Key:
        """Make a key; with an account it is good for that one alone. The answer, and no later one, holds it."""
        fields = calls.said(scopes=scopes, name=name, account=account)
        return await self.send(calls.post("/v1/keys", Key, fields))

    async def revoke_key(self, id: str) -> None:
        """Make a key open nothing any more."""
        await self.send(calls.delete(f"/v1/keys/{step(id)}"))
