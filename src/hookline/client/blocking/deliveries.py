# Generated from client/aio by scripts/mirror_client.py: change that, and run it.
"""Calls about deliveries."""

from datetime import datetime

from hookline.client import call as calls
from hookline.client.answers import Attempt, Delivery
from hookline.client.blocking.listing import Listing, Sends
from hookline.client.call import step
from hookline.client.words import DeliveryState


class DeliveryMethods(Sends):
    """List, retry and cancel deliveries."""

    def delivery(self, id: str) -> Delivery:
        """Get a delivery."""
        return self.send(calls.get(f"/v1/deliveries/{step(id)}", Delivery))

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
    ) -> Listing[Delivery]:
        """List deliveries."""
        return Listing(
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

    def attempts(self, delivery_id: str) -> Listing[Attempt]:
        """List the requests made for one delivery."""
        return Listing(self, f"/v1/deliveries/{step(delivery_id)}/attempts", Attempt)

    def retry_delivery(self, id: str) -> Delivery:
        """Make a pending delivery due now; its attempts are still counted."""
        return self.send(calls.post(f"/v1/deliveries/{step(id)}/retry", Delivery))

    def cancel_delivery(self, id: str) -> Delivery:
        """Cancel a pending delivery."""
        return self.send(calls.post(f"/v1/deliveries/{step(id)}/cancel", Delivery))
