"""Refused rows are kept with their reason until somebody retries or discards them."""

import msgspec
import pytest

from factories import NOW, a_publication, a_refused_row, a_waiting_row, ids
from hookline.store.contract import RefusedCount, RefusedFilter
from scenes import accepted

pytestmark = pytest.mark.anyio

ALL = RefusedFilter()


async def kept(store, filter=ALL, *, after=None, limit=100):
    return await store.refused_rows(filter, after=after, limit=limit)


def as_listed(row, n):
    return msgspec.structs.replace(row, n=n, payload=b"")


async def test_a_refused_row_is_kept_as_it_was(store):
    row = a_refused_row(
        seq=7,
        deliver_at=NOW + 5,
        account="not an account \N{SNOWMAN}",
        idempotency_key="k",
        hops=3,
        payload=b"\0 not JSON",
        detail="\N{SNOWMAN}",
    )
    assert await store.refuse([row]) == 1
    [listed] = await kept(store)
    assert listed == as_listed(row, listed.n)
    assert await store.refused_row(listed.n) == msgspec.structs.replace(row, n=listed.n)
    assert await store.refused_row(listed.n + 1) is None


async def test_a_repeat_keeps_the_first(store):
    row = a_refused_row()
    assert await store.refuse([row]) == 1
    assert await store.refuse([msgspec.structs.replace(row, code="later"), a_refused_row(seq=2)]) == 1
    assert [each.code for each in await kept(store)] == ["schema_mismatch", "schema_mismatch"]


async def test_two_rows_with_one_id_are_both_kept(store):
    """[By the id alone the second would be lost.]"""
    row = a_refused_row()
    assert await store.refuse([row, msgspec.structs.replace(row, seq=2, payload=b"[]", payload_bytes=2)]) == 2
    assert [each.seq for each in await kept(store, RefusedFilter(id=row.id))] == [2, 1]


async def test_they_are_listed_newest_first_page_by_page_by_what_is_asked(store):
    rows = [
        a_refused_row(seq=1, account="a", type="x"),
        a_refused_row(seq=2, account="b", source="shop"),
        a_refused_row(seq=3, account="a", code="too_large"),
    ]
    await store.refuse(rows)
    assert [row.seq for row in await kept(store)] == [3, 2, 1]
    [_, second] = await kept(store, limit=2)
    assert [row.seq for row in await kept(store, after=second.n)] == [1]
    assert [row.seq for row in await kept(store, RefusedFilter(account="a"))] == [3, 1]
    assert [row.seq for row in await kept(store, RefusedFilter(account="a", code="too_large"))] == [3]
    assert [row.seq for row in await kept(store, RefusedFilter(source="shop"))] == [2]
    assert [row.seq for row in await kept(store, RefusedFilter(type="x"))] == [1]


async def test_they_are_counted_by_account_and_code(store):
    assert await store.count_refused() == []
    await store.refuse(
        [
            a_refused_row(seq=1, account="b"),
            a_refused_row(seq=2, account="a", refused_at=NOW + 1),
            a_refused_row(seq=3, account="a", refused_at=NOW + 2),
            a_refused_row(seq=4, account="a", code="too_large"),
        ]
    )
    assert await store.count_refused() == [
        RefusedCount("a", "schema_mismatch", 2, NOW + 1),
        RefusedCount("a", "too_large", 1, NOW),
        RefusedCount("b", "schema_mismatch", 1, NOW),
    ]


async def test_a_retry_that_is_refused_notes_the_new_reason(store):
    await store.refuse([a_refused_row()])
    [row] = await kept(store)
    await store.refuse_again(row.n, code="too_large", detail="It grew.", now=NOW + 9)
    changed = msgspec.structs.replace(row, code="too_large", detail="It grew.", refused_at=NOW + 9)
    assert await kept(store) == [changed]


async def test_a_discarded_row_is_gone(store):
    await store.refuse([a_refused_row(seq=n) for n in range(3)])
    rows = await kept(store)
    assert await store.discard_refused([rows[0].n, rows[2].n, 10**9]) == 2
    assert await kept(store) == [rows[1]]
    assert await store.discard_refused([rows[0].n]) == 0


# --- an id that is there ---


async def test_only_an_id_that_is_there_with_other_content_is_a_conflict(store):
    row = a_waiting_row(
        account="acme", type="a.b", idempotency_key="k", hops=1, payload=b"[1]", deliver_at=NOW + 0.25
    )
    fields = msgspec.structs.asdict(row)
    del fields["seq"], fields["at"], fields["fault"]
    await accepted(store, a_publication(**fields))
    plain = a_waiting_row()
    await accepted(store, a_publication(id=plain.id, account="default", type="order.paid", payload=b"{}"))
    assert await store.outbox_conflicts([row, plain, a_waiting_row()]) == frozenset()
    changes = [
        {"account": "other"},
        {"type": "a.c"},
        {"idempotency_key": "l"},
        {"idempotency_key": None},
        {"hops": 0},
        {"payload": b"[2]"},
        {"deliver_at": None},
        {"deliver_at": NOW + 0.5},
    ]
    for change in changes:
        assert await store.outbox_conflicts([msgspec.structs.replace(row, **change)]) == {row.id}, change


async def test_an_accept_names_its_repeats(store):
    first, second = a_publication(), a_publication()
    assert (await accepted(store, first)).repeats == frozenset()
    assert (await accepted(store, first, second)).repeats == {first.event.id}


async def test_a_conflict_gives_its_key_back(store):
    """[ACCEPT wrote the key of an event that it then did not write: the key named another event.]"""
    there = a_publication(account="default")
    await accepted(store, there)
    other = a_publication(
        id=there.event.id, account="default", idempotency_key="k", payload=b"[1]", digest=b"d"
    )
    await accepted(store, other)
    refused = a_refused_row(id=there.event.id, idempotency_key="k", payload=b"[1]", code="id_conflict")
    await store.refuse([refused])
    later = a_publication(account="default", idempotency_key="k", payload=b"[1]", digest=b"d")
    assert (await accepted(store, later)).priors == {}
    assert await store.event(later.event.id) is not None


async def test_a_conflict_leaves_the_key_of_the_event_that_is_there(store):
    there = a_publication(account="default", idempotency_key="k", digest=b"d")
    await accepted(store, there)
    await store.refuse(
        [a_refused_row(id=there.event.id, idempotency_key="k", payload=b"[1]", code="id_conflict")]
    )
    later = a_publication(account="default", idempotency_key="k", digest=b"d", id=ids.event())
    assert (await accepted(store, later)).priors[later.event.id].event_id == there.event.id
