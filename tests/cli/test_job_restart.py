"""A bulk replay continues after its server was killed."""

from collections.abc import Callable

import httpx
import pytest

from answering import eventually, receiving
from server_process import CEILING_S, ServerProcess

NUMBER = 1_200  # three steps


@pytest.fixture(params=["sqlite", "postgres"])
def database(request: pytest.FixtureRequest) -> str:
    if request.param == "sqlite":
        return "sqlite:///hooks.db"
    return str(request.getfixturevalue("postgres_url"))


def until(client: httpx.Client, path: str, holds: Callable[[dict[str, object]], bool]) -> dict[str, object]:
    def look() -> dict[str, object] | None:
        shown: dict[str, object] = client.get(path).json()
        return shown if holds(shown) else None

    return eventually(look, seconds=60)


def replays_of(client: httpx.Client) -> list[int]:
    found, page = [], client.get("/v1/deliveries?limit=200").json()
    while True:
        found += [each["replays"] for each in page["data"]]
        if page["next_cursor"] is None:
            return found
        page = client.get(f"/v1/deliveries?limit=200&cursor={page['next_cursor']}").json()


@pytest.mark.parametrize("failpoint", ["job.before=kill@2", "job.after=kill@2"])
def test_a_killed_server_leaves_a_job_that_the_next_one_finishes_and_each_letter_is_replayed_once(
    tmp_path, database, failpoint
):
    with receiving() as receiver:
        flags = ("--dev", "--database", database)
        soon = {"HOOKLINE_HEARTBEAT_S": "0.4", "HOOKLINE_TAKEOVER_S": "2"}
        with (
            ServerProcess(*flags, cwd=tmp_path, env={**soon, "HOOKLINE_FAILPOINTS": failpoint}) as server,
            httpx.Client(base_url=server.url, trust_env=False, timeout=30) as client,
        ):
            endpoint = client.post(
                "/v1/endpoints",
                json={"url": f"{receiver.url}/404/x", "events": ["*"], "max_in_flight": 50},
            ).json()["id"]
            events = [{"type": "order.paid", "payload": {"n": n}} for n in range(NUMBER)]
            for part in (events[:600], events[600:]):
                assert client.post("/v1/events/batch", json={"events": part}).status_code == 202
            path = "/v1/replays"
            dry = {"filter": {"endpoint_id": endpoint}, "dry_run": True}
            eventually(lambda: client.post(path, json=dry).json()["matched"] == NUMBER or None, seconds=60)
            client.patch(f"/v1/endpoints/{endpoint}", json={"url": f"{receiver.url}/200/x"})
            job = client.post(path, json={"filter": {"endpoint_id": endpoint}}).json()
            assert job["matched"] == NUMBER
            assert server.wait(CEILING_S) == -9
        with (
            ServerProcess(*flags, cwd=tmp_path, env=soon) as server,
            httpx.Client(base_url=server.url, trust_env=False, timeout=30) as client,
        ):
            done = until(client, f"{path}/{job['id']}", lambda shown: shown["state"] == "done")
            assert (done["done"], done["failed"]) == (NUMBER, 0)
            eventually(
                lambda: len({each.event_id for each in receiver.at("/200/x")}) == NUMBER or None, seconds=60
            )
            assert client.get("/v1/dead-letters?limit=1").json()["data"] == []
            assert replays_of(client) == [1] * NUMBER
            assert server.stop() == 0
