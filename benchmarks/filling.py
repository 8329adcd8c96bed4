"""Fills a database with old deliveries.

It uses the store's own verbs, with a clock that is forty days behind: the data is laid out as it would be in use.
"""

import random

from hookline.app import store_for
from hookline.clock import SystemClock
from hookline.ids import Ids, delivery_of
from hookline.model import Attempt, Endpoint, Event, Outcome, State, Timings
from hookline.store.contract import EventFanout, Release, Settlement, Store, Verdict, WorkerRow
from payload import payload_of

AGE = 40 * 86_400.0
LANES = 50
BATCH = 500


class PastClock(SystemClock):
    """Forty days ago, going on."""

    def now(self) -> float:
        return super().now() - AGE

    def wall(self) -> float:
        return super().wall() - AGE


async def fill(url: str, *, rows: int) -> None:
    """So many delivered deliveries of forty days ago, each of an event of its own."""
    store = store_for(url)
    await store.migrate()
    await store.open(serve=False)
    try:
        await write_old(store, rows=rows)
    finally:
        await store.close()


async def write_old(store: Store, *, rows: int) -> None:
    """As `fill`, in a store that is open; its worker leaves at the end."""
    clock = PastClock()
    ids = Ids(clock, random.Random())
    worker = WorkerRow(
        id=ids.worker(),
        kind="worker",
        host="bench",
        pid=1,
        version="0",
        started_at=clock.now(),
        seen_at=clock.now(),
    )
    await store.register(worker)
    lanes = {}
    for _ in range(LANES):
        now = clock.now()
        endpoint = Endpoint(
            id=ids.endpoint(),
            account="default",
            url="http://127.0.0.1:9/",
            events=("of.the.past",),
            secret="-",  # noqa: S106 - nobody signs anything here
            created_at=now,
            updated_at=now,
        )
        await store.create_endpoint(endpoint, now=now)
        [taken] = await store.take_these(worker.id, [endpoint.id], now=now)
        lanes[endpoint.id] = taken.epoch
    to = list(lanes)
    for start in range(0, rows, BATCH):
        now = clock.now()
        catalogue = (await store.catalogue()).n
        publications = [
            EventFanout(
                Event(
                    id=ids.event(),
                    account="default",
                    type="of.the.past",
                    payload=payload_of(n, n),
                    created_at=now,
                ),
                (to[n % LANES],),
                b"",
            )
            for n in range(start, min(start + BATCH, rows))
        ]
        await store.accept(publications, catalogue=catalogue, now=now)
        settlements = [
            Settlement(
                Attempt(
                    id=ids.attempt(),
                    delivery_id=delivery_of(each.event.id, 0),
                    number=1,
                    replays=0,
                    at=now,
                    outcome=Outcome.ACCEPTED,
                    duration=0.012,
                    status=200,
                    timings=Timings(first_byte=0.011),
                    request_url="http://127.0.0.1:9/",
                ),
                each.endpoints[0],
                lanes[each.endpoints[0]],
                State.DELIVERED,
                now,
            )
            for each in publications
        ]
        if set(await store.settle(worker.id, settlements, now=now)) != {Verdict.APPLIED}:
            raise RuntimeError("the old deliveries could not be settled")
    for endpoint_id in to:
        await store.delete_endpoint(endpoint_id, now=clock.now())
    releases = [Release(endpoint_id, epoch, float("inf")) for endpoint_id, epoch in lanes.items()]
    await store.release(worker.id, releases, now=clock.now())
    await store.retire(worker.id)
