"""Publishes an event to a hookline server.

Set HOOKLINE_URL and HOOKLINE_API_KEY, then run: python examples/publish.py order.paid '{"id": 42}' [key]
"""

import sys

from hookline import SyncHooklineClient
from hookline.client import ApiError, ClientError


def main(type: str, payload: bytes, key: str | None) -> str | None:
    try:
        with SyncHooklineClient() as hooks:
            # The client retries if the connection breaks or the server is busy; the result is still one event.
            # With an idempotency key it is one event even if this program runs again.
            event = hooks.publish(type, payload, idempotency_key=key)
            print(f"{event.id} goes to {event.deliveries} endpoint(s){', again' if event.duplicate else ''}")
            for delivery in hooks.event_deliveries(event.id):
                print(f"  {delivery.endpoint_id} {delivery.state}")
    except ApiError as error:
        return f"refused ({error.code}): {error.detail}"
    except ClientError as error:
        return str(error)
    return None


if __name__ == "__main__":
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    sys.exit(main(sys.argv[1], sys.argv[2].encode(), sys.argv[3] if len(sys.argv) > 3 else None))
