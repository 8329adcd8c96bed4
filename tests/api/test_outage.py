"""What the API answers while the database is away."""

import time

import httpx

from server_process import ServerProcess


def test_while_the_database_is_away_calls_are_refused_for_now_and_then_go_on(mortal_server, tmp_path):
    with (
        mortal_server.fresh_database() as database,
        ServerProcess(
            "--dev", "--database", database, cwd=tmp_path, env={"HOOKLINE_DRAIN_S": "60"}
        ) as process,
        httpx.Client(base_url=process.url, timeout=30, trust_env=False) as client,
    ):
        body = {"type": "a", "payload": 1, "idempotency_key": "k"}
        first = client.post("/v1/events", json=body)
        assert first.status_code == 202
        mortal_server.kill()
        for answer in (client.post("/v1/events", json=body), client.get("/v1/endpoints")):
            assert (answer.status_code, answer.json()["code"]) == (503, "unavailable")
            assert int(answer.headers["retry-after"]) >= 1
        deadline = time.monotonic() + 120
        while client.get("/readyz").status_code != 503:
            assert time.monotonic() < deadline
        assert client.get("/healthz").status_code == 200
        mortal_server.start()
        deadline = time.monotonic() + 120
        while (again := client.post("/v1/events", json=body)).status_code != 202 or client.get(
            "/readyz"
        ).status_code != 200:
            assert time.monotonic() < deadline
            time.sleep(0.05)
        assert again.json() == {**first.json(), "duplicate": True}
        assert process.stop() == 0
