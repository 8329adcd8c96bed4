"""How long hookline's imports and its front page take, beside the start of the interpreter itself.

`python benchmarks/imports.py` prints for each the least of several starts, by the clock and by the processor, and how
many bare starts that is. The goals are ADR 26's. The environment matters: structlog imports rich where it is installed,
as in the one for development; run it with the Python of an environment that has `hookline[server]` alone.
"""

import resource
import subprocess
import sys
import time
from typing import NamedTuple

STARTS = 20
FRONT_PAGE = "import sys; sys.argv = ['hookline', '--help']; import hookline.__main__"
# What is started, and what it may take: milliseconds, or so many bare starts.
GOALS: dict[str, str] = {
    "pass": "",
    "import hookline.receiver": "50 ms",
    "import hookline.outbox": "",
    "from hookline import SyncHooklineClient": "",
    "from hookline import HooklineClient": "",
    "from hookline import Hookline": "250 ms",
    FRONT_PAGE: "3 times",
}


class Cost(NamedTuple):
    wall_ms: float
    cpu_ms: float


def main() -> int:
    print(f"{'ms':>6} {'cpu ms':>7} {'× bare':>7}  {'goal':>8}")
    bare = cost("pass")
    for program, goal in GOALS.items():
        found = bare if program == "pass" else cost(program)
        name = {"pass": "python -c pass", FRONT_PAGE: "hookline --help"}.get(program, program)
        print(
            f"{found.wall_ms:6.0f} {found.cpu_ms:7.0f} {found.wall_ms / bare.wall_ms:7.1f}  {goal:>8}  {name}"
        )
    return 0


def cost(program: str) -> Cost:
    """The least of several starts: other work on the machine can only add to one."""
    walls, cpus = [], []
    for _ in range(STARTS):
        before, began = spent(), time.perf_counter()
        subprocess.run([sys.executable, "-c", program], stdout=subprocess.DEVNULL, check=True)
        walls.append(time.perf_counter() - began)
        cpus.append(spent() - before)
    return Cost(min(walls) * 1_000, min(cpus) * 1_000)


def spent() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


if __name__ == "__main__":
    sys.exit(main())
