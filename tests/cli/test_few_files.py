"""A server that may open few files goes on accepting and delivering, and counts no failure against an endpoint."""

import asyncio
import sqlite3
import subprocess
import sys
from collections import Counter
from contextlib import closing

import httpx
import pytest

from server_process import COMMAND, ServerProcess, run

pytestmark = pytest.mark.anyio

FILES = 256
HOSTS = 300
EVENTS = 10
PUBLISHERS = 40
CEILING_S = 120.0


class ServerWithFewFiles(ServerProcess):
    def __init__(self, *arguments, files, **options):
        super().__init__(*arguments, **options)
        self._command = ["/bin/sh", "-c", f'ulimit -n {files}; exec "$@"', "sh", *self._command]


class Hosts:
    """One port on many addresses of this machine; keeps connections open, and counts the requests for each."""

    def __init__(self):
        self.arrived = Counter()
        self.changed = asyncio.Condition()
        self.most_open = self.open = 0

    async def serve(self, reader, writer):
        self.open += 1
        self.most_open = max(self.most_open, self.open)
        try:
            while True:
                head = (await reader.readuntil(b"\r\n\r\n")).decode().lower().split("\r\n")
                fields = dict(line.split(": ", 1) for line in head[1:] if line)
                await reader.readexactly(int(fields["content-length"]))
                writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n")
                async with self.changed:
                    self.arrived[fields["host"], fields["webhook-id"]] += 1
                    self.changed.notify_all()
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            self.open -= 1
            writer.close()


async def test_more_hosts_than_descriptors_cost_no_attempt_no_circuit_and_no_publish(tmp_path):
    hosts = Hosts()
    receiver = await asyncio.start_server(hosts.serve, "0.0.0.0", 0, backlog=1_000)
    port = receiver.sockets[0].getsockname()[1]
    database = tmp_path / "hooks.db"
    arguments = ["--dev", "--database", f"sqlite:///{database}"]
    with ServerWithFewFiles(*arguments, files=FILES, cwd=tmp_path) as server:
        async with httpx.AsyncClient(base_url=server.url, timeout=CEILING_S) as client:
            for n in range(HOSTS):
                url = f"http://127.1.{n // 250}.{n % 250 + 1}:{port}/"
                made = await client.post("/v1/endpoints", json={"url": url, "events": ["*"]})
                assert made.status_code == 201
        async with asyncio.TaskGroup() as publishers:
            answers = [publishers.create_task(publish(server.url, n)) for n in range(PUBLISHERS)]
        assert [status for each in answers for status in each.result()] == [202] * EVENTS
        async with asyncio.timeout(CEILING_S), hosts.changed:
            await hosts.changed.wait_for(lambda: len(hosts.arrived) == HOSTS * EVENTS)
        async with httpx.AsyncClient(base_url=server.url, timeout=CEILING_S) as client:
            metrics = (await client.get("/metrics")).text
        assert server.stop() == 0
    receiver.close()
    assert hosts.most_open <= FILES // 2 + 1, "half is kept for clients, the store and files"
    with closing(sqlite3.connect(database)) as found:
        assert found.execute("SELECT outcome, count(*) FROM attempts GROUP BY 1").fetchall() == [
            ("accepted", HOSTS * EVENTS)
        ]
        assert found.execute("SELECT count(*) FROM lanes WHERE circuit <> 'closed'").fetchone() == (0,)
    assert "hookline_sender_shortages_total 0" in metrics


async def publish(url: str, n: int) -> list[int]:
    """The answer to a publisher on its own connection; only the first ones publish, the others hold theirs open."""
    async with httpx.AsyncClient(base_url=url, timeout=CEILING_S) as client:
        if n >= EVENTS:
            assert (await client.get("/healthz")).status_code == 200
            return []
        return [(await client.post("/v1/events", json={"type": "order.paid", "payload": n})).status_code]


def test_the_limit_is_raised_as_far_as_it_goes(tmp_path):
    """Soft 64, hard 512: with 64 a server could not even start its work."""
    code = "from hookline.pipeline.sending import open_files; open_files.raise_limit(); print(open_files.allowed())"
    shell = ["/bin/sh", "-c", 'ulimit -Sn 64; ulimit -Hn 512; exec "$@"', "sh", sys.executable, "-c", code]

    assert subprocess.run(shell, capture_output=True, text=True, check=True).stdout == "512\n"


def test_the_doctor_says_how_many_requests_so_few_files_allow(tmp_path):

    shell = ["/bin/sh", "-c", f'ulimit -n {FILES}; exec "$@"', "sh", *COMMAND, "doctor"]
    said = subprocess.run(shell, capture_output=True, text=True, check=False, cwd=tmp_path).stdout
    assert (
        f"open files: {FILES} are allowed: {FILES // 2} requests can be in flight at once, not 1,000" in said
    )
    assert run("doctor", cwd=tmp_path).stdout.count("open files: ") == 1
