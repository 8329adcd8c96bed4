"""How many bytes of payloads each class of lanes may hold."""

import pytest

from hookline.rules.memory import BUDGET_BYTES, fits
from hookline.rules.slots import LaneHealth

BUDGET = 1_000
NOTHING = (0, 0, 0, 0)


def fits_beside(held: tuple[int, int, int, int], size: int, health: LaneHealth, *, of_lane: int = 0) -> bool:
    return fits(size, health, held=held, of_lane=of_lane, budget=BUDGET)


@pytest.mark.parametrize(
    ("health", "most"),
    [
        (LaneHealth.PROVEN, 1_000),
        (LaneHealth.UNTRIED, 500),
        (LaneHealth.SLOW, 500),
        (LaneHealth.FAILING, 250),
    ],
)
def test_each_class_has_its_share_of_the_bytes(health, most):
    held = tuple(most - 100 if each is health else 0 for each in LaneHealth)
    assert fits_beside(held, 100, health)
    assert not fits_beside(held, 101, health)


def test_those_that_are_not_proven_leave_a_quarter_to_those_that_are():
    held = (0, 400, 300, 50)
    assert not any(fits_beside(held, 1, health) for health in LaneHealth if health is not LaneHealth.PROVEN)
    assert fits_beside(held, 250, LaneHealth.PROVEN)


def test_a_lane_holds_a_quarter_at_most_but_one_payload_of_any_size():
    held = (100, 0, 0, 0)
    assert fits_beside(held, 150, LaneHealth.PROVEN, of_lane=100)
    assert not fits_beside(held, 151, LaneHealth.PROVEN, of_lane=100)
    assert fits_beside(held, 800, LaneHealth.PROVEN, of_lane=0)


@pytest.mark.parametrize("health", LaneHealth)
def test_one_payload_of_each_class_always_goes_however_large(health):
    held = tuple(0 if each is health else BUDGET for each in LaneHealth)
    assert fits_beside(held, 10 * BUDGET, health)
    assert not fits_beside((BUDGET,) * 4, 1, health, of_lane=1)


def test_the_budget_holds_many_payloads_of_the_default_limit():
    assert BUDGET_BYTES // (1 << 20) >= 64
