"""LOOK goes by number until a backlog would hold up other accounts."""

import pytest

from hookline.rules.outbox_look import BY_NUMBER, LookPlan, following

IDLE = LookPlan()


@pytest.mark.parametrize(
    ("plan", "rows", "is_full", "last_account", "expected"),
    [
        (IDLE, 0, False, "", IDLE),
        (IDLE, 499, False, "", IDLE),
        (IDLE, 500, True, "", LookPlan(True)),
        (IDLE, 4, True, "", LookPlan(True)),  # four of a mebibyte
        (LookPlan(True), 500, True, "m", LookPlan(True, "m")),
        (LookPlan(True, "m"), 12, True, "z", LookPlan(False, "z", BY_NUMBER)),
        (LookPlan(True, "z"), 0, True, "", LookPlan(False, "", BY_NUMBER)),
        (LookPlan(False, "z", 4), 500, True, "", LookPlan(False, "z", 3)),
        (LookPlan(False, "z", 1), 500, True, "", LookPlan(True, "z")),
        (LookPlan(False, "z", 3), 17, False, "", LookPlan(False, "z")),
    ],
)
def test_what_follows(plan, rows, is_full, last_account, expected):
    assert following(plan, rows=rows, most=500, is_full=is_full, last_account=last_account) == expected


def test_a_backlog_of_one_account_moves_nearly_as_fast_as_by_number_alone():
    plan, moved, looks = IDLE, 0, 0
    while moved < 100_000:
        rows = 5 if plan.is_fair else 500
        plan = following(plan, rows=rows, most=500, is_full=True, last_account="busy")
        moved, looks = moved + rows, looks + 1
    assert looks <= 100_000 / 500 * 1.3


def test_behind_a_backlog_every_account_has_its_turn_within_a_few_looks():
    plan, until_fair = IDLE, []
    for _ in range(50):
        plan = following(plan, rows=5 if plan.is_fair else 500, most=500, is_full=True, last_account="a")
        until_fair.append(plan.is_fair)
    assert (
        max(len(part) for part in "".join("f" if fair else "n" for fair in until_fair).split("f"))
        <= BY_NUMBER
    )
