"""An outbox is clear up to a LOOK that saw all, once all of that is dropped."""

from hookline.rules.outbox_clear import Clearing, after_drop, after_look, is_due


def test_an_empty_outbox_is_clear_up_to_the_look():
    assert after_look(Clearing(), began=10.0, numbers=[]) == Clearing(10.0)


def test_rows_have_to_be_dropped_first():
    clearing = after_look(Clearing(5.0), began=100.0, numbers=[1, 2, 3])
    assert clearing.clear_at == 5.0
    clearing = after_drop(clearing, [1, 2, 9])
    assert clearing.clear_at == 5.0
    assert after_drop(clearing, [3]) == Clearing(100.0)


def test_a_look_that_is_waited_for_is_not_replaced_at_once():
    waiting = after_look(Clearing(5.0), began=100.0, numbers=[1])
    assert after_look(waiting, began=110.0, numbers=[1, 2]) == waiting
    assert after_look(waiting, began=160.0, numbers=[2]).waits_for == {2}, (
        "a row was deleted by somebody else"
    )


def test_once_a_minute_is_enough():
    assert is_due(Clearing(), now=0.0)
    assert not is_due(Clearing(100.0), now=159.9)
    assert is_due(Clearing(100.0), now=160.0)
    assert not is_due(Clearing(100.0, 170.0, frozenset({1})), now=200.0)


def test_a_drop_that_nothing_waits_for_changes_nothing():
    assert after_drop(Clearing(5.0), [1]) == Clearing(5.0)
