"""What `/v1/ids/{prefix}` finds."""

import pytest

from hookline.ids import PREFIXES


def found(service, prefix):
    answer = service.call("GET", f"/v1/ids/{prefix}")
    assert answer.status_code == 200, answer.text
    return answer.json()


def test_an_id_is_found_by_its_beginning(service):
    id = service.create()["id"]
    assert found(service, id[:20]) == {"data": [id], "has_more": False}
    assert found(service, id) == {"data": [id], "has_more": False}
    assert found(service, "ep_00000000") == {"data": [], "has_more": False}


@pytest.mark.parametrize("noun", PREFIXES)
def test_the_ids_of_every_noun_are_looked_for_or_said_to_be_elsewhere(service, noun):
    answer = service.call("GET", f"/v1/ids/{PREFIXES[noun]}{'0' * 20}")
    if noun in ("attempt", "audit", "key"):
        assert (answer.status_code, answer.json()["code"]) == (422, "invalid_parameter")
        assert " lists them." in answer.json()["detail"]
    else:
        assert answer.json() == {"data": [], "has_more": False}


def test_an_ambiguous_beginning_shows_ten_candidates_in_order(service):
    for n in range(11):
        service.create(url=f"https://hooks.example.com/{n}", events=["many.endpoints"], account="many")
    event = service.publish("many.endpoints", account="many")
    assert event["deliveries"] == 11
    deliveries = service.call("GET", f"/v1/events/{event['id']}/deliveries?limit=200").json()["data"]
    prefix = "dlv_" + event["id"].removeprefix("evt_")[:22]
    ids = sorted(each["id"] for each in deliveries)
    assert found(service, prefix) == {"data": ids[:10], "has_more": True}
    assert found(service, ids[10]) == {"data": [ids[10]], "has_more": False}


@pytest.mark.parametrize(
    "prefix",
    ["ep_", "ep_0123456", "ep", "01234567", "foo_01234567", "ep_8123456789", "ep_w1234567"],
)
def test_what_no_id_begins_with_and_what_is_too_short_is_refused(service, prefix):
    answer = service.call("GET", f"/v1/ids/{prefix}")
    assert (answer.status_code, answer.json()["code"]) == (422, "invalid_parameter")
    assert "at least 8 characters" in answer.json()["detail"]
