"""Runs the whole fault matrix and all planted bugs.

Each row runs in its own process (run.py, or measure.py for rows that measure). Unless rows were named, its control
follows, which must fail, and at the end every bug planted in the simulation and in the model of the stores, which must
be detected. `--long` is the long set: more trials, larger sizes, and exact limits on times. Otherwise a time may be
three times its limit, because machines are shared. Exits with 0 if everything held and every bug was found; with
`--control` with 1 if every row failed as it must.
"""

import argparse
import random
import subprocess
import sys
from typing import NamedTuple

from tests.chaos import noticed
from tests.chaos.registry import rows, studies

LEEWAY = 3.0  # a time that misses its limit by more has failed, however busy the machine is
HELD, FOUND, WITHOUT_MEANS = 0, 1, 4

# Of the long set; a part is meant to take an hour at most.
TRIALS = {
    "F01": 60,
    "F02": 50,
    "F03": 20,
    "F04": 200,
    "F05": 400,
    "F06": 60,
    "F07": 60,
    "F08": 200,
    "F09": 60,
}
TRIALS |= {
    "F10": 60,
    "F11": 50,
    "F12": 50,
    "F13": 20,
    "F14": 20,
    "F15": 1,
    "F16": 20,
    "F16R": 3,
    "F17": 10,
    "F18": 50,
    "F20": 20,
    "F21": 20,
    "F22": 5,
}
TRIALS |= {
    "F24": 3,
    "F25": 3,
    "F26": 1,
    "F27": 5,
    "F28": 1,
    "F29": 20,
    "F30": 20,
    "F31": 60,
    "F32": 60,
    "F33": 3,
}
TRIALS |= {"F34": 20, "F35": 1, "F36": 20, "F37": 60}


class Verdict(NamedTuple):
    """The result of one row."""

    row: str
    held: bool
    says: str


def part_of(row: str) -> str:
    """L1: crash and durability; L2: network, clock and resources; L3: scale and fairness."""
    number = int(row[1:3])  # a letter follows if a part of the row can be run separately
    if number <= 11 or number in (20, 37):
        return "L1"
    return "L2" if number <= 18 or number in (21, 22, 34, 35, 36) else "L3"


def main() -> int:
    counted, measured = rows(), studies()
    known = sorted((*counted, *measured))
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--rows", default="", help="such as F05,F07 (default: all of the set)")
    options.add_argument(
        "--store", choices=["sqlite", "postgres"], help="default: both, where a row has both"
    )
    options.add_argument("--trials", type=int, help="faults per row and store (default: the set's)")
    options.add_argument("--seed", type=int, help="default: by chance; it is printed")
    options.add_argument("--long", action="store_true", help="the long set")
    options.add_argument("--part", choices=["L1", "L2", "L3"], help="this part of it only")
    options.add_argument("--scale", help="times as large, for rows that measure, to try one")
    options.add_argument("--control", action="store_true", help="plant the rows' bugs: must exit 1")
    given = options.parse_args()
    names = [name for name in given.rows.upper().split(",") if name]
    if unknown := [name for name in names if name not in known]:
        options.error(f"no such row: {', '.join(unknown)}; there are {', '.join(known)}")
    is_all = not (names or given.control or given.part or given.store)
    has_controls = given.control or not names
    if not names:
        # A row without trials runs only in the long set, or when it is named.
        names = [name for name in known if given.long or (counted | measured)[name].trials]
    names = [name for name in names if given.part in (None, part_of(name))]
    seed = random.SystemRandom().randrange(1 << 31) if given.seed is None else given.seed
    verdicts = []
    for name in names:
        row = (counted | measured)[name]
        if given.store not in (None, *row.stores):
            continue
        command = [sys.executable, "-m", f"tests.chaos.{'run' if name in counted else 'measure'}"]
        command += ["--rows", name, "--seed", str(seed)]
        command += ["--store", given.store] if given.store else []
        command += ["--leeway", str(1.0 if given.long else LEEWAY)]
        if name in measured:
            command += ["--long"] if given.long else []
            command += ["--scale", given.scale] if given.scale else []
        trials = given.trials or (TRIALS.get(name) if given.long else None)
        if not given.control:
            status = subprocess.run([*command, *(["--trials", str(trials)] if trials else [])]).returncode
            verdicts.append(_judge(name, status, HELD, "held"))
        if row.bug and has_controls:
            # The long set's size is not needed to see a bug, and a bug has no leeway.
            planted = [*(each for each in command if each != "--long"), "--control"]
            planted += ["--leeway", "1"] if name in measured else []
            status = subprocess.run(planted).returncode
            verdicts.append(_judge(f"{name} with its bug", status, FOUND, "found it"))
    if is_all:
        verdicts += [Verdict(each.name, each.good, each.says) for each in noticed.look()]
    for verdict in verdicts:
        print(f"{verdict.row:<18} {verdict.says}", file=sys.stderr)
    # With bugs planted, 1 is success: every row has failed.
    return 0 if all(verdict.held for verdict in verdicts) != given.control else 1


def _judge(row: str, status: int, good: int, says: str) -> Verdict:
    if status == good:
        return Verdict(row, True, says)
    if status == WITHOUT_MEANS:
        return Verdict(row, True, "left out: this machine has not the means for it")
    return Verdict(row, False, "DID NOT" if status in (HELD, FOUND) else f"BROKE ({status})")


if __name__ == "__main__":
    sys.exit(main())
