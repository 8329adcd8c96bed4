"""In which order suspects are sent after a worker died."""

from dataclasses import dataclass

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hookline.rules.crash_suspects import (
    CRASH_LIMIT,
    Plan,
    few_of_the_dead,
    goes_alone,
    plan,
    room_for,
)


@dataclass(frozen=True)
class Suspect:
    name: str
    marks: int


def test_those_with_four_marks_are_given_up_and_the_least_suspect_of_the_others_go_first():
    fresh = [Suspect(f"fresh {n}", 0) for n in range(20)]
    once = [Suspect(f"once {n}", 1) for n in range(10)]
    twice, thrice, done = Suspect("twice", 2), Suspect("thrice", 3), Suspect("done", 4)
    assert plan([thrice, *once, twice, done, *fresh]) == Plan(
        condemned=(done,), sent=(*fresh, *once, twice, thrice)
    )


@given(st.lists(st.integers(0, 6), max_size=60))
def test_every_suspect_has_exactly_one_place(marks):
    suspects = [Suspect(str(n), count) for n, count in enumerate(marks)]
    made = plan(suspects)
    assert sorted([*made.condemned, *made.sent], key=lambda s: int(s.name)) == suspects
    assert all(suspect.marks >= CRASH_LIMIT for suspect in made.condemned)


@pytest.mark.parametrize(
    ("marks", "beside", "room"),
    [
        (0, [], 25),  # a quarter of the slots
        (0, [0] * 24, 1),
        (0, [0] * 30, 0),
        (1, [], 8),
        (1, [1] * 7, 1),
        (2, [], 1),
        (2, [2], 0),
        (3, [], 1),
        (1, [0], 0),  # it would be marked for what the other one does
        (0, [1], 0),
        (2, [1, 1], 0),
        (3, [2], 0),
    ],
)
def test_the_more_marks_the_fewer_go_together_and_only_with_their_like(marks, beside, room):
    assert room_for(marks, beside=beside, slots=100, others_are_marked=False) == room


def test_a_small_worker_sends_some_unmarked_ones_at_once_too():
    assert room_for(0, beside=[], slots=4, others_are_marked=False) == 8


def test_where_others_are_marked_the_unmarked_go_as_fast_as_they_can():
    assert room_for(0, beside=[0] * 30, slots=100, others_are_marked=True) == 70
    assert room_for(0, beside=[1], slots=100, others_are_marked=True) == 0
    assert room_for(1, beside=[], slots=100, others_are_marked=True) == 8


def test_two_marks_are_enough_to_go_alone():
    assert [goes_alone(marks) for marks in range(CRASH_LIMIT)] == [False, False, True, True]


def test_lanes_of_the_dead_are_taken_few_at_first_where_there_are_others_to_take_them():
    assert [few_of_the_dead(takes, peers=1) for takes in range(7)] == [1, 3, 9, 27, 81, None, None]
    assert few_of_the_dead(0, peers=0) is None
