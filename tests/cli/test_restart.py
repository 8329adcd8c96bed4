"""The next server takes the lanes of one that was killed.

PostgreSQL only: an SQLite file has one process, and the next one knows that the last one died.
"""

import json

import httpx

from answering import eventually, receiving
from server_process import CEILING_S, ServerProcess

# At least a sixth of it is waited out; all of it only where the session did not show the death.
LEASE = {"HOOKLINE_TAKEOVER_S": "20"}


def test_the_death_of_a_server_that_was_killed_is_seen_by_its_session(tmp_path, postgres_url):
    flags = ("--dev", "--database", postgres_url)
    with receiving() as receiver:

        def publish(client: httpx.Client, number: int) -> None:
            answer = client.post("/v1/events", json={"type": "order.paid", "payload": number})
            assert answer.status_code == 202
            eventually(lambda: len(receiver.at("/200/x")) == number or None, seconds=CEILING_S)

        with (
            ServerProcess(*flags, cwd=tmp_path, env=LEASE) as server,
            httpx.Client(base_url=server.url, trust_env=False, timeout=30) as client,
        ):
            client.post("/v1/endpoints", json={"url": f"{receiver.url}/200/x", "events": ["*"]})
            publish(client, 1)  # the server owns its lane now
            server.kill()
        with (
            ServerProcess(*flags, cwd=tmp_path, env=LEASE) as server,
            httpx.Client(base_url=server.url, trust_env=False, timeout=30) as client,
        ):
            publish(client, 2)
            server.wait_for_line(r"worker\.dead")
            lines = [json.loads(line) for line in server.stderr.splitlines() if line.startswith("{")]
            assert [line["by"] for line in lines if line["event"] == "worker.dead"] == ["session"]
            assert server.stop() == 0
