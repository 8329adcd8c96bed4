"""Searches for bytes that a target makes something wrong of, guided by which code they reach.

Each target (targets.py) is fuzzed in a process of its own, two at a time, and begins with its seeds. What fails is
printed with the command that repeats it; the exit status is then 1. New inputs that reach new code are kept in
`.fuzz/`, so that the next search goes on from there.
"""

import argparse
import os
import re
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

HERE = Path(__file__).parent
FOUND = HERE.parents[1] / ".fuzz"
AT_ONCE = 2
GRACE_S = 1_800  # for a process to start and to end on a busy machine; only ends one that hangs
SLOWEST_S = 20  # for one input
MOST_MIB = 2_048
SHARES = {"response": 4, "url": 3, "endpoint": 3, "filter": 3, "request": 3, "cursor": 1, "retry_after": 1}


class Search(NamedTuple):
    """What became of one target's search."""

    target: str
    tried: int
    crash: Path | None
    output: str


def main() -> int:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--seconds", type=int, default=600, help="for all targets together (default: 600)")
    options.add_argument("--again", nargs=2, metavar=("TARGET", "FILE"), help="try this input once")
    options.add_argument("targets", nargs="*", help=f"of {', '.join(SHARES)} (default: all)")
    given = options.parse_args()
    if given.again:
        from targets import TARGETS

        TARGETS[given.again[0]](Path(given.again[1]).read_bytes())
        print("nothing wrong")
        return 0
    wanted = given.targets or list(SHARES)
    if unknown := set(wanted) - SHARES.keys():
        options.error(f"no such target: {', '.join(sorted(unknown))}")
    shares = sum(SHARES[each] for each in wanted)

    def seconds_of(target: str) -> int:
        return max(
            1, given.seconds * AT_ONCE * SHARES[target] // shares if len(wanted) > 1 else given.seconds
        )

    with ThreadPoolExecutor(AT_ONCE) as threads:
        done = list(threads.map(lambda each: search(each, seconds_of(each)), wanted))
    for each in done:
        print(f"{each.target}: {each.tried:,} inputs, {'FAILED' if each.crash else 'nothing wrong'}")
    return 1 if any(each.crash for each in done) else 0


def search(target: str, seconds: int) -> Search:
    """Fuzz one target for so long."""
    kept, crashes = FOUND / target, FOUND / "crashes"
    kept.mkdir(parents=True, exist_ok=True)
    crashes.mkdir(exist_ok=True)
    command = [
        *(sys.executable, str(HERE / "one_target.py"), target),
        *(str(kept), str(HERE / "seeds" / target)),
        *(f"-max_total_time={seconds}", f"-timeout={SLOWEST_S}", f"-rss_limit_mb={MOST_MIB}"),
        *("-max_len=4096", "-print_final_stats=1", f"-artifact_prefix={crashes / target}-"),
    ]
    done = subprocess.run(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        env={**os.environ, "PYTHONHASHSEED": "0"},
        timeout=seconds + GRACE_S,
        check=False,
    )
    output = done.stdout.decode(errors="backslashreplace")
    counted = re.search(r"stat::number_of_executed_units:\s*(\d+)", output)
    written = re.search(r"Test unit written to (\S+)", output)
    crash = Path(written[1]) if written else None
    if done.returncode and crash is None:
        crash = Path(os.devnull)
    if crash is not None:
        print(output[-4_000:])
        print(f"\n{target}: this input failed: {crash.read_bytes()[:2_000]!r}")
        print(f"again: {sys.executable} {HERE / 'fuzz.py'} --again {target} {crash}", flush=True)
    return Search(target, int(counted[1]) if counted else 0, crash, output)


if __name__ == "__main__":
    sys.exit(main())
