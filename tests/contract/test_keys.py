"""Keys are stored as they were created, and every process with a copy learns of every change."""

import asyncio

import msgspec
import pytest

from factories import NOW, a_key, ids
from hookline.model import Scope
from hookline.store.contract.access.keys import CHANGED_KEYS, ChangedKey

pytestmark = pytest.mark.anyio


def revoked(key, *, at):
    return msgspec.structs.replace(key, revoked_at=at)


@pytest.mark.parametrize(
    "fields",
    [
        {},
        {"account": "acme", "scopes": (Scope.PUBLISH, Scope.READ), "name": "\N{SNOWMAN} the shop's"},
        {"digest": bytes(range(32)), "name": ""},
    ],
)
async def test_a_key_is_kept_as_it_was_made(store, fields):
    key = a_key(**fields)
    await store.create_key(key)
    assert await store.key(key.id) == key
    assert await store.key(ids.key()) is None


async def test_a_key_that_is_made_twice_is_there_once(store):
    key = a_key()
    await store.create_key(key)
    await store.create_key(key)
    assert await store.changed_keys(after=0) == [ChangedKey(1, key)]


async def test_a_revoked_key_stays_to_be_seen_and_is_revoked_for_good(store):
    key = a_key()
    await store.create_key(key)
    assert await store.revoke_key(key.id, now=NOW + 1)
    assert await store.revoke_key(key.id, now=NOW + 2)
    assert await store.key(key.id) == revoked(key, at=NOW + 1)
    await store.create_key(key)  # a repeat whose first answer was lost
    assert await store.key(key.id) == revoked(key, at=NOW + 1)


async def test_what_is_not_there_cannot_be_revoked(store):
    assert not await store.revoke_key(ids.key(), now=NOW)
    assert await store.changed_keys(after=0) == []


async def test_keys_are_listed_newest_first_page_by_page(store):
    keys = [a_key(name=str(n)) for n in range(5)]
    for key in keys:
        await store.create_key(key)
    await store.revoke_key(keys[2].id, now=NOW)
    keys[2] = revoked(keys[2], at=NOW)
    first = await store.list_keys(after=None, limit=3)
    assert first == [keys[4], keys[3], keys[2]]
    assert await store.list_keys(after=first[-1].id, limit=3) == [keys[1], keys[0]]


async def test_whoever_keeps_a_copy_is_told_of_new_and_revoked_keys_once(store):
    one, two = a_key(), a_key()
    await store.create_key(one)
    await store.create_key(two)
    assert await store.changed_keys(after=0) == [ChangedKey(1, one), ChangedKey(2, two)]
    assert await store.changed_keys(after=2) == []
    await store.revoke_key(one.id, now=NOW)
    await store.revoke_key(one.id, now=NOW)
    assert await store.changed_keys(after=2) == [ChangedKey(3, revoked(one, at=NOW))]
    assert await store.changed_keys(after=0) == [ChangedKey(2, two), ChangedKey(3, revoked(one, at=NOW))]


async def test_no_change_is_missed_however_many_write_at_once(store, second_store):
    """A reader that has seen n never finds a smaller number afterwards."""
    keys = [a_key() for _ in range(40)]
    seen: list[ChangedKey] = []
    writing = asyncio.gather(
        *(writer.create_key(key) for key, writer in zip(keys, [store, second_store] * 20, strict=True))
    )
    is_last = False
    while not is_last:
        is_last = writing.done()
        seen += await store.changed_keys(after=seen[-1].n if seen else 0)
    await writing
    assert [change.n for change in seen] == list(range(1, 41))
    assert {change.key.id for change in seen} == {key.id for key in keys}


async def test_changes_are_read_a_thousand_at_a_time(store):
    for _ in range(CHANGED_KEYS + 1):
        await store.create_key(a_key())
    first = await store.changed_keys(after=0)
    assert [change.n for change in first] == list(range(1, CHANGED_KEYS + 1))
    assert [change.n for change in await store.changed_keys(after=CHANGED_KEYS)] == [CHANGED_KEYS + 1]


async def test_the_first_key_is_made_by_one_of_many(store, second_store):
    keys = [a_key() for _ in range(8)]
    made = await asyncio.gather(
        *(each.create_first_key(key) for key, each in zip(keys, [store, second_store] * 4, strict=True))
    )
    assert sorted(made) == [False] * 7 + [True]
    assert await store.list_keys(after=None, limit=10) == [keys[made.index(True)]]


async def test_the_first_key_is_the_first_also_when_its_answer_was_lost(store):
    key = a_key()
    assert [await store.create_first_key(key), await store.create_first_key(key)] == [True, True]
    assert await store.list_keys(after=None, limit=10) == [key]


async def test_where_a_key_was_revoked_no_first_one_is_made(store):
    key = a_key()
    await store.create_key(key)
    await store.revoke_key(key.id, now=NOW)
    assert not await store.create_first_key(a_key())
