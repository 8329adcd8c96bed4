"""The API and the metrics account for every accepted delivery."""

import time
from datetime import datetime

from answering import eventually, receiving
from scraping import figures

STATES = ("pending", "delivered", "dead", "cancelled", "pruned")


def conserved(service, query="", **headers):
    answer = service.call("GET", f"/v1/conservation{query}", **headers)
    assert answer.status_code == 200, answer.text
    return answer.json()


def once_counted(service, query, **expected):
    """Wait for a new count: figures may be some seconds old."""

    def look():
        shown = conserved(service, query)
        return shown if expected.items() <= shown.items() else None

    return eventually(look)


def metrics(service):
    answer = service.call("GET", "/metrics")
    assert answer.status_code == 200
    return figures(answer.text)


def test_where_an_accounts_deliveries_are_and_where_all_of_them_are(service):
    with receiving() as receiver:
        for account, path in (("acme.one", "/200"), ("acme.one", "/404"), ("acme.two", "/200")):
            service.create(account=account, url=receiver.url + path, events=["a.*"])
        for account in ("acme.one", "acme.one", "acme.two"):
            service.publish("a.b", account=account)
        service.publish("no.subscriber", account="acme.one")
        one = once_counted(service, "?account=acme.one", accepted=4, delivered=2, dead=2)
        assert {state: one[state] for state in ("pending", "cancelled", "pruned")} == {
            "pending": 0,
            "cancelled": 0,
            "pruned": 0,
        }
        assert one["account"] == "acme.one"
        assert datetime.fromisoformat(one["as_of"]).timestamp() < time.time() + 60
        once_counted(service, "?account=acme.two", accepted=1, delivered=1)
        total = once_counted(service, "", accepted=5, delivered=3, dead=2)
        assert total["account"] is None
        assert total["accepted"] == sum(total[state] for state in STATES)
        nobody = conserved(service, "?account=nobody")
        assert (nobody["accepted"], nobody["account"]) == (0, "nobody")

        def counted():
            found = metrics(service)
            return found if found["hookline_accepted_deliveries"] == 5 else None

        found = eventually(counted)
        assert {state: found[f'hookline_deliveries{{state="{state}"}}'] for state in STATES} == {
            state: total[state] for state in STATES
        }
        assert found["hookline_oldest_due_age_seconds"] == 0
        assert found['hookline_set_aside_rows_total{kind="settlement"}'] == 0
        assert abs(found["hookline_deliveries_counted_at_seconds"] - time.time()) < 60
        assert "acme" not in service.call("GET", "/metrics").text


def test_what_the_database_keeps_in_vain_is_among_the_metrics(service):
    found = metrics(service)
    if service.database.startswith("sqlite"):
        assert found["hookline_store_log_bytes"] > 0
        return
    assert found["hookline_store_oldest_snapshot_age_seconds"] >= 0
    assert found["hookline_store_oldest_snapshot_age_transactions"] >= 0
    assert {name for name in found if "dead_rows" in name} == {
        f'hookline_store_dead_rows{{table="{table}"}}'
        for table in ("attempts", "deliveries", "events", "lanes", "workers")
    }


def test_a_key_of_one_account_sees_its_own_figures_alone(service):
    key = service.call("POST", "/v1/keys", {"scopes": ["read"], "account": "green"}).json()["key"]
    bearer = {"authorization": f"Bearer {key}"}
    shown = conserved(service, **bearer)
    assert (shown["account"], shown["accepted"]) == ("green", 0)
    refused = service.call("GET", "/v1/conservation?account=acme.one", **bearer)
    assert (refused.status_code, refused.json()["code"]) == (422, "account_mismatch")
    assert service.call("GET", "/metrics", **bearer).status_code == 403


def test_a_parameter_that_is_none_is_refused(service):
    answer = service.call("GET", "/v1/conservation?acount=red")
    assert (answer.status_code, answer.json()["code"]) == (422, "unknown_parameter")
    answer = service.call("GET", "/v1/conservation?account=a%20b")
    assert (answer.status_code, answer.json()["code"]) == (422, "invalid_parameter")
