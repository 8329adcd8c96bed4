"""Does the simulation notice the bugs it is there for?

Each time but for those that are rarely met with; all with HOOKLINE_SIM_BUGS=all. A bug is looked for first where it was
found before, then from seed 0 on; some in a scene that is about their situation.
"""

import os
import time

import pytest

from tests.sim.planted import BUGS, RARE, SCENE_OF, SEEN_AT, planted
from tests.sim.scenes import SCENES
from tests.sim.world import Result, Worlds

SEEDS = 500
CPU_SECONDS = 60.0  # for one bug, unless all are planted; where it was found before takes a second
WITHOUT_A_BUG = 3, 40  # seeds of each scene; with all bugs
OF_EACH_SCENE = 50  # where seeds are asked for: one in so many


def chosen() -> list[str]:
    if os.environ.get("HOOKLINE_SIM_BUGS") == "all":
        return list(BUGS)
    return [name for name in BUGS if name not in RARE]


def first_violation(worlds: Worlds, name: str, *, within: float) -> tuple[int, Result | None]:
    """How many seeds it took, and what was then violated."""
    until = time.process_time() + within
    seeds = [SEEN_AT[name], *range(SEEDS)]
    for tried, seed in enumerate(seeds, 1):
        result = worlds.run(seed, SCENES[SCENE_OF[name]] if name in SCENE_OF else None)
        if result.violation is not None:
            return tried, result
        if time.process_time() > until:
            return tried, None
    return len(seeds), None


@pytest.mark.parametrize("name", chosen())
def test_it_is_noticed_when(worlds: Worlds, name: str, capsys: pytest.CaptureFixture[str]) -> None:
    is_all = "HOOKLINE_SIM_BUGS" in os.environ
    with planted(name):
        tried, found = first_violation(worlds, name, within=float("inf") if is_all else CPU_SECONDS)
    with capsys.disabled():
        print(
            f"\nplanted: {name}: {'not noticed' if found is None else found.violation} (seed {tried} of those tried)"
        )
    assert found is not None


@pytest.mark.parametrize("scene", SCENES)
def test_no_promise_is_broken_without_a_bug_in_the_scene_of(worlds: Worlds, scene: str) -> None:
    first = int(os.environ.get("HOOKLINE_SIM_FIRST", "0"))
    seeds = WITHOUT_A_BUG["HOOKLINE_SIM_BUGS" in os.environ]
    if "HOOKLINE_SIM_SEEDS" in os.environ:
        seeds = max(1, int(os.environ["HOOKLINE_SIM_SEEDS"]) // OF_EACH_SCENE)
    fullest = 0.0
    for seed in range(first, first + seeds):
        result = worlds.run(seed, SCENES[scene])
        again = f"HOOKLINE_SIM_FIRST={seed} HOOKLINE_SIM_SEEDS=1 pytest tests/sim/test_planted_bugs.py -k '{scene}'"
        assert result.violation is None, f"\nreplay of the scene: {again}\n{result}"
        fullest = max(fullest, result.fullest)
    # A lane with an empty buffer is read again whatever becomes of it: only a full one can be forgotten.
    assert scene != "shared out" or fullest > 0.5 or seeds < 3


def test_a_bug_is_taken_back_after_its_test(worlds: Worlds) -> None:
    before = worlds.run(3).digest
    with planted("M8 the idempotency key is not in the transaction"):
        assert worlds.run(3).violation is not None
    assert worlds.run(3).digest == before
