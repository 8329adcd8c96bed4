"""What can be said about an account, and how is an endpoint tried out, over HTTP?"""

import socket
import time

import pytest

NOTHING = {"email": None, "webhook": None, "slack": None}


def test_an_account_that_nothing_was_said_about_is_there_all_the_same(service):
    service.create(account="silent")
    answer = service.call("GET", "/v1/accounts/silent")
    assert answer.json() == {"id": "silent", "notify": NOTHING, "endpoints": 1, "updated_at": None}


def test_what_is_said_replaces_what_was_said_before(service):
    notify = {"email": "ops@acme.example", "slack": "https://hooks.slack.com/services/T0/B0/xyz"}
    answer = service.call("PUT", "/v1/accounts/acme", {"notify": notify})
    assert answer.status_code == 200, answer.text
    assert answer.json()["notify"] == NOTHING | notify
    assert service.call("GET", "/v1/accounts/acme").json() == answer.json()
    service.call("PUT", "/v1/accounts/acme", {"notify": {"webhook": "https://acme.example/alerts"}})
    shown = service.call("GET", "/v1/accounts/acme").json()
    assert shown["notify"] == NOTHING | {"webhook": "https://acme.example/alerts"}
    assert service.call("PUT", "/v1/accounts/acme", {}).json()["notify"] == NOTHING


@pytest.mark.parametrize(
    ("body", "code", "pointer"),
    [
        ({"notify": []}, "invalid_field", "/notify"),
        ({"notify": {"mail": "a@b.example"}}, "unknown_field", "/notify/mail"),
        ({"notify": {"email": "nobody"}}, "invalid_field", "/notify/email"),
        ({"notify": {"email": "a@b.example\r\nbcc: c@d.example"}}, "invalid_field", "/notify/email"),
        ({"notify": {"email": "a" * 250 + "@b.example"}}, "invalid_field", "/notify/email"),
        ({"notify": {"email": 7}}, "invalid_field", "/notify/email"),
        ({"notify": {"webhook": "ftp://a.example"}}, "url_invalid", "/notify/webhook"),
        ({"notify": {"webhook": "http://10.0.0.1/"}}, "url_forbidden", "/notify/webhook"),
        ({"notify": {"slack": "https://hooks.slack.com.evil.example/x"}}, "invalid_field", "/notify/slack"),
        ({"notify": {"slack": "http://hooks.slack.com/x"}}, "invalid_field", "/notify/slack"),
        ({"notifiy": {}}, "unknown_field", "/notifiy"),
    ],
)
def test_what_will_not_do_is_refused_and_changes_nothing(service, body, code, pointer):
    service.call("PUT", "/v1/accounts/kept", {"notify": {"email": "kept@acme.example"}})
    answer = service.call("PUT", "/v1/accounts/kept", body)
    assert (answer.status_code, answer.json()["code"]) == (422, code), answer.text
    assert answer.json()["errors"][0]["pointer"] == pointer
    assert service.call("GET", "/v1/accounts/kept").json()["notify"]["email"] == "kept@acme.example"


def test_an_account_has_a_name_that_will_do(service):
    answer = service.call("GET", "/v1/accounts/a+b")
    assert (answer.status_code, answer.json()["code"]) == (404, "not_found")
    answer = service.call("PUT", "/v1/accounts/a+b", {})
    assert (answer.status_code, answer.json()["code"]) == (422, "invalid_field")


@pytest.fixture
def refusing_port():
    """Bound and not listening: it refuses, and nobody else gets it."""
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        yield closed.getsockname()[1]


def test_a_test_event_is_a_delivery_like_any_other(service, refusing_port):
    endpoint = service.create(url=f"http://127.0.0.1:{refusing_port}/", events=["order.*"], filter="total")
    answer = service.call("POST", f"/v1/endpoints/{endpoint['id']}/test")
    sent = answer.json()
    assert answer.status_code == 202, answer.text
    assert answer.headers["location"] == f"/v1/deliveries/{sent['id']}"
    give_up = time.monotonic() + 60
    while not (delivery := service.call("GET", f"/v1/deliveries/{sent['id']}").json())["attempts"]:
        assert time.monotonic() < give_up
    assert delivery["last_error"]["kind"] == "connect_refused"
    assert (delivery["endpoint_id"], delivery["event_type"]) == (endpoint["id"], "hookline.test")
    payload = service.call("GET", f"/v1/events/{sent['event_id']}").json()["payload"]
    assert payload["data"] == {"endpoint_id": endpoint["id"]}


@pytest.mark.parametrize(("verb", "state"), [("disable", "disabled"), ("pause", "paused")])
def test_an_endpoint_that_is_not_sent_to_cannot_be_tried_out(service, verb, state):
    endpoint = service.create()
    service.call("POST", f"/v1/endpoints/{endpoint['id']}/{verb}")
    answer = service.call("POST", f"/v1/endpoints/{endpoint['id']}/test")
    assert (answer.status_code, answer.json()["code"]) == (409, "wrong_state")
    assert state in answer.json()["detail"]
