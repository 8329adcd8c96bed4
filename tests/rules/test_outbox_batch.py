"""A batch that fails is halved until the row to blame is alone."""

import pytest

from hookline.rules.outbox_batch import ALONE, MOST, BatchEnd, BatchPlan, following


@pytest.mark.parametrize(
    ("plan", "end", "rows", "expected"),
    [
        (BatchPlan(), BatchEnd.DONE, 500, BatchPlan()),
        (BatchPlan(3, 2), BatchEnd.DONE, 3, BatchPlan(6)),
        (BatchPlan(400), BatchEnd.DONE, 400, BatchPlan(MOST)),
        (BatchPlan(), BatchEnd.BROKEN, 500, BatchPlan(250)),
        (BatchPlan(), BatchEnd.BROKEN, 3, BatchPlan(1)),
        (BatchPlan(1), BatchEnd.BROKEN, 1, BatchPlan(1, 1)),
        (BatchPlan(1, 1), BatchEnd.BROKEN, 1, BatchPlan(1, 2)),
        (BatchPlan(), BatchEnd.LEFT, 500, BatchPlan(250)),
        (BatchPlan(1, 2), BatchEnd.LEFT, 1, BatchPlan(1, 2)),  # nobody is to blame
    ],
)
def test_what_follows(plan, end, rows, expected):
    assert following(plan, end, rows=rows) == expected


@pytest.mark.parametrize("culprit", [0, 1, 250, 499])
def test_the_row_to_blame_is_found_and_nobody_else(culprit):
    rows, plan, given_up = list(range(500)), BatchPlan(), []
    for _ in range(200):
        if not rows:
            break
        batch = rows[: plan.most]
        if plan.is_hopeless:
            given_up.append(batch[0])
            rows, plan = rows[1:], following(plan, BatchEnd.DONE, rows=1)
        elif culprit in batch:
            plan = following(plan, BatchEnd.BROKEN, rows=len(batch))
        else:
            rows, plan = rows[len(batch) :], following(plan, BatchEnd.DONE, rows=len(batch))
    assert (rows, given_up) == ([], [culprit])


def test_a_row_is_given_up_after_it_failed_alone_three_times():
    assert [BatchPlan(1, times).is_hopeless for times in range(ALONE + 1)] == [False, False, False, True]
