"""One seed is one run."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.sim.world import Worlds

ROOT = Path(__file__).parents[2]
SEEDS = (3, 11, 30)  # with crashes, pauses, config changes and an outbox among them


@pytest.mark.parametrize("seed", SEEDS)
def test_a_seed_is_the_same_run_each_time_and_in_every_process(worlds: Worlds, seed: int) -> None:
    here = worlds.run(seed)
    again = worlds.run(seed)
    assert (again.digest, again.steps) == (here.digest, here.steps)
    program = f"from tests.sim.world import Worlds; w = Worlds(); print(w.run({seed}).digest); w.close()"
    for hash_seed in ("1", "2"):
        there = subprocess.run(
            [sys.executable, "-c", program],
            cwd=ROOT,
            env={**os.environ, "PYTHONHASHSEED": hash_seed, "PYTHONPATH": f"{ROOT}:{ROOT / 'tests'}"},
            capture_output=True,
            text=True,
            check=True,
            timeout=300,
        )
        assert there.stdout.strip() == here.digest


def test_another_seed_is_another_run(worlds: Worlds) -> None:
    assert worlds.run(3).digest != worlds.run(4).digest
