"""What `/v1/alerts` and `hookline alerts` show, and to whom."""

import json

import anyio
import httpx
import pytest

from answering import eventually
from factories import NOW, an_alert
from hookline.ids import show
from hookline.model import AlertKind, EndpointId
from hookline.store.contract.measuring.alerts import AlertChanges
from hookline.store.sqlite.store import SqliteStore
from server_process import ServerProcess, run

ENDPOINT = EndpointId(b"\x01" * 16)
LONG = f"The circuit of {'x' * 60} is open: 5 failures in a row."


@pytest.fixture
def stored(tmp_path):
    """A database with three alerts, the first one resolved, at which nobody looks."""
    alerts = (
        an_alert(),
        an_alert(
            kind=AlertKind.CIRCUIT_OPEN,
            subject=ENDPOINT.hex(),
            endpoint_id=ENDPOINT,
            message=LONG,
            value=None,
            threshold=None,
        ),
        an_alert(kind=AlertKind.QUEUE_GROWING, subject="", account=None),
    )

    async def write():
        store = SqliteStore(str(tmp_path / "hookline.db"))
        await store.migrate()
        await store.open()
        await store.take_alert_turn(now=NOW, next_at=1e11)
        await store.write_alerts(AlertChanges(fire=alerts), now=NOW)
        await store.write_alerts(AlertChanges(resolve=(alerts[0].id,)), now=NOW + 60)
        await store.close()

    anyio.run(write)
    return [show("alert", each.id) for each in alerts]


@pytest.fixture
def server(stored, tmp_path):
    with ServerProcess("--dev", cwd=tmp_path) as server:
        yield server


def listed(server, query="", *, key=None):
    headers = {} if key is None else {"Authorization": f"Bearer {key}"}
    answer = httpx.get(f"{server.url}/v1/alerts{query}", headers=headers, timeout=60)
    assert answer.status_code == 200, answer.text
    return answer.json()


def test_alerts_are_shown_newest_first_and_by_what_is_asked(server, stored):
    first, second, third = stored
    whole = listed(server)
    assert [each["id"] for each in whole["data"]] == [third, second, first]
    assert whole["data"][1] == {
        "id": second,
        "kind": "circuit_open",
        "account": "acme",
        "endpoint_id": show("endpoint", ENDPOINT),
        "state": "firing",
        "since": whole["data"][1]["since"],
        "resolved_at": None,
        "value": None,
        "threshold": None,
        "message": LONG,
    }
    resolved = whole["data"][2]
    assert (resolved["state"], resolved["value"], resolved["threshold"]) == ("resolved", 101, 100)
    assert resolved["resolved_at"] > resolved["since"]
    for query, expected in (
        ("?state=firing", [third, second]),
        ("?state=resolved", [first]),
        ("?kind=queue_growing", [third]),
        ("?account=acme", [second, first]),
        (f"?endpoint_id={show('endpoint', ENDPOINT)}", [second]),
    ):
        assert [each["id"] for each in listed(server, query)["data"]] == expected, query
    page = listed(server, "?limit=2")
    rest = listed(server, f"?limit=2&cursor={page['next_cursor']}")
    assert [each["id"] for each in page["data"] + rest["data"]] == [third, second, first]


def test_a_key_of_an_account_sees_its_own_alone(server, stored):
    def key_of(account):
        made = httpx.post(f"{server.url}/v1/keys", json={"scopes": ["read"], "account": account}, timeout=60)
        return made.json()["key"]

    assert [each["id"] for each in listed(server, key=key_of("acme"))["data"]] == [stored[1], stored[0]]
    other = key_of("other")
    assert listed(server, key=other)["data"] == []
    refused = httpx.get(
        f"{server.url}/v1/alerts?account=acme", headers={"Authorization": f"Bearer {other}"}, timeout=60
    )
    assert refused.json()["code"] == "account_mismatch"


def test_the_command_prints_what_fires_in_80_columns(server, stored, tmp_path):
    def hookline(*arguments):
        result = run("alerts", *arguments, cwd=tmp_path, env={"HOOKLINE_URL": server.url, "COLUMNS": "80"})
        assert result.returncode == 0, result.stderr
        return result.stdout

    lines = hookline().splitlines()
    assert lines[0].split() == ["KIND", "STATE", "SINCE", "MESSAGE"]
    assert [line.split()[0] for line in lines[1:3]] == ["queue_growing", "circuit_open"]
    assert len(lines) == 3
    assert "dead_letters" in hookline("--all")
    found = json.loads(hookline("--all", "--kind", "dead_letters", "--json"))
    assert [each["id"] for each in found] == [stored[0]]


def test_the_status_shows_what_fires_for_all_or_for_one_account(server, stored):
    def status(query=""):
        answer = httpx.get(f"{server.url}/v1/status{query}", timeout=60).json()
        return None if answer["health"] is None else answer

    found = eventually(status)
    assert [each["id"] for each in found["alerts"]] == stored[1:]
    assert not found["healthy"]
    assert [each["id"] for each in eventually(lambda: status("?account=acme"))["alerts"]] == [stored[1]]
    shown = eventually(
        lambda: (
            (text := run("status", cwd=server._cwd, env={"HOOKLINE_URL": server.url}).stdout)
            and ("Alerts" in text or None)
            and text
        )
    )
    assert "(circuit_open, since" in " ".join(shown.split())
