"""Calls about deliveries."""

from datetime import datetime

from hookline.client import call as calls
from hookline.client.aio.listing import AsyncListing, AsyncSends
from hookline.client.answers import Attempt, Delivery
from hookline.client.call import step
from hookline.client.words import DeliveryState


class AsyncDeliveryMethods(AsyncSends):
    """List, retry and cancel deliveries."""

    async def delivery(self, id: str) -> Delivery:
        """Get a delivery."""
        return await self.send(calls.get(f"/v1/deliveries/{step(id)}", Delivery))

    def deliveries(
        self,
        *,
        state: DeliveryState | str | None = None,
        account: str | None = None,
        endpoint_id: str | None = None,
        event_id: str | None = None,
        event_type: str | None = None,
        since: datetime | None = None,
        until: datetime | None = None,
    ) -> AsyncListing[Delivery]:
        """List deliveries."""
        return AsyncListing(
            self,
            "/v1/deliveries",
            Delivery,
            state=state,
            account=account,
            endpoint_id=endpoint_id,
            event_id=event_id,
            event_type=event_type,
            since=since,
            until=until,
        )

    def attempts(self, delivery_id: str) -> AsyncListing[Attempt]:
        """List the requests made for one delivery."""
        return AsyncListing(self, f"/v1/deliveries/{step(delivery_id)}/attempts", Attempt)

    async def retry_delivery(self, id: str) -> Delivery:
        """Make a pending delivery due now; its attempts are still counted."""
        return await self.send(calls.post(f"/v1/deliveries/{step(id)}/retry", Delivery))

    async def cancel_delivery(self, id: str) -> Delivery:
        """Cancel a pending delivery."""
        return await self.send(calls.post(f"/v1/deliveries/{step(id)}/cancel", Delivery))
