"""How does a program publish events to a hookline server?

HOOKLINE_URL and HOOKLINE_API_KEY name the server: python examples/publish.py order.paid '{"id": 42}' [key]
"""

import sys

from hookline import SyncHooklineClient
from hookline.client import ApiError, ClientError


def main(type: str, payload: bytes, key: str | None) -> str | None:
    try:
        with SyncHooklineClient() as hooks:
            # Sent again by itself when the connection breaks or the server is busy; it is one event all the same.
            # The key makes it one event even when this program is run again.
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
