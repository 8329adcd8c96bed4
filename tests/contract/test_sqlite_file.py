"""Which files the SQLite store uses, and which it refuses."""

import os
import re
import shutil
import signal
import sqlite3
import stat
import subprocess
import sys
import tempfile
from contextlib import closing
from pathlib import Path

import pytest

from factories import NOW, a_publication
from hookline.clock import SystemClock
from hookline.errors import SchemaMissing, StorageFull, StoreRefused, StoreUnavailable
from hookline.model import State
from hookline.store.contract import DeliveryFilter, Load, Want
from hookline.store.sqlite.driver.connection import connect
from hookline.store.sqlite.store import SqliteStore
from scenes import a_lane_in, a_worker_in, accepted, published

pytestmark = pytest.mark.anyio


@pytest.fixture
async def file_store(sqlite_path):
    store = SqliteStore(str(sqlite_path))
    await store.open()
    yield store
    await store.close()


SERVE = """
import asyncio, sys
from hookline.store.sqlite.store import SqliteStore
async def main():
    await SqliteStore(sys.argv[1]).open()
    print("serving", flush=True)
    await asyncio.Event().wait()
asyncio.run(main())
"""


def a_serving_process(path):
    process = subprocess.Popen([sys.executable, "-c", SERVE, str(path)], stdout=subprocess.PIPE, text=True)
    assert process.stdout.readline() == "serving\n"
    return process


async def test_a_store_that_is_opened_twice_goes_on_serving_the_file(file_store, sqlite_path):
    with pytest.raises(StoreRefused, match=r"This process serves .*hookline\.db already"):
        await file_store.open()
    with pytest.raises(StoreRefused, match=rf"pid {os.getpid()}\) serves"):
        await SqliteStore(str(sqlite_path)).open()


async def test_a_second_serving_process_is_told_who_serves_the_file(sqlite_path):
    process = a_serving_process(sqlite_path)
    try:
        with pytest.raises(StoreRefused, match=rf"pid {process.pid}\) serves .*hookline\.db"):
            await SqliteStore(str(sqlite_path)).open()
    finally:
        process.kill()
        process.communicate()


@pytest.mark.parametrize("link", [os.symlink, os.link], ids=["symbolic", "hard"])
async def test_it_is_one_file_under_whatever_name(sqlite_path, link):
    other_name = sqlite_path.with_name("other.db")
    link(sqlite_path, other_name)
    process = a_serving_process(sqlite_path)
    try:
        with pytest.raises(StoreRefused, match=r"serves .*other\.db.*one process serves an SQLite file"):
            await SqliteStore(str(other_name)).open()
    finally:
        process.kill()
        process.communicate()


def moved_away(path: Path) -> None:
    path.rename(path.with_name("elsewhere.db"))


def replaced(path: Path) -> None:
    copy = path.with_name("copy.db")
    shutil.copy(path, copy)
    copy.rename(path)


@pytest.mark.parametrize("change", [moved_away, replaced])
async def test_nothing_is_accepted_into_a_file_that_nobody_will_read(file_store, sqlite_path, change):
    await a_lane_in(file_store)
    change(sqlite_path)
    with pytest.raises(StoreRefused, match="removed or replaced while it was open"):
        await file_store.accept([a_publication()], catalogue=1, now=NOW)
    with pytest.raises(StoreRefused, match="removed or replaced"):
        await file_store.pulse(seen=0)


async def test_a_killed_process_leaves_the_file_to_the_next(sqlite_path):
    process = a_serving_process(sqlite_path)
    process.send_signal(signal.SIGKILL)
    process.communicate()
    store = SqliteStore(str(sqlite_path))
    await store.open()
    await store.close()


async def test_a_process_that_does_not_serve_may_write_beside(file_store, sqlite_path):
    other = SqliteStore(str(sqlite_path))
    await other.open(serve=False)
    lane = await a_lane_in(other)
    await other.close()
    assert [endpoint.id for endpoint in (await file_store.catalogue()).endpoints] == [lane]


async def test_a_closed_store_can_be_served_by_another_and_answers_no_more(sqlite_path):
    store = SqliteStore(str(sqlite_path))
    await store.open()
    await store.close()
    await store.close()
    with pytest.raises(StoreUnavailable, match="closed"):
        await store.counts()
    other = SqliteStore(str(sqlite_path))
    await other.open()
    await other.close()


async def test_a_store_that_was_never_opened_says_so(sqlite_path):
    with pytest.raises(StoreUnavailable, match="not open"):
        await SqliteStore(str(sqlite_path)).counts()


async def test_every_connection_is_durable_at_commit(sqlite_path):
    with closing(connect(str(sqlite_path))) as connection:
        assert connection.execute("PRAGMA journal_mode").fetchone() == ("wal",)
        assert connection.execute("PRAGMA synchronous").fetchone() == (2,)


async def test_a_missing_file_is_not_made_by_opening_it(tmp_path):
    path = tmp_path / "none.db"
    with pytest.raises(SchemaMissing, match="run `hookline migrate`"):
        await SqliteStore(str(path)).open()
    assert not path.exists()


async def test_a_missing_directory_is_named(tmp_path):
    store = SqliteStore(str(tmp_path / "nowhere" / "x.db"))
    with pytest.raises(StoreRefused, match=r"no directory .*nowhere"):
        await store.migrate()


async def test_a_directory_is_refused(tmp_path):
    with pytest.raises(StoreRefused, match="is a directory"):
        await SqliteStore(str(tmp_path)).migrate()


async def test_a_file_that_is_no_database_is_refused(tmp_path):
    path = tmp_path / "letter.txt"
    path.write_text("Dear reader, " * 100)
    with pytest.raises(StoreRefused, match="not a database"):
        await SqliteStore(str(path)).open()
    assert path.read_text().startswith("Dear reader")


OPEN = """
import asyncio, os, sys
from hookline.store.sqlite.store import SqliteStore
from hookline.errors import StoreRefused
if os.geteuid() == 0:  # root may write anything
    os.setgid(65534)
    os.setuid(65534)
try:
    asyncio.run(SqliteStore(sys.argv[1]).open())
except StoreRefused as refusal:
    print(refusal)
"""


@pytest.mark.parametrize(
    ("file_mode", "folder_mode", "culprit"),
    [(0o444, 0o777, "the file is not writable"), (0o666, 0o555, r"the directory .* is not writable")],
)
def test_what_may_not_be_written_is_refused_in_one_line(migrated_file, file_mode, folder_mode, culprit):
    with tempfile.TemporaryDirectory() as folder:  # pytest's own are closed to other users
        path = Path(shutil.copy(migrated_file, folder))
        path.chmod(file_mode)
        Path(folder).chmod(folder_mode)
        command = [sys.executable, "-c", OPEN, str(path)]
        run = subprocess.run(command, capture_output=True, text=True, timeout=60)
        Path(folder).chmod(0o700)
    assert re.fullmatch(rf"Cannot open {path}: {culprit}\.\n", run.stdout), run


async def test_a_database_in_memory_is_refused():
    with pytest.raises(StoreRefused):
        await SqliteStore(":memory:").open()


async def test_a_path_with_odd_characters_works(tmp_path):
    path = tmp_path / "a b?c#d%41é.db"
    store = SqliteStore(str(path))
    await store.migrate()
    await store.open()
    await store.close()
    assert path.exists()


async def test_a_full_disk_is_told_apart_and_everything_goes_on_afterwards(file_store):
    """SQLite's own page limit stands in for the disk's: the same error comes from the same place."""
    lane = await a_lane_in(file_store)
    (pages,) = await file_store._write(lambda c: c.execute("PRAGMA page_count").fetchone())
    await file_store._write(lambda c: c.execute(f"PRAGMA max_page_count = {pages + 2}").fetchone())
    with pytest.raises(StorageFull):
        await accepted(file_store, a_publication(lane, payload=b"x" * 100_000))
    assert await file_store.load([Want(lane, 9, 9)], known=[], now=NOW) == []
    await file_store._write(lambda c: c.execute("PRAGMA max_page_count = 1000000").fetchone())
    await published(file_store, lane)
    assert (await file_store.counts())[State.PENDING] == 1


async def test_another_process_that_keeps_the_file_locked_makes_the_store_unavailable(
    file_store, sqlite_path
):
    await file_store._write(lambda c: c.execute("PRAGMA busy_timeout = 1").fetchone())
    with closing(sqlite3.connect(sqlite_path, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(StoreUnavailable, match="locked"):
            await a_lane_in(file_store)
        await file_store.counts()
    await a_lane_in(file_store)


async def test_own_writes_are_not_foreign_and_others_are(file_store, sqlite_path):
    await file_store.pulse(seen=0)
    worker = await a_worker_in(file_store)
    await file_store.beat(worker, Load(), now=NOW)
    assert not (await file_store.pulse(seen=0)).foreign
    with closing(sqlite3.connect(sqlite_path)) as other, other:
        other.execute("UPDATE workers SET pid = 7")
    assert (await file_store.pulse(seen=0)).foreign
    assert not (await file_store.pulse(seen=0)).foreign


class SetClock(SystemClock):
    """A machine whose clocks the test sets."""

    def __init__(self, wall):
        self.wall_now, self.monotonic_now = wall, 0.0
        super().__init__()

    def wall(self):
        return self.wall_now

    def monotonic(self):
        return self.monotonic_now


async def time_of(store):
    return (await store.pulse(seen=0)).now


async def test_the_files_time_goes_on_by_the_monotonic_clock(sqlite_path):
    clock = SetClock(NOW)
    store = SqliteStore(str(sqlite_path), clock=clock)
    await store.open()
    clock.monotonic_now += 5
    clock.wall_now += 3600
    assert await time_of(store) == NOW + 5
    clock.wall_now -= 86_400
    assert await time_of(store) == NOW + 5
    await store.close()


async def opened_again(path, clock):
    """A file whose last run had a clock at NOW + 100."""
    store = SqliteStore(str(path), clock=SetClock(NOW))
    await store.open()
    await store.beat(await a_worker_in(store), Load(), now=NOW + 100)
    await store.close()
    again = SqliteStore(str(path), clock=clock)
    await again.open()
    return again


async def test_the_files_time_is_never_behind_what_a_beat_has_written(sqlite_path):
    clock = SetClock(NOW + 90)
    again = await opened_again(sqlite_path, clock)
    times = []
    for _ in range(30):
        times.append(await time_of(again))
        clock.monotonic_now += 5
    assert times[0] == NOW + 100
    assert times == sorted(times)
    await again.close()


async def test_a_file_that_is_ahead_meets_the_clock_and_then_goes_with_it(sqlite_path):
    clock = SetClock(NOW + 90)
    again = await opened_again(sqlite_path, clock)
    first = await again.pulse(seen=0)
    clock.monotonic_now = 50.0
    halfway = await again.pulse(seen=0)
    clock.monotonic_now = 101.0
    met = await again.pulse(seen=0)
    clock.monotonic_now = 1000.0
    after = await again.pulse(seen=0)
    seen = [
        (round(each.now - NOW, 3), round(each.ahead, 3), each.rate) for each in (first, halfway, met, after)
    ]
    assert seen == [(100, 10, 0.9), (145, 5, 0.9), (191, 0, 1), (1090, 0, 1)]
    await again.close()


async def test_a_machine_that_started_without_a_clock_does_not_slow_the_file_down(sqlite_path):
    clock = SetClock(1_000.0)  # 1970
    again = await opened_again(sqlite_path, clock)
    await again.pulse(seen=0)
    clock.monotonic_now = 50.0
    pulse = await again.pulse(seen=0)
    assert (pulse.now, pulse.ahead, pulse.rate) == (NOW + 150, 0.0, 1.0)
    await again.close()


@pytest.mark.parametrize("behind", [10.0, 3_600.0, 365 * 86_400.0])
async def test_deliver_at_is_kept_by_the_clock_while_the_files_time_is_ahead(sqlite_path, behind):
    clock = SetClock(NOW + 100 - behind)
    again = await opened_again(sqlite_path, clock)
    pulse = await again.pulse(seen=0)
    endpoint = await a_lane_in(again)
    moment = clock.wall_now + 3_600
    publication = a_publication(endpoint, deliver_at=moment)
    await again.accept([publication], catalogue=(await again.catalogue()).n, now=pulse.now)
    [found] = await again.list_deliveries(DeliveryFilter(), after=None, limit=2)
    clock.monotonic_now += 3_599
    assert await time_of(again) < found.due_at
    clock.monotonic_now += 1
    assert await time_of(again) == pytest.approx(found.due_at)
    shown = await again.event(publication.event.id)
    assert shown.deliver_at == moment
    await again.close()


ACCEPT = """
import asyncio, sys
sys.path.insert(0, sys.argv[2])
from factories import a_publication, NOW
from hookline.store.sqlite.store import SqliteStore
from scenes import a_lane_in
async def publish(store, lane, n):
    while True:
        batch = [a_publication(lane) for _ in range(3)]
        await store.accept(batch, catalogue=n, now=NOW)
        sys.stdout.write("".join(p.event.id.hex() + "\\n" for p in batch))
        sys.stdout.flush()
async def main():
    store = SqliteStore(sys.argv[1])
    await store.open()
    lane = await a_lane_in(store)
    n = (await store.catalogue()).n
    async with asyncio.TaskGroup() as group:
        for _ in range(4):
            group.create_task(publish(store, lane, n))
asyncio.run(main())
"""


def killed_after(lines, path):
    """A process that accepts as fast as it can, killed after so many lines; returns all that it acknowledged."""
    process = subprocess.Popen(
        [sys.executable, "-c", ACCEPT, str(path), str(Path(__file__).parent.parent)],
        stdout=subprocess.PIPE,
        text=True,
    )
    acknowledged = [process.stdout.readline() for _ in range(lines)]
    process.kill()
    acknowledged += process.communicate()[0].splitlines(keepends=True)
    return [bytes.fromhex(line) for line in acknowledged if line.endswith("\n")]


@pytest.mark.parametrize("lines", [1, 40, 400])
async def test_everything_acknowledged_before_a_kill_is_there_afterwards(sqlite_path, lines):
    acknowledged = killed_after(lines, sqlite_path)
    assert len(acknowledged) >= lines
    store = SqliteStore(str(sqlite_path))
    await store.open()
    for id in acknowledged:
        assert await store.event(id) is not None
        assert (await store.delivery(id)).state is State.PENDING
    await store.close()
    with closing(sqlite3.connect(sqlite_path)) as connection:
        assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)


async def test_a_new_file_is_its_owners_alone(tmp_path):
    path = tmp_path / "x.db"
    before = os.umask(0o022)
    try:
        store = SqliteStore(str(path))
        await store.migrate()
    finally:
        os.umask(before)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


async def test_a_file_that_is_there_keeps_its_mode(tmp_path):
    path = tmp_path / "x.db"
    path.touch()
    path.chmod(0o640)
    store = SqliteStore(str(path))
    await store.migrate()
    assert stat.S_IMODE(path.stat().st_mode) == 0o640
