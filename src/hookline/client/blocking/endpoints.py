# Generated from client/aio by scripts/mirror_client.py: change that, and run it.
"""Calls about endpoints."""

from collections.abc import Sequence
from datetime import datetime
from typing import Unpack

from hookline.client import call as calls
from hookline.client.answers import Delivery, Secret, Stats, Trial
from hookline.client.blocking.listing import Listing, Sends
from hookline.client.call import step
from hookline.client.endpoint import Endpoint, EndpointChanges, EndpointFields
from hookline.client.words import CircuitState, DeliveryState, Signature


class EndpointMethods(Sends):
    """Create, list, change, pause and delete endpoints."""

    def create_endpoint(
        self, url: str, events: str | Sequence[str], **fields: Unpack[EndpointFields]
    ) -> Endpoint:
        """Create an endpoint for events of these patterns. Only the answer to this call holds its secret."""
        said = {"url": url, "events": calls.patterns(events), **fields}
        return self.send(calls.post("/v1/endpoints", Endpoint, said))

    def endpoint(self, id: str) -> Endpoint:
        """Get an endpoint."""
        return self.send(calls.get(f"/v1/endpoints/{step(id)}", Endpoint))

    def endpoints(
        self,
        *,
        account: str | None = None,
        enabled: bool | None = None,
        circuit: CircuitState | str | None = None,
        slow: bool | None = None,
        event_type: str | None = None,
    ) -> Listing[Endpoint]:
        """List endpoints."""
        return Listing(
            self,
            "/v1/endpoints",
            Endpoint,
            account=account,
            enabled=enabled,
            circuit=circuit,
            slow=slow,
            event_type=event_type,
        )

    def update_endpoint(self, id: str, **fields: Unpack[EndpointChanges]) -> Endpoint:
        """Change the given fields of an endpoint."""
        if "events" in fields:
            fields["events"] = calls.patterns(fields["events"])
        return self.send(calls.patch(f"/v1/endpoints/{step(id)}", Endpoint, fields))

    def delete_endpoint(self, id: str) -> None:
        """Delete an endpoint; its pending deliveries are cancelled."""
        self.send(calls.delete(f"/v1/endpoints/{step(id)}"))

    def enable_endpoint(self, id: str) -> Endpoint:
        """Enable an endpoint: deliver to it again."""
        return self._set_endpoint(id, "enable")

    def disable_endpoint(self, id: str) -> Endpoint:
        """Disable an endpoint: deliver nothing to it; its pending deliveries wait."""
        return self._set_endpoint(id, "disable")

    def pause_endpoint(self, id: str) -> Endpoint:
        """Pause an endpoint: hold its deliveries back."""
        return self._set_endpoint(id, "pause")

    def resume_endpoint(self, id: str) -> Endpoint:
        """Resume a paused endpoint."""
        return self._set_endpoint(id, "resume")

    def reset_circuit(self, id: str) -> Endpoint:
        """Close an endpoint's circuit: requests are sent again, beginning with one."""
        return self._set_endpoint(id, "circuit/reset")

    def test_endpoint(self, id: str) -> Trial:
        """Send a test event to this endpoint only."""
        return self.send(calls.post(f"/v1/endpoints/{step(id)}/test", Trial))

    def endpoint_stats(self, id: str, *, window: str | None = None) -> Stats:
        """Get an endpoint's latencies and answers over a window such as `15m`, `24h` (the default) or `7d`."""
        return self.send(calls.get(f"/v1/endpoints/{step(id)}/stats", Stats, window=window))

    def endpoint_secret(self, id: str) -> Secret:
        """Get the secret that signs its requests."""
        return self.send(calls.get(f"/v1/endpoints/{step(id)}/secret", Secret))

    def rotate_secret(
        self,
        id: str,
        *,
        overlap_s: int | None = None,
        secret: str | None = None,
        signature: Signature | str | None = None,
    ) -> Secret:
        """Sign with a new secret; during the overlap the old one signs too."""
        fields = calls.said(overlap_s=overlap_s, secret=secret, signature=signature)
        return self.send(calls.post(f"/v1/endpoints/{step(id)}/secret/rotate", Secret, fields))

    def endpoint_deliveries(
        self,
        id: str,
        *,
        state: DeliveryState | str | None = None,
        event_type: str | None = None,
        since: datetime | None = None,
        until: datetime | None = None,
    ) -> Listing[Delivery]:
        """List the deliveries to one endpoint."""
        return Listing(
            self,
            f"/v1/endpoints/{step(id)}/deliveries",
            Delivery,
            state=state,
            event_type=event_type,
            since=since,
            until=until,
        )

    def _set_endpoint(self, id: str, how: str) -> Endpoint:
        return self.send(calls.post(f"/v1/endpoints/{step(id)}/{how}", Endpoint, may_repeat=True))
