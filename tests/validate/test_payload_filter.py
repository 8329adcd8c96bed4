"""Which filters are accepted, and which events they let pass."""

import contextlib
import time
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hookline.errors import Invalid
from hookline.validate.payload_filter import FUNCTIONS, MAX_LENGTH, SOON, STEPS, Budget, Filter, checked

ORDER = {
    "status": "paid",
    "total": 12.5,
    "customer": {"vip": False, "name": ""},
    "lines": [{"sku": "A", "n": 0}],
}


def passes(expression, payload=ORDER, size=1_000):
    return Filter(checked(expression)).passes(payload, Budget(size))


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("status == 'paid'", True),
        ("status == 'open'", False),
        ("total > `10` && status != 'open'", True),
        ("customer.vip", False),
        ("customer.name", False),
        ("missing", False),
        ("missing.deeper[0]", False),
        ("lines[?sku == 'B']", False),
        ("lines[?sku == 'A'] | [0]", True),
        ("lines[0].n", True),  # zero is true in JMESPath
        ("!missing", True),
        ('contains(`["paid", "sent"]`, status)', True),
        ("starts_with(status, 'pa')", True),
        ("length(lines) == `1`", True),
        ("`{}`", False),
        ("`[]`", False),
        ("@", True),
    ],
)
def test_an_event_passes_when_the_result_is_true_in_the_sense_of_jmespath(expression, expected):
    assert passes(expression) is expected


@pytest.mark.parametrize(
    "expression",
    [
        "starts_with(total, 'x')",  # not a text
        "missing_is_null.x || sum(customer)",
        "status < total",  # a text and a number
        "max_by(lines, &sku) > `1` || avg(customer)",
    ],
)
def test_a_filter_that_cannot_be_carried_out_lets_the_event_pass(expression):
    assert passes(expression)


@pytest.mark.parametrize(
    ("expression", "says"),
    [
        ("", "JMESPath"),
        ("  ", "JMESPath"),
        (7, "JMESPath"),
        ("status ==", "at character 10"),
        ("status = 'paid'", "at character 8"),
        ("a b", "at character 3"),
        ("a['x", "at character 3"),
        ("[?", "JMESPath"),
        ("a\0b", "JMESPath"),
        ("lenght(a) > `1`", "Did you mean length?"),
        ("to_string(@)", "no function to_string()"),
        ("join('', a)", "no function join()"),
        ("length(a, b)", "takes 1 arguments, not 2"),
        ("not_null()", "at least 1"),
        ("[a, b]", "cannot build values"),
        ("a.{b: c}", "cannot build values"),
        ("x" * (MAX_LENGTH + 1), "at most 1,000"),
        ("!" * 150 + "a", "nested"),
        ("(" * 450 + "a" + ")" * 450 + "|" + "!" * 90, "JMESPath"),
        ("status == `paid`", "Backticks contain JSON"),
        ("||".join("a" * 150), "nested"),
    ],
)
def test_a_filter_that_will_not_do_is_refused_with_the_position(expression, says):
    with pytest.raises(Invalid) as refused:
        checked(expression)
    assert refused.value.pointer == "/filter"
    assert says in refused.value.detail


def test_a_filter_that_takes_too_many_steps_is_given_up_and_lets_the_event_pass():
    payload = [[0] * 100] * 2_000
    expression = "[][?" + "||".join(["@==`1`"] * 60) + "]"
    began = time.process_time()
    assert passes(expression, payload, size=600_000)
    assert time.process_time() - began < 2.0  # in full it would take minutes
    budget = Budget(600_000)
    Filter(checked(expression)).passes(payload, budget)
    assert budget.left < 0


def test_comparing_large_values_whole_uses_up_the_budget():
    budget = Budget(1_000_000)
    assert Filter(checked("||".join(["a==b"] * 20))).passes({"a": [1], "b": [2]}, budget)
    assert budget.left < 0


LIST = {"lines": [{"n": n, "m": 2} for n in range(1_000)]}


@pytest.mark.parametrize(
    ("expression", "payload"),
    [
        ("length(lines[?n == `1` && m == `2`]) > `5`", LIST),
        ("length(lines[?n > `1` && m == `2`]) > `5`", LIST),
        ("starts_with(lines[?n > `1` && m == `2`], 'a')", LIST),  # cannot be carried out
        ("[][?" + "||".join(["@==`1`"] * 60) + "]", [[0] * 100] * 100),  # takes too many steps
    ],
)
def test_a_filter_that_takes_long_gives_the_same_answer_in_parts(expression, payload):
    filter = Filter(checked(expression))
    expected = filter.passes(payload, whole := Budget(1_000))
    budget = Budget(1_000)
    assert filter.passes_soon(payload, budget) is None
    assert budget.left == STEPS, "what was tried in vain does not count"
    trial, parts = filter.trial(payload, budget), [STEPS]
    while (answer := trial.go_on()) is None:
        parts.append(budget.left)
    trial.close()
    assert (answer, budget.left) == (expected, whole.left)
    assert max(a - b for a, b in pairwise([*parts, budget.left])) <= 2 * SOON
    assert Filter("status == 'open'").passes_soon(ORDER, Budget(1_000)) is False


def test_a_trial_that_is_given_up_ends():
    trial = Filter("length(lines[?n == `1` && m == `2`]) > `5`").trial(LIST, budget := Budget(1_000))
    assert trial.go_on() is None
    trial.close()
    assert not trial._thread.is_alive()
    assert Filter("status == 'open'").passes_soon(ORDER, budget) is False


def test_filters_of_one_event_share_its_budget():
    budget = Budget(1_000, steps=10)
    assert not Filter("status == 'open'").passes(ORDER, budget)
    assert not Filter("status == 'open'").passes(ORDER, budget)
    assert Filter("status == 'open'").passes(ORDER, budget)


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.sampled_from("abc"), inner, max_size=3),
    max_leaves=20,
)
NAMES = st.sampled_from(
    ["a", "b", "@", "`1`", "'x'", '`[1, "x"]`', "`null`", "*", "a[*]", "[0]", "[]", "[:2]"]
)


def _combined(inner):
    two = st.tuples(inner, inner)
    one_argument = [
        name for name in FUNCTIONS if name not in ("contains", "ends_with", "starts_with", "max_by", "min_by")
    ]
    return (
        st.tuples(inner, st.sampled_from(["==", "!=", "<", ">=", "&&", "||", "|"]), inner).map(" ".join)
        | inner.map("!({})".format)
        | inner.map("({})[?@]".format)
        | st.tuples(st.sampled_from(one_argument), inner).map(lambda each: f"{each[0]}({each[1]})")
        | two.map(lambda each: f"contains({each[0]}, {each[1]})")
        | two.map(lambda each: f"max_by({each[0]}, &{each[1]})")
    )


@given(expression=st.recursive(NAMES, _combined, max_leaves=6), payload=VALUES)
@settings(deadline=None, max_examples=500)
def test_whatever_the_filter_and_whatever_the_payload_the_answer_is_yes_or_no(expression, payload):
    try:
        filter = Filter(checked(expression))
    except Invalid:
        return
    assert filter.passes(payload, Budget(1_000)) in (True, False)


@given(expression=st.text(st.sampled_from("ab.[]()*?@&|!=<>`'\"\\ 01,{}:-"), max_size=30))
@settings(deadline=None, max_examples=500)
def test_whatever_is_offered_as_a_filter_is_taken_or_refused_and_nothing_else(expression):
    with contextlib.suppress(Invalid):
        Filter(checked(expression)).passes(ORDER, Budget(1_000))
