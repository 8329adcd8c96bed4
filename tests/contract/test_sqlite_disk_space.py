"""The last space on an SQLite file's disk is reserved for deleting."""

import sqlite3
from contextlib import closing

import pytest

from hookline.errors import StorageFull
from hookline.store.sqlite.driver.disk_space import FREE_PAGES, refuse_if_low

MORE_THAN_ANY_DISK_HAS = 1 << 60
PAGE_BYTES = 4_096


def test_a_disk_with_room_takes_more(tmp_path):
    with closing(sqlite3.connect(tmp_path / "x.db")) as connection:
        refuse_if_low(connection, folder=str(tmp_path), kept_bytes=0)


def test_a_disk_that_is_all_but_full_takes_no_more_until_the_file_itself_has_room(tmp_path):
    with closing(sqlite3.connect(tmp_path / "x.db", isolation_level=None)) as connection:
        connection.execute("CREATE TABLE filling (x BLOB)")
        connection.execute("INSERT INTO filling VALUES (zeroblob(?))", ((FREE_PAGES + 10) * PAGE_BYTES,))
        with pytest.raises(StorageFull, match="settling and pruning"):
            refuse_if_low(connection, folder=str(tmp_path), kept_bytes=MORE_THAN_ANY_DISK_HAS)
        connection.execute("DELETE FROM filling")
        refuse_if_low(connection, folder=str(tmp_path), kept_bytes=MORE_THAN_ANY_DISK_HAS)
