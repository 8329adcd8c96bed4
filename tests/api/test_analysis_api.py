"""Dead letters are analysed over HTTP."""

import pytest

from answering import eventually, receiving

WINDOWS = ("15m", "1h", "24h", "7d", "90d")
FIELDS = [
    "endpoint_id",
    "url",
    "count",
    "error",
    "status",
    "first_at",
    "last_at",
    "mean_attempts",
    "pattern",
    "advice",
]


def analysed(service, query="", **headers):
    answer = service.call("GET", f"/v1/dead-letters/analysis{query}", **headers)
    assert answer.status_code == 200, answer.text
    return answer.json()


@pytest.fixture
def letters(service):
    """Three refused letters of an account, one of another; each endpoint's id by its account."""
    with receiving() as receiver:
        made = {}
        for account, path, number in (("analysed.one", "/422", 3), ("analysed.two", "/401", 1)):
            made[account] = service.create(account=account, url=receiver.url + path, events=["*"])["id"]
            for _ in range(number):
                service.publish(account=account)

            def look(account=account, number=number):
                found = analysed(service, f"?account={account}")["data"]
                return [each["count"] for each in found] == [number] or None

            eventually(look)
        yield made
        for id in made.values():  # the server is shared: the next test begins without them
            service.call("DELETE", f"/v1/endpoints/{id}")
            job = service.call("POST", "/v1/discards", {"filter": {"endpoint_id": id}}).json()
            path = f"/v1/discards/{job['id']}"
            eventually(lambda path=path: service.call("GET", path).json()["state"] == "done" or None)


def test_each_endpoint_has_its_figures_its_pattern_and_advice(service, letters):
    shown = analysed(service)
    assert list(shown) == ["window", "data"]
    assert shown["window"] == "24h"
    mine = [each for each in shown["data"] if each["endpoint_id"] in letters.values()]
    assert [list(each) for each in mine] == [FIELDS, FIELDS]
    (refused, credentials) = mine
    assert (refused["count"], refused["error"], refused["status"]) == (3, "http_4xx", 422)
    assert (refused["pattern"], refused["mean_attempts"]) == ("rejected", 1.0)
    assert refused["url"].endswith("/422")
    assert refused["first_at"] <= refused["last_at"]
    assert "`hookline dead show dlv_" in refused["advice"]
    assert (credentials["count"], credentials["status"], credentials["pattern"]) == (1, 401, "credentials")


@pytest.mark.parametrize("window", WINDOWS)
def test_a_window_is_shown_as_it_was_asked_for(service, letters, window):
    shown = analysed(service, f"?window={window}&endpoint_id={letters['analysed.one']}")
    assert shown["window"] == window
    assert [each["count"] for each in shown["data"]] == [3]


def test_what_is_replayed_or_discarded_is_a_dead_letter_no_more(service, letters):
    query = f"?endpoint_id={letters['analysed.one']}"
    [letter, *_] = service.call("GET", f"/v1/dead-letters{query}").json()["data"]
    assert service.call("POST", f"/v1/dead-letters/{letter['id']}/discard").status_code == 200
    eventually(lambda: analysed(service, query)["data"][0]["count"] == 2 or None)


def test_a_key_that_is_bound_to_an_account_sees_its_own_only(service, letters):
    key = service.call("POST", "/v1/keys", {"scopes": ["read"], "account": "analysed.one"}).json()["key"]
    bound = {"authorization": f"Bearer {key}"}
    for query in ("", "?account=analysed.one"):
        found = analysed(service, query, **bound)["data"]
        assert [each["endpoint_id"] for each in found] == [letters["analysed.one"]]
    assert analysed(service, f"?endpoint_id={letters['analysed.two']}", **bound)["data"] == []
    answer = service.call("GET", "/v1/dead-letters/analysis?account=analysed.two", **bound)
    assert (answer.status_code, answer.json()["code"]) == (422, "account_mismatch")


def test_an_account_or_an_endpoint_that_nobody_knows_has_none(service):
    for query in ("?account=nobody", f"?endpoint_id=ep_{'0' * 26}"):
        assert analysed(service, query) == {"window": "24h", "data": []}
