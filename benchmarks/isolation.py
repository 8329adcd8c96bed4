"""Measures whether 12,000 bad endpoints change how soon a healthy one is sent to.

    python benchmarks/isolation.py [--each 2000] [--slots 200]

One process on SQLite, real sockets on loopback: so many endpoints each that refuse, hang, drip, are silent from the
first packet, answer 200 just before the deadline, or do not resolve, with ten events for each of them. Exits 1 when
a figure is missed.
"""

import argparse
import asyncio
import resource
import sys
import tempfile
from pathlib import Path

import uvloop

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))

from tests.pipeline.lanes.test_isolation import Measured, measure, p99  # noqa: E402
from tests.receiver import Receiver  # noqa: E402

HEALTHY = 1_000  # events before, and as many during: half a minute each


async def run(each: int, slots: int) -> Measured:
    receiver = Receiver()
    await receiver.start()
    try:
        with tempfile.TemporaryDirectory() as folder:
            return await measure(Path(folder), receiver, each=each, slots=slots, healthy=HEALTHY)
    finally:
        await receiver.stop()


def main() -> int:
    """Print what was measured; 0 if the healthy endpoint did not notice."""
    options = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    options.add_argument(
        "--each", type=int, default=2_000, help="endpoints of each of six kinds (%(default)s)"
    )
    options.add_argument("--slots", type=int, default=200, help="requests under way at most (%(default)s)")
    chosen = options.parse_args()
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        measured = runner.run(run(chosen.each, chosen.slots))
    before, during, worst = p99(measured.before), p99(measured.during), measured.during[-1]
    peak_mb = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(
        f"{chosen.each * 6:,} bad endpoints, {chosen.slots} slots, {HEALTHY:,} healthy events before and during"
    )
    print(
        f"first attempt after: p99 {before * 1e3:.1f} ms before, {during * 1e3:.1f} ms during, worst {worst * 1e3:.1f} ms"
    )
    print(f"peak memory {peak_mb:.0f} MB")
    for kind, attempts in measured.attempts.items():
        print(f"{kind:8} {sum(attempts):7,} attempts, at most {max(attempts)} for one endpoint")
    hammered = max(max(attempts) for kind, attempts in measured.attempts.items() if kind != "slow")
    fine = (
        during <= min(1.0, max(2 * before, before + 0.25))
        and worst <= 2.0
        and peak_mb <= 400
        and hammered <= 10
    )
    return 0 if fine else 1


if __name__ == "__main__":
    sys.exit(main())
