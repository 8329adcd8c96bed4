"""The sample of the fault matrix in `make test`: four commits in a row run every row and every control."""

from tests.chaos import whole
from tests.chaos.checker import Limits
from tests.chaos.everyday import NO_TIMES, Job, jobs
from tests.chaos.registry import bugs, rows
from tests.shares import SHARES, number_of_the_commit

EVERYDAY = {name: row for name, row in rows().items() if row.everyday}


def test_the_rows_of_the_suite_are_those_of_the_matrix():
    expected = (1, 2, 4, 5, 6, 7, 8, 9, 10, 11, 12, 14, 15, 16, 20, 21, 22, 29, 30, 31, 32, 37)
    assert list(EVERYDAY) == [f"F{n:02}" for n in expected]


def test_any_four_commits_in_a_row_run_every_row_on_each_of_its_stores_once():
    for first in range(2 * SHARES):
        plain = [job for n in range(first, first + SHARES) for job in jobs(n) if not job.control]
        assert sorted(plain) == sorted(
            Job(name, store) for name, row in EVERYDAY.items() for store in row.stores
        )


def test_any_four_commits_in_a_row_run_every_control_and_eight_on_each_of_its_stores():
    for first in range(2 * SHARES):
        tried = [job.row for n in range(first, first + SHARES) for job in jobs(n) if job.control]
        assert sorted(tried) == list(EVERYDAY)
    tried = [job for n in range(2 * SHARES) for job in jobs(n) if job.control]
    assert {(job.row, job.store) for job in tried} == {
        (name, store) for name, row in EVERYDAY.items() for store in row.stores
    }


def test_every_row_has_a_bug_that_can_be_planted():
    assert {row.bug for row in rows().values() if row.bug} <= bugs().keys()


def test_one_commit_is_tried_in_one_way():
    assert list(jobs(number_of_the_commit())) == list(jobs(number_of_the_commit()))


def test_no_time_is_judged_in_the_suite_and_none_without_bound_elsewhere():
    assert Limits(redelivery_s=2.0).with_leeway(float(NO_TIMES)).redelivery_s == float("inf")
    assert whole.LEEWAY <= 3.0
