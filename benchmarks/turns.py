"""Measures another account's publish while one account's large request is accepted.

    .venv/bin/python benchmarks/turns.py [--stores sqlite,postgres]

In one process, by the library: 1,000 events for 100 endpoints each, then 100 events for an endpoint whose filter takes
all the steps it may. Meanwhile another account publishes one event after another.
"""

import argparse
import asyncio
import tempfile
import time
from pathlib import Path

from database import start_postgres
from hookline.app import Hookline
from hookline.config import Settings
from hookline.pipeline.intake.drafts import Draft

EXPENSIVE = "length(lines[?n == `1` && m == `2`]) > `5000`"
LONG = b'{"lines":[' + b",".join([b'{"n":1,"m":3}'] * 1_500) + b"]}"  # below 32 KiB


async def measure(database: str) -> None:
    async with Hookline(database, settings=Settings(dev=True, deliveries_per_event=10_000)) as hooks:
        for n in range(100):
            await hooks.create_endpoint(
                url=f"http://127.0.0.1:9999/{n}", events=["many"], account="big", paused=True
            )
        await hooks.create_endpoint(
            url="http://127.0.0.1:9999/", events=["costly"], account="big", paused=True, filter=EXPENSIVE
        )
        await show("nothing else", hooks, asyncio.sleep(2))
        await show("1,000 x 100", hooks, hooks.accept([Draft("many", b"1", account="big")] * 1_000))
        await show("filters", hooks, hooks.accept([Draft("costly", LONG, account="big")] * 100))


async def show(name: str, hooks: Hookline, large: object) -> None:
    task = asyncio.ensure_future(large)
    await asyncio.sleep(0)
    began, times = time.perf_counter(), []
    while not task.done():
        at = time.perf_counter()
        await hooks.accept([Draft("order.paid", b"1", account="other")])
        times.append(time.perf_counter() - at)
    times.sort()
    p50, p99 = times[len(times) // 2], times[int(len(times) * 0.99)]
    print(
        f"  {name:14} {time.perf_counter() - began:6.1f} s  {len(times):6,} publishes  "
        f"p50 {p50 * 1e3:6.1f} ms  p99 {p99 * 1e3:6.1f} ms  max {times[-1] * 1e3:6.1f} ms",
        flush=True,
    )


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--stores", default="sqlite,postgres")
    stores = parser.parse_args().stores.split(",")
    with tempfile.TemporaryDirectory(dir=Path.cwd()) as folder:
        if "sqlite" in stores:
            print("sqlite")
            asyncio.run(measure(f"sqlite:///{folder}/hooks.db"))
        if "postgres" in stores:
            print("postgres")
            Path(folder).chmod(0o755)
            server = start_postgres(Path(folder) / "data", major=None)
            try:
                asyncio.run(measure(server.url()))
            finally:
                server.destroy()


if __name__ == "__main__":
    main()
