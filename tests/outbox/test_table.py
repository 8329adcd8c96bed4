"""The table is the one that hookline reads, whoever makes it."""

import sqlite3
import uuid
from contextlib import closing

import psycopg
import pytest

from hookline.errors import Invalid
from hookline.ids import read, show
from hookline.outbox import Draft, ddl, publish, publish_many
from outbox.database import Postgres, Sqlite

ON_POSTGRES = [
    ("seq", "bigint", "NO", "YES"),
    ("id", "uuid", "NO", "NO"),
    ("at", "timestamp with time zone", "NO", "NO"),
    ("deliver_at", "timestamp with time zone", "YES", "NO"),
    ("account", "text", "NO", "NO"),
    ("type", "text", "NO", "NO"),
    ("idempotency_key", "text", "YES", "NO"),
    ("hops", "smallint", "NO", "NO"),
    ("payload", "bytea", "NO", "NO"),
]
ON_SQLITE = [
    ("seq", "INTEGER", 0),
    ("id", "BLOB", 1),
    ("at", "REAL", 1),
    ("deliver_at", "REAL", 0),
    ("account", "TEXT", 1),
    ("type", "TEXT", 1),
    ("idempotency_key", "TEXT", 0),
    ("hops", "INTEGER", 1),
    ("payload", "BLOB", 1),
]


def columns_on_postgres(database: Postgres, schema: str = "hookline", table: str = "outbox") -> list[object]:
    return database.run(
        "SELECT column_name, data_type, is_nullable, is_identity FROM information_schema.columns "
        "WHERE table_schema = %s AND table_name = %s ORDER BY ordinal_position",
        schema,
        table,
    )


def columns_on_sqlite(database: Sqlite, table: str = "hookline_outbox") -> list[object]:
    return database.run(f"SELECT name, type, \"notnull\" FROM pragma_table_info('{table}')")


def test_the_columns_on_postgres(postgres):
    assert columns_on_postgres(postgres) == ON_POSTGRES
    assert postgres.run(
        "SELECT attstorage FROM pg_attribute WHERE attrelid = 'hookline.outbox'::regclass AND attname = 'payload'"
    ) == [("e",)]
    assert sorted(postgres.run("SELECT indexname FROM pg_indexes WHERE tablename = 'outbox'")) == [
        ("outbox_accounts",),
        ("outbox_pkey",),
    ]


def test_the_columns_on_sqlite(sqlite):
    assert columns_on_sqlite(sqlite) == ON_SQLITE
    assert sqlite.run("SELECT name FROM sqlite_master WHERE type = 'index'") == [
        ("hookline_outbox_accounts",)
    ]


def test_making_it_again_changes_nothing(postgres, sqlite):
    for database in (postgres, sqlite):
        rows(database)
    postgres.run(ddl("postgresql"))
    with closing(sqlite3.connect(sqlite.path)) as connection:
        connection.executescript(ddl("sqlite"))
    assert (len(postgres.kept()), len(sqlite.kept())) == (3, 3)


def rows(database: Postgres | Sqlite) -> None:
    drafts = [Draft("a", n) for n in range(3)]
    if isinstance(database, Sqlite):
        with closing(sqlite3.connect(database.path)) as connection, connection:
            publish_many(connection, drafts)
        return
    with psycopg.connect(database.url) as connection:
        publish_many(connection, drafts)


def test_a_row_that_is_inserted_by_hand_needs_a_type_and_a_payload(postgres, sqlite):
    postgres.run(
        "INSERT INTO hookline.outbox (type, payload) SELECT 'order.paid', '{}'::bytea FROM generate_series(1, 200)"
    )
    sqlite.run(
        "INSERT INTO hookline_outbox (id, type, payload) VALUES (?, 'order.paid', CAST('{}' AS BLOB))",
        bytes(16),
    )
    kept = postgres.kept()
    assert {(each.account, each.type, each.hops, each.payload) for each in kept} == {
        ("default", "order.paid", 0, b"{}")
    }
    ids = [uuid.UUID(bytes=read("event", each.id)) for each in kept]
    assert len(set(ids)) == 200
    assert {(each.version, each.variant, each.int & 0xFFFFF) for each in ids} == {(7, uuid.RFC_4122, 0)}
    [row] = sqlite.kept()
    assert row.id == show("event", bytes(16))
    # Seconds since 1970, as unixepoch has them: any other unit or beginning is far away.
    assert sqlite.run("SELECT abs(at - unixepoch('now')) < 86400.0 FROM hookline_outbox") == [(1,)]


def test_rows_that_no_event_could_be_are_refused_by_the_database(postgres, sqlite):
    with pytest.raises(psycopg.errors.CheckViolation):  # an id without room for its deliveries
        postgres.run("INSERT INTO hookline.outbox (id, type, payload) VALUES (gen_random_uuid(), 'a', '1')")
    with pytest.raises(sqlite3.IntegrityError):
        sqlite.run("INSERT INTO hookline_outbox (id, type, payload) VALUES (x'00', 'a', x'31')")
    with pytest.raises(sqlite3.IntegrityError):  # text would come back as other bytes
        sqlite.run("INSERT INTO hookline_outbox (id, type, payload) VALUES (?, 'a', '1')", bytes(16))


def test_numbers_are_never_used_again_on_sqlite(sqlite):
    rows(sqlite)
    sqlite.run("DELETE FROM hookline_outbox")
    rows(sqlite)
    assert sqlite.run("SELECT seq FROM hookline_outbox ORDER BY seq") == [(4,), (5,), (6,)]


def test_the_table_may_have_another_name(bare_url, tmp_path):
    Postgres(bare_url).run(ddl("postgresql", table="shop.events_out"))
    with psycopg.connect(bare_url) as connection:
        id = publish(connection, "order.paid", {}, table="shop.events_out")
    assert columns_on_postgres(Postgres(bare_url), "shop", "events_out") == ON_POSTGRES
    assert Postgres(bare_url).run("SELECT id FROM shop.events_out") == [(uuid.UUID(bytes=read("event", id)),)]
    with closing(sqlite3.connect(tmp_path / "application.db")) as connection, connection:
        connection.executescript(ddl("sqlite", table="events_out"))
        publish(connection, "order.paid", {}, table="events_out")
        assert connection.execute("SELECT type FROM events_out").fetchall() == [("order.paid",)]


def test_an_unknown_dialect_is_refused():
    with pytest.raises(Invalid, match='"postgresql" or "sqlite"'):
        ddl("mysql")  # type: ignore[arg-type]
