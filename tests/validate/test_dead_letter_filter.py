"""Which dead letters a job's filter chooses."""

import pytest

from hookline.errors import Invalid
from hookline.ids import show
from hookline.model import DeliveryId, EndpointId, Reason, State
from hookline.store.contract import DeliveryFilter
from hookline.validate.dead_letter_filter import Chosen, chosen

ONE, TWO = DeliveryId(bytes(15) + b"\1"), DeliveryId(bytes(15) + b"\2")
ENDPOINT = EndpointId(bytes(15) + b"\3")


def test_a_filter_may_name_everything_that_a_list_is_filtered_by():
    said = {
        "account": "acme",
        "endpoint_id": show("endpoint", ENDPOINT),
        "event_type": "order.paid",
        "reason": "exhausted",
        "since": "1970-01-01T00:00:01Z",
        "until": "1970-01-01T01:00:02+01:00",
    }
    assert chosen(said) == Chosen(
        DeliveryFilter(
            state=State.DEAD,
            account="acme",
            endpoint_id=ENDPOINT,
            event_type="order.paid",
            reason=Reason.EXHAUSTED,
            died_since=1.0,
            died_until=2.0,
        )
    )


def test_ids_are_taken_once_each_and_in_their_own_order():
    said = {"ids": [show("delivery", TWO), show("delivery", ONE), show("delivery", TWO)]}
    assert chosen(said) == Chosen(DeliveryFilter(state=State.DEAD), (ONE, TWO))


def test_equal_choices_have_equal_digests():
    one, same = chosen({"account": "a", "reason": None}), chosen({"account": "a"})
    assert one.digest() == same.digest()
    others = [{"account": "b"}, {"event_type": "a"}, {"ids": [show("delivery", ONE)]}]
    assert len({one.digest(), *(chosen(other).digest() for other in others)}) == 4


@pytest.mark.parametrize(
    ("said", "code", "pointer", "words"),
    [
        (None, "invalid_field", "/filter", "account, endpoint_id, event_type, reason, since, until, or ids"),
        ([], "invalid_field", "/filter", "is an object"),
        ("all", "invalid_field", "/filter", "is an object"),
        ({}, "invalid_field", "/filter", "at least one of"),
        ({"account": None}, "invalid_field", "/filter", "at least one of"),
        ({"replayed": False}, "unknown_field", "/filter/replayed", "no longer a dead letter"),
        ({"replayed": True, "account": "a"}, "unknown_field", "/filter/replayed", "no longer a dead letter"),
        ({"endpoint": "x"}, "unknown_field", "/filter/endpoint", "Did you mean endpoint_id?"),
        ({"state": "dead"}, "unknown_field", "/filter/state", "Unknown field 'state'"),
        ({"account": "a b"}, "invalid_field", "/filter/account", "An account is"),
        ({"endpoint_id": "ep_x"}, "invalid_field", "/filter/endpoint_id", "not an endpoint id"),
        ({"endpoint_id": 5}, "invalid_field", "/filter/endpoint_id", "not an endpoint id"),
        ({"event_type": "order.*"}, "invalid_field", "/filter/event_type", "An event type is"),
        ({"reason": "exausted"}, "invalid_field", "/filter/reason", "Did you mean exhausted?"),
        (
            {"reason": "cancelled"},
            "invalid_field",
            "/filter/reason",
            "exhausted, rejected, gone, crash_limit",
        ),
        ({"reason": ["gone"]}, "invalid_field", "/filter/reason", "exhausted, rejected, gone, crash_limit"),
        ({"since": "2h"}, "invalid_field", "/filter/since", "RFC 3339"),
        ({"until": 5}, "invalid_field", "/filter/until", "RFC 3339"),
        ({"ids": []}, "invalid_field", "/filter/ids", "1 to 1,000 delivery ids"),
        ({"ids": "dlv_x"}, "invalid_field", "/filter/ids", "1 to 1,000 delivery ids"),
        ({"ids": ["dlv_x"]}, "invalid_field", "/filter/ids/0", "not a delivery id"),
        ({"ids": [show("delivery", ONE)] * 1_001}, "invalid_field", "/filter/ids", "1 to 1,000 delivery ids"),
        (
            {"ids": [show("delivery", ONE)], "account": "a"},
            "invalid_field",
            "/filter/ids",
            "cannot be combined",
        ),
    ],
)
def test_a_filter_that_will_not_do_is_refused(said, code, pointer, words):
    with pytest.raises(Invalid) as caught:
        chosen(said)
    assert (caught.value.code, caught.value.pointer) == (code, pointer)
    assert words in caught.value.detail
