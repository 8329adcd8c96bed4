"""What `hookline health` prints."""

import json

from answering import eventually, receiving
from server_process import ServerProcess, run


def test_health_shows_what_waits_and_what_is_dead(tmp_path):
    with receiving() as receiver, ServerProcess("--dev", cwd=tmp_path) as server:
        env = {"HOOKLINE_URL": server.url}

        def hookline(*arguments):
            result = run(*arguments, cwd=tmp_path, env=env)
            assert result.returncode == 0, result.stderr
            return result.stdout

        hookline("endpoints", "create", f"{receiver.url}/404", "--account", "acme", "--event", "*")
        hookline("send", "order.paid", "{}", "--account", "acme")

        def counted():
            found = json.loads(hookline("health", "--account", "acme", "--json"))
            return found if found["dead"] == 1 else None

        assert eventually(counted)["failed_last_hour"] == 1

        def shown():
            lines = dict(line.split(maxsplit=1) for line in hookline("health").splitlines() if " " in line)
            assert lines["dead"] == "1"
            return lines["workers"] == "1 delivering" or None  # on a busy machine it is silent at times

        eventually(shown)
        assert run("health", "--account", "no such", cwd=tmp_path, env=env).returncode == 2
        assert server.stop() == 0


def test_a_server_that_cannot_be_reached_ends_it_with_3(tmp_path):
    assert run("health", cwd=tmp_path, env={"HOOKLINE_URL": "http://127.0.0.1:9"}).returncode == 3
