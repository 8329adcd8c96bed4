"""Every target of the fuzzer holds for its seeds and for examples; `make fuzz` tries many more."""

import sys
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

sys.path.insert(0, str(Path(__file__).parent))

from targets import TARGETS, seeds

SEEDS = [pytest.param(target, seed, id=f"{target}-{number}") for number, (target, seed) in enumerate(seeds())]


@pytest.mark.parametrize(("target", "seed"), SEEDS)
def test_a_seed(target: str, seed: bytes) -> None:
    TARGETS[target](seed)


def test_every_target_has_seeds() -> None:
    assert {target for target, _ in seeds()} == TARGETS.keys()


def changed(seed: bytes, changes: list[tuple[int, int, bytes]]) -> bytes:
    """The seed with parts of it replaced."""
    for at, length, by in changes:
        place = at % (len(seed) + 1)
        seed = seed[:place] + by + seed[place + length :]
    return seed


CHANGES = st.lists(st.tuples(st.integers(0, 200), st.integers(0, 8), st.binary(max_size=6)), max_size=4)


@pytest.mark.parametrize("target", TARGETS)
@settings(max_examples=150)
@given(st.data())
def test_changed_seeds_and_noise(target: str, data: st.DataObject) -> None:
    own = [seed for name, seed in seeds() if name == target]
    tried = data.draw(st.builds(changed, st.sampled_from(own), CHANGES) | st.binary(max_size=300))
    TARGETS[target](tried)
