"""When a worker counts as dead."""

import pytest

from hookline.model import WorkerId
from hookline.rules.liveness import By, Condition, Seen, Watch, condition, look, patience

A, B = WorkerId(b"a" * 16), WorkerId(b"b" * 16)
LEASE = 10.0


def watch_over(looks):
    """The verdicts of a series of looks, each (time, beats)."""
    watch, verdicts = Watch(), []
    for at, beats in looks:
        watch, dead = look(watch, [Seen(*each) for each in beats], began=at, ended=at, lease=LEASE)
        assert all(each.by is By.LEASE for each in dead)
        verdicts.append([(each.id, each.beat) for each in dead])
    return verdicts


def seen_by_session(looks, *, lease=LEASE):
    """When a worker that never beats is seen dead, by looks of (time, is its lock free, the observer's session)."""
    watch = Watch()
    for at, is_gone, session in looks:
        watch, dead = look(watch, [Seen(A, 7, is_gone)], began=at, ended=at, lease=lease, session=session)
        if dead:
            assert [each.by for each in dead] == [By.SESSION]
            return at
    return None


def looks(until, *, free, session=lambda at: 1):
    return [(n / 4, free(n / 4), session(n / 4)) for n in range(int(4 * until))]


def test_a_worker_whose_lock_is_free_for_a_sixth_of_a_lease_is_dead():
    assert seen_by_session(looks(9, free=lambda at: at >= 1)) == 2.75


def test_a_stopped_worker_keeps_its_lock_and_its_lease():
    assert seen_by_session(looks(9, free=lambda at: False)) is None


def test_a_lock_that_is_taken_again_in_time_was_never_missed():
    assert seen_by_session(looks(9, free=lambda at: at % 2 < 1.5)) is None


def test_an_observer_with_a_new_session_starts_its_watch_again():
    """As after the database started again: all locks are free."""
    assert seen_by_session(looks(9, free=lambda at: at >= 1, session=lambda at: 1 + (at >= 2.5))) == 4.25


def test_an_observer_without_a_session_of_its_own_sees_nobody_dead_by_theirs():
    assert seen_by_session(looks(9, free=lambda at: True, session=lambda at: None)) is None


def test_an_observer_that_was_held_up_starts_its_watch_again():
    late = [(0.0, True, 1), (0.5, True, 1), (2.0, True, 1), (2.5, True, 1), (3.0, True, 1), (3.5, True, 1)]
    assert seen_by_session(late) is None
    assert seen_by_session([*late, (4.0, True, 1)]) == 4.0


def test_a_worker_that_beats_is_alive_whatever_its_lock_says():
    watch = Watch()
    for n in range(40):
        at = n / 4
        watch, dead = look(watch, [Seen(A, int(at), True)], began=at, ended=at, lease=LEASE, session=1)
        assert dead == []


def test_a_look_that_took_long_does_not_count_what_it_took():
    watch, _ = look(Watch(), [Seen(A, 7, True)], began=0.0, ended=0.0, lease=LEASE, session=1)
    watch, _ = look(watch, [Seen(A, 7, True)], began=0.5, ended=0.5, lease=LEASE, session=1)
    watch, _ = look(watch, [Seen(A, 7, True)], began=0.9, ended=1.0, lease=LEASE, session=1)
    watch, dead = look(watch, [Seen(A, 7, True)], began=1.6, ended=1.8, lease=LEASE, session=1)
    assert dead == []
    assert watch.verdict_at == patience(LEASE)


@pytest.mark.parametrize(("lease", "seconds"), [(12.0, 2.0), (60.0, 10.0), (2.0, 1.0)])
def test_a_lock_is_waited_for_until_its_worker_starts_nothing_any_more(lease, seconds):
    assert patience(lease) == seconds
    assert seen_by_session(looks(20, free=lambda at: True), lease=lease) == seconds


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
