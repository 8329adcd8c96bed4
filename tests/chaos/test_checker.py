"""The checker finds each kind of violation."""

from typing import Any

import pytest

from tests.chaos.checker import Fault, Limits, Receipt, Stored, check

PROMISES = [{"did": "intent", "key": "k", "digest": "d"}, {"did": "ack", "key": "k", "id": "e", "took": 0.1}]
RECEIPT = Receipt("e", "d", "/1", 10.0, by="worker-1")
STORED = Stored("d", "delivered", 10.5)
KILL = Fault(10.2, "kill", "worker-1")
NONE = Limits()
AGAIN = RECEIPT._replace(began=12.5, by="worker-2")


def checked(
    *,
    promises: list[dict[str, Any]] = PROMISES,
    receipts: tuple[Receipt, ...] = (RECEIPT,),
    stored: dict[str, Stored] | None = None,
    faults: tuple[Fault, ...] = (),
    limits: Limits = NONE,
) -> dict[str, Any]:
    return check(promises, receipts, {"e": STORED} if stored is None else stored, faults, limits)


def test_what_was_promised_and_arrived_once_is_in_order():
    report = checked()
    assert (report["acked"], report["lost"], report["duplicated"]) == (1, 0, 0)
    assert report["violations"] == []


@pytest.mark.parametrize(
    ("change", "violation"),
    [
        ({"stored": {}, "receipts": ()}, "lost 1"),
        ({"stored": {"e": STORED._replace(state="pending", done_at=None)}}, "lost 1"),
        ({"receipts": ()}, "lost 1"),
        ({"receipts": (RECEIPT._replace(digest="other"),)}, "corrupt 1"),
        ({"receipts": (RECEIPT, RECEIPT._replace(id="f"))}, "unexpected 1"),
        ({"receipts": (RECEIPT._replace(signed=False),)}, "unsigned 1"),
        ({"receipts": (RECEIPT, AGAIN)}, "unexplained 1"),
        ({"stored": {"e": STORED, "f": STORED}}, "twins 1"),
        ({"stored": {"e": STORED._replace(settled=2)}}, "resettled 1"),
        ({"stored": {"e": STORED._replace(state="dead")}}, "dead 1"),
        ({"promises": [*PROMISES, {"did": "doubt", "key": "k", "status": 500}]}, "errors_5xx 1"),
    ],
)
def test_every_kind_of_harm_is_a_violation(change, violation):
    assert violation in checked(**change)["violations"]


def test_what_was_in_flight_at_a_kill_may_arrive_twice():
    report = checked(receipts=(RECEIPT, AGAIN), stored={"e": STORED._replace(done_at=12.6)}, faults=(KILL,))
    assert (report["duplicated"], report["duplicate_bound"], report["redelivery_s"]) == (1, 1, 2.3)
    assert report["violations"] == []


@pytest.mark.parametrize(
    "fault",
    [
        KILL._replace(at=9.0),  # before it was sent
        KILL._replace(at=12.7),  # after it was sent twice
        KILL._replace(who="worker-2"),  # of another process
    ],
)
def test_a_fault_that_it_was_not_in_flight_at_is_no_excuse(fault):
    report = checked(receipts=(RECEIPT, AGAIN), stored={"e": STORED._replace(done_at=12.6)}, faults=(fault,))
    assert report["violations"] == ["unexplained 1"]


def test_a_drain_excuses_nothing():
    report = checked(
        receipts=(RECEIPT, AGAIN),
        stored={"e": STORED._replace(done_at=12.6)},
        faults=(KILL._replace(excuses=False),),
    )
    assert report["violations"] == ["kill sent 1 twice, allowed 0"]


@pytest.mark.parametrize(
    ("ended", "violations"), [(10.1, []), (10.3, ["kill cut off 1 requests, allowed 0"])]
)
def test_only_requests_that_were_not_answered_count_against_the_slots(ended, violations):
    report = checked(
        receipts=(RECEIPT._replace(ended=ended), AGAIN),
        stored={"e": STORED._replace(done_at=12.6)},
        faults=(KILL,),
        limits=Limits(in_flight=0),
    )
    assert report["violations"] == violations


def test_a_redelivery_that_lets_one_wait_is_a_violation():
    late = Limits(redelivery_s=2.0)
    report = checked(
        receipts=(RECEIPT, AGAIN), stored={"e": STORED._replace(done_at=12.6)}, faults=(KILL,), limits=late
    )
    assert report["violations"] == ["redelivery after 2.3 s, allowed 2"]


def test_what_was_never_answered_is_in_doubt_and_may_be_missing():
    promises = [PROMISES[0], {"did": "doubt", "key": "k", "status": 0}]
    report = checked(promises=promises, receipts=(), stored={})
    assert (report["in_doubt"], report["lost"], report["violations"]) == (1, 0, [])


@pytest.mark.parametrize(
    ("first", "second", "duplicated"),
    [((1, 500), (2, 200), 0), ((1, 500), (1, 200), 1), ((1, 200), (2, 200), 1)],
)
def test_a_retry_is_no_duplicate(first, second, duplicated):
    receipts = [
        RECEIPT._replace(attempt=attempt, status=status, began=began)
        for (attempt, status), began in ((first, 10.0), (second, 11.0))
    ]
    report = checked(receipts=tuple(receipts), stored={"e": STORED._replace(settled=2, done_at=11.5)})
    assert report["duplicated"] == duplicated
    assert report["resettled"] == (first[1] == 200)


def test_a_delivery_may_die_of_what_its_row_allows():
    dead = {"e": STORED._replace(state="dead", reason="crash_limit")}
    assert checked(stored=dead, limits=Limits(deaths=frozenset({"crash_limit"})))["violations"] == []
    assert checked(stored=dead, limits=Limits(deaths=frozenset({"gone"})))["violations"] == ["dead 1"]


def test_a_publish_that_hangs_is_a_violation():
    slow = [PROMISES[0], {**PROMISES[1], "took": 11.0}]
    report = checked(promises=slow, limits=Limits(publish_s=10.0))
    assert report["violations"] == ["a publish was answered after 11.0 s, allowed 10"]


def test_a_fault_of_which_nobody_knows_when_it_was_excuses_and_is_not_measured_by():
    report = checked(
        receipts=(RECEIPT._replace(ended=10.3), AGAIN),
        stored={"e": STORED._replace(done_at=12.6)},
        faults=(KILL._replace(is_exact=False),),
        limits=Limits(in_flight=0, redelivery_s=0.1),
    )
    assert (report["duplicated"], report["redelivery_s"], report["violations"]) == (1, None, [])
