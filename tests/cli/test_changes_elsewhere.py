"""The owner of a lane applies a change to its endpoint that another process accepted.

The owner has a delivery in memory, behind a request that is not answered. Nothing is published through it between the
change and the delivery: a publish alone would bring it up to date. Changes are followed in their order, so a last one,
to an endpoint that is sent to all the time, shows that the owner knows them all. That it knows a change after a second
is judged by the simulation (I23 in docs/simulation.md).
"""

from collections.abc import Iterator

import httpx
import pytest

from answering import Receiver, eventually, receiving
from server_process import ServerProcess

NAMES = ("moved", "paused", "deleted", "beside")


class Pair:
    """Two servers on one database; the first owns the lanes of an endpoint for each of the names.

    The second delivers nothing: on a busy machine it might otherwise take the lanes.
    """

    def __init__(self, owner: ServerProcess, other: ServerProcess, receiver: Receiver) -> None:
        self.receiver = receiver
        self._owner = httpx.Client(base_url=owner.url, trust_env=False, timeout=30)
        self._other = httpx.Client(base_url=other.url, trust_env=False, timeout=30)
        self._paths = {name: self._endpoint(name) for name in NAMES}
        for name in NAMES:
            self._publish(name)
        eventually(lambda: len(receiver.requests) == len(NAMES) or None)
        assert eventually(self._owned) == {owner.process.pid: len(NAMES), other.process.pid: 0}

    def close(self) -> None:
        self._owner.close()
        self._other.close()

    def _owned(self) -> dict[int, int] | None:
        found = {each["pid"]: each["lanes"] for each in _told(self._owner, "GET", "/v1/workers")["data"]}
        return found if sum(found.values()) == len(NAMES) else None

    def _endpoint(self, name: str) -> str:
        path = "/200/beside" if name == "beside" else f"/200/held/{name}"
        endpoint = {
            "url": self.receiver.url + path,
            "events": [name],
            "max_in_flight": 1,
            "timeout_ms": 60_000,
        }
        return f"/v1/endpoints/{_told(self._owner, 'POST', '/v1/endpoints', endpoint)['id']}"

    def _publish(self, type: str, *, by: httpx.Client | None = None) -> str:
        return str(_told(by or self._owner, "POST", "/v1/events", {"type": type, "payload": 1})["id"])

    def change_all(self) -> dict[str, str]:
        """Publish events that wait in the owner's memory, tell the other process about their endpoints, and let them go."""
        events = {name: self._publish(name) for name in NAMES}
        eventually(lambda: self.where(events["beside"]) or None)
        _told(self._other, "PATCH", self._paths["moved"], {"url": f"{self.receiver.url}/200/new"})
        _told(self._other, "POST", self._paths["paused"] + "/pause")
        _told(self._other, "DELETE", self._paths["deleted"])
        _told(self._other, "PATCH", self._paths["beside"], {"url": f"{self.receiver.url}/200/known"})
        eventually(self._is_known)
        self.receiver.hold.set()
        eventually(lambda: self.where(events["moved"]) or None)
        eventually(self._is_known)  # by then the owner has read every answer, and sent what it would send
        return events

    def _is_known(self) -> bool | None:
        event = self._publish("beside", by=self._other)
        return eventually(lambda: self.where(event) or None) == ["/200/known"] or None

    def where(self, event: str) -> list[str]:
        return [each.path for each in self.receiver.requests if each.event_id == event]


def _told(client: httpx.Client, method: str, path: str, body=None) -> dict:
    answer = client.request(method, path, json=body)
    assert answer.is_success, answer.text
    found: dict = answer.json() if answer.content else {}
    return found


@pytest.fixture(scope="module")
def pair(tmp_path_factory, postgres_server) -> Iterator[Pair]:
    folder = tmp_path_factory.mktemp("pair")
    quick = {"HOOKLINE_HEARTBEAT_S": "0.2"}
    with (
        receiving() as receiver,
        postgres_server.fresh_database() as url,
        ServerProcess("--dev", "--database", url, cwd=folder, env=quick) as owner,
        ServerProcess("--dev", "--no-worker", "--database", url, cwd=folder, env=quick) as other,
    ):
        pair = Pair(owner, other, receiver)
        yield pair
        pair.close()


@pytest.fixture(scope="module")
def events(pair) -> dict[str, str]:
    return pair.change_all()


def test_another_url_is_sent_to(pair, events):
    assert eventually(lambda: pair.where(events["moved"]) or None) == ["/200/new"]


def test_a_paused_endpoint_gets_nothing(pair, events):
    assert pair.where(events["paused"]) == []


def test_a_deleted_endpoint_gets_nothing(pair, events):
    assert pair.where(events["deleted"]) == []
