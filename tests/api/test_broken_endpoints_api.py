"""An endpoint whose stored row is broken is shown with what is wrong, changed and deleted like any other."""

import pytest

from hookline.ids import read
from planting import plant
from tests.api.conftest import Service

MANY = '{"base": 1, "factor": 2, "cap": null, "attempts": 1000000000, "jitter": "full"}'
BROKEN = [
    ("url", "http://[::1", {"url": "https://hooks.example.com/"}),
    ("headers", "no json", {"headers": {"x-a": "1"}}),
    ("retry", MANY, {"retry": None}),
    ("circuit", '{"cooldown_s": "long"}', {"circuit": {"cooldown_s": 5}}),
    ("timeout", float("inf"), {"timeout_ms": 5_000}),
    ("filter", "[[[", {"filter": "id"}),
]


@pytest.mark.parametrize(("column", "value", "patch"), BROKEN, ids=[column for column, _, _ in BROKEN])
def test_a_broken_endpoint_is_shown_listed_repaired_and_deleted(service: Service, column, value, patch):
    account = f"broken-{column}"
    broken, fine = service.create(account=account), service.create(account=account)
    plant(service.database, read("endpoint", broken["id"]), column, value, tell=True)
    published = service.publish(account=account)
    assert published["deliveries"] == 2
    [field] = patch
    shown = service.call("GET", f"/v1/endpoints/{broken['id']}").json()
    assert [each["field"] for each in shown["problems"]] == [field]
    listed = service.call("GET", f"/v1/endpoints?account={account}").json()["data"]
    assert [(each["id"], len(each["problems"])) for each in listed] == [(fine["id"], 0), (broken["id"], 1)]
    deliveries = service.call("GET", f"/v1/events/{published['id']}/deliveries")
    assert (deliveries.status_code, len(deliveries.json()["data"])) == (200, 2)
    repaired = service.call("PATCH", f"/v1/endpoints/{broken['id']}", patch)
    assert (repaired.status_code, repaired.json()["problems"]) == (200, [])
    plant(service.database, read("endpoint", broken["id"]), column, value, tell=True)
    assert service.call("DELETE", f"/v1/endpoints/{broken['id']}").status_code == 204
    assert service.call("GET", f"/v1/endpoints/{broken['id']}").status_code == 404


def test_a_patch_that_leaves_out_what_cannot_be_read_is_refused_and_names_it(service: Service):
    broken = service.create(account="unread")
    plant(service.database, read("endpoint", broken["id"]), "headers", "no json", tell=True)
    answer = service.call("PATCH", f"/v1/endpoints/{broken['id']}", {"description": "new"})
    assert (answer.status_code, answer.json()["errors"][0]["pointer"]) == (422, "/headers")
