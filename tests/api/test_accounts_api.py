"""An account's settings are read and set over HTTP, and its channels are tested."""

import pytest

from answering import receiving

NOTHING = {"email": None, "webhook": None, "slack": None}


def put(service, account, **notify):
    answer = service.call("PUT", f"/v1/accounts/{account}", {"notify": notify})
    assert answer.status_code == 200, answer.text
    return answer.json()


def test_an_account_without_settings_exists_too(service):
    service.create(account="silent")
    answer = service.call("GET", "/v1/accounts/silent")
    assert answer.status_code == 200
    assert answer.json() == {"id": "silent", "notify": NOTHING, "endpoints": 1, "updated_at": None}


def test_a_put_replaces_all_settings(service):
    first = put(
        service, "acme", email="ops@acme.example", slack="https://hooks.slack.com/services/T0/B0/s3cret"
    )
    assert first == {
        "id": "acme",
        "notify": {"email": "ops@acme.example", "webhook": None, "slack": "https://hooks.slack.com/***"},
        "endpoints": 0,
        "updated_at": first["updated_at"],
    }
    assert service.call("GET", "/v1/accounts/acme").json() == first
    second = put(service, "acme", webhook="https://acme.example/alerts/s3cret", email=None)
    assert second["notify"] == NOTHING | {"webhook": "https://acme.example/***"}
    assert second["updated_at"] > first["updated_at"]
    assert service.call("GET", "/v1/accounts/acme").json() == second
    for body in ({"notify": None}, {}, None):
        put(service, "acme", email="ops@acme.example")
        cleared = service.call("PUT", "/v1/accounts/acme", body)
        assert (cleared.status_code, cleared.json()["notify"]) == (200, NOTHING)
        assert service.call("GET", "/v1/accounts/acme").json()["notify"] == NOTHING


def test_any_chat_that_may_be_sent_to_is_accepted_as_slack(service):
    chat = "http://127.0.0.1:8065/hooks/s3cret"  # a network that this server's settings allow
    assert put(service, "chatty", slack=chat)["notify"]["slack"] == "http://127.0.0.1:8065/***"


def test_a_url_is_nowhere_shown_whole(service):
    answers = [
        service.call("PUT", "/v1/accounts/quiet", {"notify": {"webhook": "https://a.example/s3cret?s3cret"}}),
        service.call("PUT", "/v1/accounts/quiet", {"notify": {"webhook": "https://a.example/***"}}),
        service.call("GET", "/v1/accounts/quiet"),
    ]
    assert [each.status_code for each in answers] == [200, 200, 200]
    for each in answers:
        assert each.json()["notify"]["webhook"] == "https://a.example/***"
        assert "s3cret" not in each.text


@pytest.mark.parametrize(
    ("body", "code", "pointer"),
    [
        ({"notify": []}, "invalid_field", "/notify"),
        ({"notify": "ops@acme.example"}, "invalid_field", "/notify"),
        ({"notify": {"mail": "a@b.example"}}, "unknown_field", "/notify/mail"),
        ({"notify": {"email": "nobody"}}, "invalid_field", "/notify/email"),
        ({"notify": {"email": "a@b.example\r\nbcc: c@d.example"}}, "invalid_field", "/notify/email"),
        ({"notify": {"email": "a@b.example, c@d.example"}}, "invalid_field", "/notify/email"),
        ({"notify": {"email": "a" * 250 + "@b.example"}}, "invalid_field", "/notify/email"),
        ({"notify": {"email": 7}}, "invalid_field", "/notify/email"),
        ({"notify": {"webhook": 7}}, "invalid_field", "/notify/webhook"),
        ({"notify": {"webhook": ""}}, "url_invalid", "/notify/webhook"),
        ({"notify": {"webhook": "ftp://a.example"}}, "url_invalid", "/notify/webhook"),
        ({"notify": {"webhook": "https://me:secret@a.example/"}}, "url_invalid", "/notify/webhook"),
        ({"notify": {"webhook": "http://10.0.0.1/"}}, "url_forbidden", "/notify/webhook"),
        ({"notify": {"webhook": "https://a.example/***"}}, "invalid_field", "/notify/webhook"),
        ({"notify": {"slack": ["https://hooks.slack.com/x"]}}, "invalid_field", "/notify/slack"),
        ({"notify": {"slack": "hooks.slack.com/x"}}, "url_invalid", "/notify/slack"),
        ({"notify": {"slack": "http://169.254.169.254/latest"}}, "url_forbidden", "/notify/slack"),
        ({"notify": {"slack": "https://hooks.slack.com:6379/"}}, "url_forbidden", "/notify/slack"),
        ({"notify": {"slack": "https://hooks.slack.com/***"}}, "invalid_field", "/notify/slack"),
        ({"notify": {"email": "new@acme.example", "slack": "x"}}, "url_invalid", "/notify/slack"),
        ({"notifiy": {}}, "unknown_field", "/notifiy"),
        ({"id": "kept"}, "unknown_field", "/id"),
    ],
)
def test_invalid_settings_are_refused_and_change_nothing(service, body, code, pointer):
    before = put(service, "kept", email="kept@acme.example")
    answer = service.call("PUT", "/v1/accounts/kept", body)
    assert (answer.status_code, answer.json()["code"]) == (422, code), answer.text
    assert answer.json()["errors"][0]["pointer"] == pointer
    assert service.call("GET", "/v1/accounts/kept").json() == before


def test_what_is_no_account_s_name_is_refused(service):
    for method, path in (("GET", "/v1/accounts/a+b"), ("POST", "/v1/accounts/a+b/test-alert")):
        answer = service.call(method, path)
        assert (answer.status_code, answer.json()["code"]) == (404, "not_found")
    answer = service.call("PUT", "/v1/accounts/a+b", {})
    assert (answer.status_code, answer.json()["code"]) == (422, "invalid_field")
    assert answer.json()["errors"][0]["pointer"] == "/account"


@pytest.mark.parametrize("account", ["untold", "hookline"])
def test_a_test_alert_without_a_channel_has_no_results(service, account):
    for body in (None, {}):
        answer = service.call("POST", f"/v1/accounts/{account}/test-alert", body)
        assert answer.status_code == 200, answer.text
        assert answer.json() == {"account": account, "results": []}
    refused = service.call("POST", f"/v1/accounts/{account}/test-alert", {"channel": "email"})
    assert (refused.status_code, refused.json()["code"]) == (422, "unknown_field")


def test_a_key_of_an_account_reads_sets_and_tests_its_own_alone(service):
    """The wall for every call is in test_access; this is that the settings behind it stay."""
    made = service.call("POST", "/v1/keys", {"scopes": ["admin"], "account": "a"}).json()["key"]
    bound = {"authorization": f"Bearer {made}"}
    before = put(service, "b", email="b@b.example")
    own = service.call("PUT", "/v1/accounts/a", {"notify": {"email": "a@a.example"}}, **bound)
    assert (own.status_code, own.json()["notify"]["email"]) == (200, "a@a.example")
    assert service.call("GET", "/v1/accounts/a", **bound).json() == own.json()
    for account in ("b", "hookline", "nobodys", "A"):
        for method, path, body in (
            ("GET", f"/v1/accounts/{account}", None),
            ("PUT", f"/v1/accounts/{account}", {"notify": {"email": "a@a.example"}}),
            ("POST", f"/v1/accounts/{account}/test-alert", None),
        ):
            refused = service.call(method, path, body, **bound)
            assert (refused.status_code, refused.json()["code"]) == (422, "account_mismatch")
            assert "b@b.example" not in refused.text
    assert service.call("GET", "/v1/accounts/b").json() == before


def test_channels_are_not_tested_again_at_once(service):
    """A test writes to whomever the key names."""
    with receiving() as receiver:
        put(service, "tested", webhook=f"{receiver.url}/200/alerts")
        path = "/v1/accounts/tested/test-alert"
        first = service.call("POST", path)
        assert first.status_code == 200, first.text
        assert [each["channel"] for each in first.json()["results"]] == ["webhook"]
    # On a machine that is slow enough the time is over before the next call, but not each time.
    answers = (service.call("POST", path) for _ in range(20))
    again = next(each for each in answers if each.status_code != 200)
    assert (again.status_code, again.json()["code"]) == (429, "rate_limited")
    assert 1 <= int(again.headers["retry-after"]) <= 5
    put(service, "untested", webhook=f"{receiver.url}/200/alerts")
    assert service.call("POST", "/v1/accounts/untested/test-alert").status_code == 200
