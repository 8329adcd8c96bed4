"""Sends webhooks from an application that runs hookline in its own process.

Run it: python examples/library.py http://127.0.0.1:9000/
"""

import asyncio
import os
import sys

from hookline import Hookline, Settings


async def main(url: str) -> None:
    settings = Settings(dev=True)  # allows webhooks to this machine; not for production
    async with Hookline("sqlite:///library.db", settings=settings) as hooks:
        await hooks.create_endpoint(url, ["order.*"], secret=os.environ.get("SECRET"))
        event = await hooks.publish("order.paid", {"id": 42}, idempotency_key="order-42-paid")
        print(f"{event.id} is stored and goes to {event.deliveries} endpoint(s)")
        # An application would continue with its own work here. Deliveries that are pending when it ends are
        # sent after its next start.
        while [each async for each in hooks.event_deliveries(event.id, state="pending")]:  # noqa: ASYNC110 - polling is enough for an example
            await asyncio.sleep(0.05)
        print("delivered")


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1] if len(sys.argv) > 1 else "http://127.0.0.1:9000/"))
