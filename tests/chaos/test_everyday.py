"""Every run includes every row, and any three runs include every control."""

from tests.chaos import whole
from tests.chaos.checker import Limits
from tests.chaos.everyday import CONTROLS, NO_TIMES, Job, jobs, seed_of_the_commit
from tests.chaos.registry import bugs, rows

EVERYDAY = {name: row for name, row in rows().items() if row.everyday}


def test_the_rows_of_the_suite_are_those_of_the_matrix():
    expected = (1, 2, 4, 5, 6, 7, 8, 9, 10, 11, 12, 16, 20, 21, 29, 30, 31, 32)
    assert list(EVERYDAY) == [f"F{n:02}" for n in expected]


def test_every_row_runs_on_each_of_its_stores_whatever_the_seed():
    for seed in range(6):
        plain = [job for job in jobs(seed) if not job.control]
        assert sorted(plain) == sorted(
            Job(name, store) for name, row in EVERYDAY.items() for store in row.stores
        )


def test_seeds_one_after_the_other_try_every_control():
    tried = [{job.row for job in jobs(seed) if job.control} for seed in range(CONTROLS)]
    assert sorted(name for rows in tried for name in rows) == list(EVERYDAY)
    stores = {
        job.store for seed in range(2 * CONTROLS) for job in jobs(seed) if job.control and job.row == "F05"
    }
    assert stores == {"sqlite", "postgres"}


def test_every_row_has_a_bug_that_can_be_planted():
    assert {row.bug for row in rows().values() if row.bug} <= bugs().keys()


def test_one_commit_is_tried_in_one_way():
    assert list(jobs(seed_of_the_commit())) == list(jobs(seed_of_the_commit()))


def test_no_time_is_judged_in_the_suite_and_none_without_bound_elsewhere():
    assert Limits(redelivery_s=2.0).with_leeway(float(NO_TIMES)).redelivery_s == float("inf")
    assert whole.LEEWAY <= 3.0
