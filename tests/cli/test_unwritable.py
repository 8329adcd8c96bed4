"""A server notices when its SQLite file can no longer be written."""

import resource

import httpx

from answering import eventually
from server_process import ServerProcess


def test_a_file_that_cannot_be_written_any_more_makes_a_server_not_ready(tmp_path):
    env = {"HOOKLINE_HEARTBEAT_S": "0.2"}
    with (
        ServerProcess("--dev", cwd=tmp_path, env=env) as server,
        httpx.Client(base_url=server.url, trust_env=False, timeout=30) as client,
    ):
        body = {"type": "a", "payload": 1}
        eventually(lambda: client.get("/readyz").status_code == 200 or None)
        pid, before = server.process.pid, resource.prlimit(server.process.pid, resource.RLIMIT_FSIZE)
        resource.prlimit(pid, resource.RLIMIT_FSIZE, (0, before[1]))  # each write to a file fails from now on
        assert client.post("/v1/events", json=body).status_code == 503
        eventually(lambda: client.get("/readyz").status_code == 503 or None)
        assert client.get("/healthz").status_code == 200
        resource.prlimit(pid, resource.RLIMIT_FSIZE, before)
        eventually(lambda: client.get("/readyz").status_code == 200 or None)
        assert client.post("/v1/events", json=body).status_code == 202
        assert server.stop() == 0
