"""Short ids tell a list's ids apart, and are accepted instead of whole ones."""

from random import Random

import pytest

from hookline.cli.exits import USAGE, CommandError
from hookline.cli.printing.short_ids import ShortIds, looks_like_id, whole_id
from hookline.errors import NotFound
from hookline.ids import Ids, delivery_of, show
from hookline.testing.clock import ManualClock

made = Ids(ManualClock(1_700_000_000.0), Random(0))


class Found:
    """Answers which ids begin with a prefix, as a server that has these does."""

    def __init__(self, *ids):
        self.ids = sorted(ids)
        self.asked = []

    def get(self, path):
        self.asked.append(path)
        prefix = path.removeprefix("/v1/ids/")
        found = [each for each in self.ids if each.startswith(prefix)]
        return {"data": found[:10], "has_more": len(found) > 10}


def test_a_list_s_short_ids_differ_however_close_the_ids_were_made():
    endpoints = [show("endpoint", made.endpoint()) for _ in range(200)]
    short = ShortIds(endpoints)
    shown = [short.show(each) for each in endpoints]
    assert len(set(shown)) == 200
    assert all(whole.startswith(each) for whole, each in zip(endpoints, shown, strict=True))
    assert len({len(each) for each in shown}) == 1
    assert len(ShortIds(endpoints[:1]).show(endpoints[0])) == len("ep_") + 10


def test_deliveries_of_one_event_differ_by_their_place():
    event = made.event()
    deliveries = [show("delivery", delivery_of(event, place)) for place in (0, 1, 31, 32, 99_999)]
    short = ShortIds(deliveries)
    shown = [short.show(each) for each in deliveries]
    assert [each.partition(".")[2] for each in shown] == ["0", "1", "31", "32", "99999"]
    server = Found(show("event", event), *deliveries)
    assert [whole_id(server, "delivery", each) for each in shown] == deliveries


def test_what_lists_show_is_accepted_though_others_were_made_in_the_same_millisecond():
    events = [made.event() for _ in range(50)]
    deliveries = [show("delivery", delivery_of(event, n)) for event in events for n in range(3)]
    server = Found(*deliveries, *(show("event", each) for each in events))
    for delivery in deliveries:
        short = ShortIds([delivery]).show(delivery)  # alone in its list
        assert whole_id(server, "delivery", short) == delivery


def test_a_whole_id_is_not_looked_up():
    id = show("event", made.event())
    server = Found()
    assert whole_id(server, "event", id) == id
    assert whole_id(server, "delivery", id.replace("evt_", "dlv_") + ".2") == show(
        "delivery", delivery_of(bytes.fromhex(f"{int(id[4:], 32):032x}"), 2)
    )
    assert server.asked == []


def test_a_prefix_of_several_ids_is_refused_with_the_candidates():
    endpoints = [show("endpoint", made.endpoint()) for _ in range(12)]
    with pytest.raises(CommandError) as refused:
        whole_id(Found(*endpoints), "endpoint", endpoints[0][:11])
    assert refused.value.exit_status == USAGE
    assert str(refused.value).startswith(f"{endpoints[0][:11]} is ambiguous: {endpoints[0]}, {endpoints[1]}")
    assert "…" in str(refused.value)


def test_too_few_characters_are_refused():
    with pytest.raises(CommandError, match="at least 8 characters") as refused:
        whole_id(Found(), "endpoint", "ep_0123456")
    assert refused.value.exit_status == USAGE


@pytest.mark.parametrize(
    "text", ["", "ep_", "evt_01234567", "ep_0123456x", "ep_812345678", "ep_01234567.0", "ep_" + "0" * 27]
)
def test_what_no_endpoint_s_id_begins_with_is_not_found(text):
    assert not looks_like_id("endpoint", text)
    with pytest.raises(NotFound):
        whole_id(Found(), "endpoint", text)


def test_a_prefix_of_nothing_is_not_found():
    with pytest.raises(NotFound):
        whole_id(Found(), "endpoint", "ep_01234567")


def test_a_place_beyond_all_is_not_found():
    assert not looks_like_id("delivery", f"dlv_01234567.{32**4}")
