"""A cursor outlives the process that made it."""

import httpx

from server_process import ServerProcess


def test_a_cursor_outlives_a_restart_without_a_configured_key(tmp_path):
    arguments = ("--dev", "--database", f"sqlite:///{tmp_path}/hooks.db")
    with ServerProcess(*arguments, cwd=tmp_path) as first:
        made = [
            httpx.post(
                f"{first.url}/v1/events", json={"type": "a", "payload": n}, trust_env=False, timeout=30
            ).json()["id"]
            for n in range(3)
        ]
        page = httpx.get(f"{first.url}/v1/events?limit=2", trust_env=False, timeout=30).json()
        assert first.stop() == 0
    with ServerProcess(*arguments, cwd=tmp_path) as second:
        path = f"{second.url}/v1/events?limit=2&cursor={page['next_cursor']}"
        rest = httpx.get(path, trust_env=False, timeout=30).json()
    assert [event["id"] for event in page["data"] + rest["data"]] == made[::-1]


def test_a_cursor_is_worth_nothing_to_another_installation(tmp_path):
    cursors = []
    for name in ("one", "two"):
        database = f"sqlite:///{tmp_path}/{name}.db"
        with ServerProcess("--dev", "--database", database, cwd=tmp_path) as server:
            for n in range(2):
                httpx.post(
                    f"{server.url}/v1/events", json={"type": "a", "payload": n}, trust_env=False, timeout=30
                )
            cursors.append(
                httpx.get(f"{server.url}/v1/events?limit=1", trust_env=False, timeout=30).json()[
                    "next_cursor"
                ]
            )
            answer = httpx.get(
                f"{server.url}/v1/events?limit=1&cursor={cursors[0]}", trust_env=False, timeout=30
            )
            assert answer.status_code == (200 if name == "one" else 422)
    assert answer.json()["code"] == "invalid_cursor"
