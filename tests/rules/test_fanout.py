"""Which endpoints get an event."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hookline.model import Endpoint, EndpointId
from hookline.rules.fanout import Subscriptions, matches


def endpoint(number: int, *events: str, enabled: bool = True) -> Endpoint:
    return Endpoint(
        id=EndpointId(bytes([number]) * 16),
        account="default",
        url="https://hooks.example.com/",
        events=events,
        secret="whsec_",
        enabled=enabled,
        created_at=0.0,
        updated_at=0.0,
    )


@pytest.mark.parametrize(
    ("pattern", "event_type", "expected"),
    [
        ("order.paid", "order.paid", True),
        ("order.paid", "order.paid.late", False),
        ("order.paid", "order", False),
        ("order.*", "order.paid", True),
        ("order.*", "order.paid.late", True),
        ("order.*", "order", False),
        ("order.*", "orders.paid", False),
        ("order.paid.*", "order.paid", False),
        ("order.paid.*", "order.paid.late", True),
        ("*", "order", True),
        ("*", "order.paid.late", True),
    ],
)
def test_a_pattern_is_a_type_a_type_with_further_parts_or_everything(pattern, event_type, expected):
    assert matches(pattern, event_type) is expected


def test_an_endpoint_that_matches_twice_is_found_once():
    found = Subscriptions([endpoint(1, "order.*", "order.paid", "*")]).find("order.paid")
    assert found == (endpoint(1).id,)


def test_a_disabled_endpoint_is_not_found():
    assert Subscriptions([endpoint(1, "*", enabled=False)]).find("order.paid") == ()


parts = st.sampled_from(["a", "b", "ab"])
types = st.lists(parts, min_size=1, max_size=4).map(".".join)
patterns = st.one_of(types, types.map(lambda t: t + ".*"), st.just("*"))


@given(st.lists(st.lists(patterns, min_size=1, max_size=3), max_size=6), types)
def test_looking_up_finds_what_matching_each_endpoint_finds(subscribed, event_type):
    endpoints = [endpoint(n, *events) for n, events in enumerate(subscribed)]
    expected = tuple(e.id for e in endpoints if any(matches(p, event_type) for p in e.events))
    subscriptions = Subscriptions(endpoints)
    assert subscriptions.find(event_type) == expected
    assert subscriptions.find(event_type) == expected  # as remembered
