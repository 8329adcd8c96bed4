"""What does hookline send about itself?

Events of the account `hookline`, delivered like any other to the endpoints of that account. Here they are
described for programs.
"""

from typing import Any

import msgspec

from hookline.reports.views import AlertReport, DeliveryReport, EndpointReport, Moment

OWN_ACCOUNT = "hookline"


class DeliveryEvent(msgspec.Struct):
    """Something happened to a delivery."""

    type: str
    at: Moment
    account: str
    data: DeliveryReport


class EndpointEvent(msgspec.Struct):
    """Something happened to an endpoint."""

    type: str
    at: Moment
    account: str
    data: EndpointReport


class AlertEvent(msgspec.Struct):
    """Something happened to an alert."""

    type: str
    at: Moment
    account: str
    data: AlertReport


OWN_EVENTS: dict[str, tuple[str, type[msgspec.Struct]]] = {
    "delivery.dead": ("A delivery is given up", DeliveryEvent),
    "endpoint.disabled": ("An endpoint is disabled", EndpointEvent),
    "circuit.opened": ("An endpoint fails so often that it is left alone for a while", EndpointEvent),
    "circuit.closed": ("An endpoint answers again", EndpointEvent),
    "alert.fired": ("An alert fires", AlertEvent),
    "alert.resolved": ("An alert is over", AlertEvent),
}
TYPES = (DeliveryEvent, EndpointEvent, AlertEvent)

_HEADERS = {
    "webhook-id": "The event's id: the same however often it is sent",
    "webhook-timestamp": "When this request was signed, in seconds since 1970",
    "webhook-signature": "`v1,<base64>` over `id.timestamp.body`; several while a secret is rotated",
    "webhook-event": "The event's type",
    "webhook-attempt": "1 is the first request",
}


def described(schema_of: dict[Any, dict[str, Any]]) -> dict[str, Any]:
    """The section `webhooks` of the description."""
    return {
        name: {
            "post": {
                "summary": summary,
                "description": f"An event of the account `{OWN_ACCOUNT}`; with `standard` signing.",
                "security": [],
                "parameters": [
                    {"name": header, "in": "header", "description": about, "schema": {"type": "string"}}
                    for header, about in _HEADERS.items()
                ],
                "requestBody": {
                    "required": True,
                    "content": {"application/json": {"schema": schema_of[payload]}},
                },
                "responses": {
                    "2XX": {"description": "Accepted. Anything else is tried again, or not, by its kind."}
                },
            }
        }
        for name, (summary, payload) in OWN_EVENTS.items()
    }
