import pytest

from hookline.model import WorkerId
from hookline.rules.liveness import Condition, Watch, condition, look

A, B = WorkerId(b"a" * 16), WorkerId(b"b" * 16)
LEASE, GAP = 10.0, 5.0


def watch_over(looks):
    """The verdicts of a series of looks, each (time, beats)."""
    watch, verdicts = Watch(), []
    for at, beats in looks:
        watch, dead = look(watch, beats, at=at, lease=LEASE, gap=GAP)
        verdicts.append(dead)
    return verdicts


def test_a_worker_whose_beat_stands_still_for_a_lease_is_dead():
    looks = [(float(at), [(A, 7)]) for at in range(12)]
    assert watch_over(looks) == [[]] * 10 + [[(A, 7)]] * 2


def test_a_worker_that_beats_is_alive():
    looks = [(float(at), [(A, at // 5)]) for at in range(60)]
    assert watch_over(looks) == [[]] * 60


def test_an_observer_that_was_asleep_starts_its_watch_again():
    looks = [
        (0.0, [(A, 7)]),
        (4.0, [(A, 7)]),
        (60.0, [(A, 7)]),
        (64.0, [(A, 7)]),
        (69.0, [(A, 7)]),
        (70.0, [(A, 7)]),
    ]
    assert watch_over(looks) == [[], [], [], [], [], [(A, 7)]]


def test_each_worker_is_watched_for_itself():
    looks = [(float(at), [(A, 7), (B, at)]) for at in range(11)]
    assert watch_over(looks)[-1] == [(A, 7)]


def test_a_worker_seen_for_the_first_time_is_alive():
    assert watch_over([(0.0, [(A, 7)]), (4.0, [(A, 7), (B, 0)])]) == [[], []]


@pytest.mark.parametrize(
    ("silent", "is_draining", "is_buried", "expected"),
    [
        (0.0, False, False, Condition.RUNNING),
        (-5.0, False, False, Condition.RUNNING),  # a beat that is younger than the observer's time
        (5.0, False, False, Condition.RUNNING),
        (5.1, False, False, Condition.STALE),
        (0.0, True, False, Condition.DRAINING),
        (5.1, True, False, Condition.STALE),
        (0.0, False, True, Condition.STALE),
    ],
)
def test_people_are_told_how_a_worker_stands(silent, is_draining, is_buried, expected):
    found = condition(silent=silent, is_draining=is_draining, is_buried=is_buried, heartbeat=2.0)
    assert found is expected
