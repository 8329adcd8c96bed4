"""From when on is something too old to be kept?"""

from hookline.rules.retention import DAY, CutOffs, Keep, cut_offs, keep_from_days

NEVER = float("-inf")


def test_days_are_of_86_400_seconds_and_none_are_for_ever():
    assert keep_from_days(delivered=30, dead=90) == Keep(done=30 * DAY, dead=90 * DAY)
    assert keep_from_days(delivered=0, dead=1) == Keep(done=None, dead=DAY)


def test_only_who_keeps_both_for_ever_keeps_everything():
    assert keep_from_days(delivered=0, dead=0).is_everything
    assert not keep_from_days(delivered=0, dead=1).is_everything
    assert not keep_from_days(delivered=1, dead=0).is_everything


def test_the_cut_off_lies_as_far_back_as_things_are_kept():
    assert cut_offs(Keep(done=10.0, dead=30.0), now=100.0) == CutOffs(90.0, 70.0)
    assert cut_offs(Keep(done=None, dead=30.0), now=100.0) == CutOffs(NEVER, 70.0)
    assert cut_offs(Keep(done=10.0, dead=None), now=100.0) == CutOffs(90.0, NEVER)
