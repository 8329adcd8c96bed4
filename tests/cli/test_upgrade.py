"""Running processes survive a migration by the next version."""

import contextlib
import json
import subprocess
import threading
import time
from collections.abc import Iterator

import httpx
import psycopg
import pytest

from answering import eventually, receiving
from next_release import USER_AGENT, NextRelease
from server_process import COMMAND, ServerProcess, environment, run
from worker_process import WorkerProcess

QUICK = {"HOOKLINE_HEARTBEAT_S": "0.2", "HOOKLINE_TAKEOVER_S": "1"}
# The limits are half a second and one second. A machine that has other work may take many times as long, but no process
# waits for the whole migration: publishing goes on while that waits for a report.
LONGEST_WAIT_S = 20.0
LONGEST_FAILURE_S = 20.0
HOT = "('events', 'deliveries', 'attempts', 'lanes', 'workers', 'idempotency')"
WAITING = f"""
SELECT coalesce(max(date_part('epoch', clock_timestamp() - l.waitstart)), 0)
FROM pg_locks l JOIN pg_class c ON c.oid = l.relation JOIN pg_stat_activity a USING (pid)
WHERE NOT l.granted AND c.relname IN {HOT} AND a.application_name NOT IN ('hookline migrate', '')
"""


@pytest.fixture(params=["sqlite", "postgres"])
def database(request: pytest.FixtureRequest) -> str:
    return "sqlite:///hooks.db" if request.param == "sqlite" else str(request.getfixturevalue("postgres_url"))


class Load:
    """Publishes without a pause, to one server after the other, and keeps the answers."""

    def __init__(self) -> None:
        self.accepted: list[str] = []
        self.refused: list[tuple[float, int]] = []
        self._servers: list[str] = []
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._publish)

    def go_to(self, *servers: ServerProcess) -> None:
        self._servers = [server.url for server in servers]
        if not self._thread.ident:
            self._thread.start()

    def more(self, count: int) -> None:
        """Wait until so many more are accepted."""
        wanted = len(self.accepted) + count
        eventually(lambda: len(self.accepted) >= wanted or None)

    def __enter__(self) -> "Load":
        return self

    def __exit__(self, *_: object) -> None:
        self.end()

    def end(self) -> None:
        self._ended.set()
        if self._thread.ident:
            self._thread.join()

    def _publish(self) -> None:
        n = 0
        with httpx.Client(trust_env=False, timeout=30) as client:
            while not self._ended.is_set():
                n += 1
                event = {"type": f"t{n % 4}", "payload": n, "idempotency_key": f"key-{n}"}
                for server in self._servers[n % len(self._servers) :] + self._servers:
                    with contextlib.suppress(httpx.TransportError):
                        answer = client.post(f"{server}/v1/events", json=event)
                        if answer.status_code == 202:
                            self.accepted.append(answer.json()["id"])
                            break
                        self.refused.append((time.monotonic(), answer.status_code))

    @property
    def longest_failure_s(self) -> float:
        at = [moment for moment, _ in self.refused]
        return max(at) - min(at) if at else 0.0


def add_endpoints(server: ServerProcess, url: str) -> None:
    for n in range(4):
        endpoint = {"url": f"{url}/200/{n}", "events": [f"t{n}"]}
        assert (
            httpx.post(f"{server.url}/v1/endpoints", json=endpoint, trust_env=False, timeout=30).status_code
            == 201
        )


@contextlib.contextmanager
def watched_waits(url: str) -> Iterator[list[float]]:
    """Record how long processes wait for a lock on a hot table."""
    waits = [0.0]
    ended = threading.Event()

    def watch() -> None:
        with psycopg.connect(url, autocommit=True, application_name="") as connection:
            while not ended.wait(0.02):
                found = connection.execute(WAITING).fetchone()
                assert found is not None
                waits.append(float(found[0]))

    thread = threading.Thread(target=watch)
    thread.start()
    try:
        yield waits
    finally:
        ended.set()
        thread.join()


def test_both_versions_deliver_while_one_takes_over_from_the_other(tmp_path, postgres_url):
    later = NextRelease(tmp_path / "next")
    flags = ("--dev", "--database", postgres_url)
    with (
        receiving() as receiver,
        ServerProcess(*flags, cwd=tmp_path, env=QUICK) as old,
        WorkerProcess(*flags, cwd=tmp_path, env=QUICK) as old_worker,
        Load() as load,
        watched_waits(postgres_url) as waits,
    ):
        add_endpoints(old, receiver.url)
        load.go_to(old)
        load.more(50)
        # A report is open: the migration has to wait, and nobody must wait behind it.
        with psycopg.connect(postgres_url, options="-c search_path=hookline") as reader:
            reader.execute("SELECT count(*) FROM deliveries")
            migrating = subprocess.Popen(
                [*COMMAND, "migrate", "--database", postgres_url],
                cwd=tmp_path,
                env=environment(later.env()),
                stdout=subprocess.PIPE,
                text=True,
            )
            eventually(lambda: lock_waits(postgres_url) or None)
            load.more(50)
            assert migrating.poll() is None
        out, _ = migrating.communicate(timeout=60)
        assert (migrating.returncode, out.split()) == (0, later.names)
        load.more(50)
        with (
            ServerProcess(*flags, cwd=tmp_path, env=later.env(QUICK)) as new,
            WorkerProcess(*flags, cwd=tmp_path, env=later.env(QUICK)) as new_worker,
        ):
            # In the overlap the old processes keep the lanes they have; the others are free for all. The process
            # that accepts the first event for such a lane takes it: here the new one does.
            load.go_to(new)
            load.more(2)
            seen = len(receiver.requests)
            for n in range(4, 8):
                endpoint = {"url": f"{receiver.url}/200/{n}", "events": [f"t{n - 4}"]}
                answer = httpx.post(f"{new.url}/v1/endpoints", json=endpoint, trust_env=False, timeout=30)
                assert answer.status_code == 201

            def agents() -> set[str]:
                return {each.user_agent.split(" ")[0] for each in receiver.requests[seen:]}

            eventually(lambda: USER_AGENT in agents() or None)
            load.go_to(old, new)
            eventually(lambda: agents() == {"hookline/0.1", USER_AGENT} or None)
            assert (old.process.poll(), old_worker.process.poll()) == (None, None)
            load.go_to(new)
            assert (old.stop(), old_worker.stop()) == (0, 0)
            load.more(50)
            load.end()
            wanted = set(load.accepted)
            eventually(lambda: wanted <= {each.event_id for each in receiver.requests} or None)
            assert (new.stop(), new_worker.stop()) == (0, 0)
    assert load.longest_failure_s < LONGEST_FAILURE_S, load.refused
    assert max(waits) < LONGEST_WAIT_S


def lock_waits(url: str) -> int:
    with psycopg.connect(url) as connection:
        found = connection.execute(
            "SELECT count(*) FROM pg_locks l JOIN pg_stat_activity a USING (pid) "
            "WHERE NOT l.granted AND a.application_name = 'hookline migrate'"
        ).fetchone()
    assert found is not None
    return int(found[0])


def test_a_file_is_migrated_under_the_process_that_serves_it(tmp_path):
    later = NextRelease(tmp_path / "next")
    flags = ("--dev", "--database", "sqlite:///hooks.db")
    with receiving() as receiver, Load() as load:
        with ServerProcess(*flags, cwd=tmp_path) as old:
            add_endpoints(old, receiver.url)
            load.go_to(old)
            load.more(50)
            second = run("serve", *flags, "--port", "0", cwd=tmp_path, env=later.env())
            assert (second.returncode, "one process serves an SQLite file" in second.stderr) == (1, True)
            # A process that may not serve the database does not touch its schema either: only `migrate` does.
            migrated = run("migrate", *flags[1:], cwd=tmp_path, env=later.env())
            assert (migrated.returncode, migrated.stdout.split()) == (0, later.names)
            load.more(50)
            load.end()
            assert old.stop() == 0
        with ServerProcess(*flags, cwd=tmp_path, env=later.env()) as new:
            wanted = set(load.accepted)
            eventually(lambda: wanted <= {each.event_id for each in receiver.requests} or None)
            assert new.stop() == 0
    assert load.longest_failure_s < LONGEST_FAILURE_S, load.refused


def message(line: str) -> str:
    """What one line of the log says."""
    return json.loads(line)["message"]


def outgrown_by(name: str) -> str:
    return (
        f"The database was migrated by a later version (to {name}), which this one can no longer work with: "
        "upgrade hookline."
    )


def test_processes_that_a_migration_no_longer_serves_stop_with_one_line(tmp_path, database):
    later = NextRelease(tmp_path / "next", serves_this=False)
    flags = ("--dev", "--database", database)
    several = [] if database.startswith("sqlite") else [("--processes", "2")]
    with receiving() as receiver, contextlib.ExitStack() as stack:
        old = stack.enter_context(ServerProcess(*flags, cwd=tmp_path))
        parents = [stack.enter_context(ServerProcess(*flags, *each, cwd=tmp_path)) for each in several]
        add_endpoints(old, receiver.url)
        migrated = run("migrate", *flags[1:], cwd=tmp_path, env=later.env())
        assert (migrated.returncode, migrated.stdout.split()) == (0, later.names)
        assert old.wait() == 1
        # It may have looked between the two migrations.
        assert message(old.stderr.splitlines()[-1]) in {outgrown_by(name) for name in later.names}
        for parent in parents:
            assert parent.wait() == 1
            said = [line for line in parent.stderr.splitlines() if "upgrade hookline" in line]
            assert len(said) == 1, parent.stderr
        again = run("serve", *flags, "--port", "0", cwd=tmp_path)
        assert (again.returncode, message(again.stderr)) == (1, outgrown_by(later.names[-1]))
        with ServerProcess(*flags, cwd=tmp_path, env=later.env()) as new:
            event = httpx.post(
                f"{new.url}/v1/events", json={"type": "t1", "payload": 1}, trust_env=False, timeout=30
            ).json()
            eventually(lambda: [each.event_id for each in receiver.requests] == [event["id"]] or None)
            assert new.stop() == 0


def test_a_version_that_the_database_is_behind_of_waits_for_migrate(tmp_path, postgres_url):
    later = NextRelease(tmp_path / "next")
    flags = ("--dev", "--database", postgres_url)
    refused = run("serve", *flags, "--port", "0", cwd=tmp_path, env=later.env())
    missing = ", ".join(later.names)
    said = f"The database is behind this version (missing: {missing}): run `hookline migrate`."
    assert (refused.returncode, message(refused.stderr)) == (1, said)


def test_a_migration_that_is_killed_at_any_step_can_be_run_again(tmp_path, postgres_server):
    later = NextRelease(tmp_path / "next")
    for step in range(1, 8):
        planted = {"HOOKLINE_FAILPOINTS": f"migrate.step=kill@{step}"}
        with postgres_server.fresh_database() as url:
            killed = run("migrate", "--database", url, cwd=tmp_path, env=later.env(planted))
            if killed.returncode == 0:
                break
            assert killed.returncode == -9, killed.stderr
            again = run("migrate", "--database", url, cwd=tmp_path, env=later.env())
            assert again.returncode == 0, again.stderr
            assert (
                run("migrate", "--database", url, cwd=tmp_path, env=later.env()).stderr
                == "The schema is up to date.\n"
            )
    assert step == 7  # six: before and inside each migration, after each statement that stands by itself
