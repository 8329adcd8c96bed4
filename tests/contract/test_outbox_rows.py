"""LOOK reads the head of an outbox and DROP deletes from it."""

import sqlite3
from contextlib import closing

import psycopg
import pytest

from hookline.ids import show
from hookline.outbox import Draft, publish, publish_many
from hookline.store.contract import LookRequest, OutboxBacklog, RowPlace, WaitingRow
from into_outbox import execute, publish_rows

pytestmark = pytest.mark.anyio


async def looked(store, **asked):
    return (await store.look_at_outbox(LookRequest(**asked))).rows


def places(rows):
    return [RowPlace(row.seq, row.id) for row in rows]


async def test_an_empty_outbox_has_no_rows(store):
    head = await store.look_at_outbox(LookRequest())
    assert (head.rows, head.is_full) == ([], False)
    assert (await store.look_at_outbox(LookRequest(fair_after=""))).rows == []
    assert await store.outbox_backlog() == OutboxBacklog(0, None)


async def test_rows_are_read_as_they_were_published_in_their_order(store):
    ids = await publish_rows(store, "a", "b", payload={"n": 1}, account="acme", idempotency_key="k", hops=2)
    first, second = await looked(store)
    assert [show("event", row.id) for row in (first, second)] == ids
    assert first == WaitingRow(first.seq, first.id, first.at, None, "acme", "a", "k", 2, b'{"n":1}')
    assert (second.type, second.seq > first.seq) == ("b", True)
    assert await store.outbox_backlog() == OutboxBacklog(2, first.at)


async def test_a_look_leaves_out_the_floor_and_what_is_moved(store):
    await publish_rows(store, "a", "b", "c", "d")
    rows = await looked(store)
    assert [row.type for row in await looked(store, floor=rows[0].seq, moved=(rows[2].seq,))] == ["b", "d"]
    fair = await looked(store, floor=rows[0].seq, moved=(rows[2].seq,), fair_after="")
    assert [row.type for row in fair] == ["b", "d"]


async def test_a_look_is_full_at_500_rows(store):
    await publish_rows(store, *["a"] * 500)
    await publish_rows(store, "b")
    head = await store.look_at_outbox(LookRequest())
    assert (len(head.rows), head.is_full) == (500, True)
    await store.drop_from_outbox(places(head.rows))
    head = await store.look_at_outbox(LookRequest())
    assert ([row.type for row in head.rows], head.is_full) == (["b"], False)


@pytest.mark.parametrize("fair_after", [None, ""])
async def test_a_look_is_full_at_4_mib_but_has_one_row(store, fair_after):
    await publish_rows(store, *["a"] * 3, payload="x" * (2**20 - 2))
    await publish_rows(store, "b")
    await publish_rows(store, "c", payload="x" * (2**20 - 2))
    await publish_rows(store, "d")
    head = await store.look_at_outbox(LookRequest(fair_after=fair_after))
    assert [row.type for row in head.rows] == ["a", "a", "a", "b", "c"]
    assert head.is_full
    execute(store, "DELETE FROM hookline_outbox")
    large = b'"' + b"x" * 5 * 2**20 + b'"'
    execute(
        store, "INSERT INTO hookline_outbox (id, type, payload) VALUES (?, ?, ?)", bytes(16), "a", large
    ) if store.exclusive else execute(
        store, "INSERT INTO hookline_outbox (type, payload) VALUES (?, ?)", "a", large
    )
    await publish_rows(store, "b")
    head = await store.look_at_outbox(LookRequest(fair_after=fair_after))
    assert ([row.payload for row in head.rows], head.is_full) == ([large], True)


async def test_a_fair_look_reads_some_rows_of_each_account_and_goes_round(store):
    await publish_rows(store, *["busy"] * 30, account="a000")
    for n in range(1, 120):
        await publish_rows(store, "quiet", account=f"a{n:03}")
    first = await store.look_at_outbox(LookRequest(fair_after=""))
    assert [row.account for row in first.rows] == ["a000"] * 5 + [f"a{n:03}" for n in range(1, 100)]
    assert first.last_account == "a099"
    second = await store.look_at_outbox(LookRequest(fair_after="a099"))
    assert [row.account for row in second.rows] == [f"a{n:03}" for n in range(100, 120)]
    assert second.last_account == "", "the next one begins with the first account"


async def test_what_is_not_committed_is_not_read_and_holds_up_nobody(store):
    """No cursor: a number that commits late is read late."""
    if store.exclusive:
        with closing(sqlite3.connect(store._path, timeout=20)) as late:
            publish(late, "late", None)
            assert await looked(store) == []
            late.rollback()
        return
    with psycopg.connect(store._url) as late:
        publish(late, "late", None)
        await publish_rows(store, "early")
        head = await store.look_at_outbox(LookRequest())
        assert [row.type for row in head.rows] == ["early"]
        assert head.low < head.high, "a transaction that has not ended is in the snapshot"
        await store.drop_from_outbox(places(head.rows))
        late.commit()
    assert [row.type for row in await looked(store)] == ["late"]


async def test_a_drop_deletes_by_number_and_id(store):
    """[SQLite without AUTOINCREMENT gives a number again: a repeated DROP would delete a row that nobody read.]"""
    await publish_rows(store, "a", "b")
    first, second = await looked(store)
    await store.drop_from_outbox([RowPlace(second.seq, first.id)])
    assert await looked(store) == [first, second]
    await store.drop_from_outbox([RowPlace(first.seq, first.id)])
    await store.drop_from_outbox([RowPlace(first.seq, first.id)])
    assert await looked(store) == [second]


async def test_numbers_are_never_given_again(store):
    await publish_rows(store, "a")
    [first] = await looked(store)
    await store.drop_from_outbox(places([first]))
    await publish_rows(store, "b")
    [second] = await looked(store)
    assert second.seq > first.seq


async def test_a_row_with_values_of_other_kinds_is_read_with_its_fault(store, store_kind):
    if store_kind != "sqlite":
        return  # PostgreSQL takes no such value
    execute(
        store,
        "INSERT INTO hookline_outbox (id, at, deliver_at, account, type, idempotency_key, hops, payload) "
        "VALUES (?, 'noon', 'soon', ?, ?, ?, 'x', ?)",
        bytes(16),
        b"acme",
        b"a",
        b"k",
        b"{}",
    )
    await publish_rows(store, "b")
    spoiled, fine = await looked(store)
    assert spoiled.fault == "at, deliver_at, account, type, idempotency_key, hops: not of the column's kind"
    assert (fine.type, fine.fault) == ("b", "")
    await store.drop_from_outbox(places([spoiled, fine]))
    assert await looked(store) == []


async def test_a_look_reads_beside_an_open_transaction_and_waits_for_nobody(store):
    """[SKIP LOCKED leaves out locked rows: batches of unequal size overtake each other.]"""
    await publish_rows(store, "a", "b")
    if store.exclusive:
        with closing(sqlite3.connect(store._path, timeout=20)) as other:
            other.execute("BEGIN IMMEDIATE")
            publish_many(other, [Draft("c", None)])
            assert [row.type for row in await looked(store)] == ["a", "b"]
        return
    with psycopg.connect(store._url) as other:
        other.execute("SELECT FROM hookline.outbox ORDER BY seq LIMIT 1 FOR UPDATE")
        assert [row.type for row in await looked(store)] == ["a", "b"]
