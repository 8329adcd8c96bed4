"""Every promise holds in a simulated world, whatever goes wrong in it.

`pytest tests/sim --sim-seed=N` repeats one seed exactly. HOOKLINE_SIM_SEEDS is the number of seeds (default 100), and
HOOKLINE_SIM_FIRST the first of them. The seeds are the same each time: a failure here is a failure on every machine,
however busy.
"""

import os
from collections import Counter

import pytest

from tests.sim.commits import TRANSITIONS
from tests.sim.faults import KINDS
from tests.sim.progress import ks_distance
from tests.sim.world import Worlds

SEEDS = 100


def test_every_promise_holds(
    worlds: Worlds, sim_seed: int | None, capsys: pytest.CaptureFixture[str]
) -> None:
    first = int(os.environ.get("HOOKLINE_SIM_FIRST", "0"))
    seeds = int(os.environ.get("HOOKLINE_SIM_SEEDS", SEEDS))
    if sim_seed is not None:
        first, seeds = sim_seed, 1
    transitions: Counter[str] = Counter()
    faults: Counter[str] = Counter()
    matrix: set[tuple[str, str]] = set()
    draws: list[float] = []
    steps = requests = 0
    for seed in range(first, first + seeds):
        result = worlds.run(seed)
        assert result.violation is None, f"\n{result}"
        steps += result.steps
        requests += result.requests
        transitions.update(result.transitions)
        faults.update(result.faults)
        matrix |= result.matrix
        draws += result.draws
    possible = len(KINDS) * len(TRANSITIONS)
    with capsys.disabled():
        print(
            f"\nsimulation: {seeds} seeds from {first}, {steps:,} steps, {requests:,} requests, "
            f"{sum(faults.values()):,} faults; transitions {len(transitions)}/{len(TRANSITIONS)}, "
            f"fault × transition {len(matrix)}/{possible} ({len(matrix) / possible:.0%})"
        )
        for kind in KINDS:
            missing = [each for each in TRANSITIONS if (kind, each) not in matrix]
            if missing and seeds >= SEEDS:
                print(f"  not seen near {kind}: {', '.join(missing)}")
    if seeds >= SEEDS:
        assert set(transitions) == set(TRANSITIONS)
        assert ks_distance(draws) < 2.5 / len(draws) ** 0.5, "waits with full jitter are drawn evenly"
