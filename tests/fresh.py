"""Runs all randomised tests with fresh seeds and examples.

`make test` tries the same ones each time. This runs the simulation from a random first seed, each of its scenes with a
fiftieth of the seeds, and everything that Hypothesis makes examples for (the model of the stores among it) with random
examples. It prints what it begins with; the same values repeat the run.
"""

import argparse
import os
import random
import subprocess
import sys
from pathlib import Path

TESTS = Path(__file__).parent
SCENES = "scene_of"  # in the names of tests of scenes without a bug
EXAMPLES = 5  # how many times `make test`'s examples of the model to run, at most as many as there are seeds
LARGEST = 10**9


def main() -> int:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--seeds", type=int, default=1_000, help="of the simulation (default: 1000)")
    options.add_argument("--first", type=int, help="the first of them (default: by chance; it is printed)")
    given = options.parse_args()
    first: int = random.SystemRandom().randrange(LARGEST) if given.first is None else given.first
    print(
        f"fresh: the same again with `python tests/fresh.py --seeds {given.seeds} --first {first}`",
        flush=True,
    )
    simulated = {"HOOKLINE_SIM_FIRST": str(first), "HOOKLINE_SIM_SEEDS": str(given.seeds)}
    statuses = [
        run(["tests/sim/test_simulation.py"], simulated),
        run(["tests/sim/test_planted_bugs.py", "-k", SCENES], simulated),
        run(
            [*map(str, with_examples()), f"--hypothesis-seed={first}"],
            {"HOOKLINE_FRESH": "1", "HOOKLINE_MODEL_EXAMPLES": str(min(30 * EXAMPLES, max(30, given.seeds)))},
        ),
    ]
    return 1 if any(statuses) else 0


def with_examples() -> list[Path]:
    """The files whose tests have examples; without that of the model's planted bugs."""
    files = sorted(path for path in TESTS.rglob("test_*.py") if "hypothesis" in path.read_text())
    return [path.relative_to(TESTS.parent) for path in files if path.name != "test_planted_bugs.py"]


def run(arguments: list[str], settings: dict[str, str]) -> int:
    command = [sys.executable, "-m", "pytest", *arguments]
    return subprocess.run(command, cwd=TESTS.parent, env={**os.environ, **settings}, check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
