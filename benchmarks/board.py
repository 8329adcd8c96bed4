"""Measures how long the figures of a dashboard take to read, with a day of attempts stored.

    python benchmarks/board.py [--scale 1.0] [--stores sqlite,postgres] [--enforce]

A day of 10,000 attempts for each of 1,000 endpoints (`--scale` times as many endpoints, 50 at least) is written as
`stats.py` writes it. Then a page of the board, the flow and the times from publish to delivery are asked for, 20 times
each, as if nothing was remembered, and the page of the board again as it is remembered. Then each is asked
for beside a task that wants its turn all the time, to see how long it waits. `--enforce` exits with 1 if a median misses
its target.
"""

import asyncio
import statistics
import sys
import time
from collections.abc import Awaitable, Callable

from hookline.app import Hookline
from hookline.config import Settings
from hookline.reports.endpoint_board import EndpointBoard
from hookline.reports.flow import FlowReports
from hookline.validate.stored_endpoint import EndpointJudge
from stats import DAY, MINUTE, TIMES, create_endpoints, fill, run, timed

MOST_MS = {
    "board": 100.0,
    "board, remembered": 100.0,
    "flow": 100.0,
    "flow of an account": 100.0,
    "end to end, a day": 100.0,
}


def main() -> int:
    return run(measure, description=__doc__ or "")


async def measure(url: str, *, endpoints: int) -> list[str]:
    """Fill a database and ask; the targets that were missed."""
    name = url.partition(":")[0]
    hooks = Hookline(url, settings=Settings(dev=True), deliver=False)
    store = hooks.store
    await store.migrate()
    await store.open(serve=False)
    try:
        made = await create_endpoints(hooks, endpoints)
        until = (hooks.clock.now() // MINUTE + 1) * MINUTE
        minutes, hours = await asyncio.to_thread(fill, url, [each.id for each in made], until)
        print(f"\n{name}: {endpoints:,} endpoints, {minutes:,} minutes, {hours:,} hours")

        def board() -> EndpointBoard:
            return EndpointBoard(store, hooks.owners, EndpointJudge(hooks.sealer), hooks.clock)

        def flow() -> FlowReports:
            return FlowReports(store, hooks.health, hooks.clock)

        known = board()
        page = await known.page()
        assert page.total == page.matching == endpoints, page.counts
        # All but the bar of an hour that has only begun.
        assert all(row.attempts_1h and all(bar.attempts for bar in row.spark[:-1]) for row in page.rows)
        asks: dict[str, Callable[[], Awaitable[object]]] = {
            "board": lambda: board().page(),
            "board, remembered": lambda: known.page(sort="slowest", q="127"),
            "flow": lambda: flow().now(),
            "flow of an account": lambda: flow().now("default"),
            "end to end, a day": lambda: flow().end_to_end(window=DAY),
            "end to end, 30 days": lambda: flow().end_to_end(window=30 * DAY),
            "end to end of an account, a day": lambda: flow().end_to_end("default", window=DAY),
        }
        missed = []
        for asked, ask in asks.items():
            # What nobody waits for is long: it is asked for less often.
            times = range(TIMES if asked in MOST_MS else 3)
            median = statistics.median([await timed(ask) for _ in times])
            target = MOST_MS.get(asked)
            said = "remembered" if target is None else f"target {target:.0f} ms"
            blocked = statistics.median([await kept(ask) for _ in times])
            print(f"  {asked}: {median:.1f} ms, the loop was kept for {blocked:.1f} ms ({said})")
            if target is not None and median > target:
                missed.append(f"{name} {asked}")
        return missed
    finally:
        await store.close()


async def kept(ask: Callable[[], Awaitable[object]]) -> float:
    """The longest time of the loop's thread on a processor without a turn for others, in milliseconds."""
    longest, is_asked = 0.0, True

    async def watch() -> None:
        nonlocal longest
        before = time.thread_time()
        while is_asked:
            await asyncio.sleep(0)
            now = time.thread_time()
            longest, before = max(longest, now - before), now

    watching = asyncio.create_task(watch())
    await asyncio.sleep(0)
    await ask()
    is_asked = False
    await watching
    return longest * 1e3


if __name__ == "__main__":
    sys.exit(main())
