"""The simulation notices the bugs that are planted in it.

A commit plants its share of them (tests/shares.py), and any four commits in a row plant all; HOOKLINE_SIM_BUGS=all
plants all at once. The search begins with the seed that last found the bug, then continues from seed 0. Some bugs are
searched in a scene that makes their situation likely.
"""

import os

import pytest

from tests.shares import SHARES, dealt, share_of_the_commit
from tests.sim.planted import BUGS, SCENE_OF, SEEN_AT, planted
from tests.sim.scenes import SCENES
from tests.sim.world import Result, Worlds

SEEDS = 500
WITHOUT_A_BUG = 3, 40  # seeds of each scene; with all bugs
OF_EACH_SCENE = 50  # where seeds are asked for: one in so many


def chosen(share: int) -> list[str]:
    if os.environ.get("HOOKLINE_SIM_BUGS") == "all":
        return list(BUGS)
    return dealt(list(BUGS), share)


def first_violation(worlds: Worlds, name: str) -> tuple[int, Result | None]:
    """The number of seeds it took, and the violated promise."""
    seeds = [SEEN_AT[name], *range(SEEDS)]
    for tried, seed in enumerate(seeds, 1):
        result = worlds.run(seed, SCENES[SCENE_OF[name]] if name in SCENE_OF else None)
        if result.violation is not None:
            return tried, result
    return len(seeds), None


@pytest.mark.parametrize("name", chosen(share_of_the_commit()))
def test_it_is_noticed_when(worlds: Worlds, name: str, capsys: pytest.CaptureFixture[str]) -> None:
    with planted(name):
        tried, found = first_violation(worlds, name)
    with capsys.disabled():
        print(
            f"\nplanted: {name}: {'not noticed' if found is None else found.violation} (seed {tried} of those tried)"
        )
    assert found is not None


def test_four_commits_in_a_row_plant_every_bug(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("HOOKLINE_SIM_BUGS", raising=False)
    assert sorted(name for share in range(SHARES) for name in chosen(share)) == sorted(BUGS)


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
    # A lane with an empty buffer is always read again: only a full one can be forgotten.
    assert scene != "shared out" or fullest > 0.5 or seeds < 3


def test_a_bug_is_taken_back_after_its_test(worlds: Worlds) -> None:
    before = worlds.run(3).digest
    with planted("M8 the idempotency key is not in the transaction"):
        assert worlds.run(3).violation is not None
    assert worlds.run(3).digest == before
