"""What is stored of rotated secrets, and of the key that seals them."""

import asyncio

import msgspec
import pytest

from factories import NOW, an_endpoint

pytestmark = pytest.mark.anyio


async def test_both_secrets_and_the_filter_of_an_endpoint_are_read_as_written(store):
    endpoint = an_endpoint(
        secret="sealed1 AAAA", old_secret="whsec_x", old_secret_until=NOW + 86_400.125, filter="a == `1`"
    )
    await store.create_endpoint(endpoint, now=NOW)
    assert await store.endpoints_by_id([endpoint.id]) == [endpoint]
    rotated = msgspec.structs.replace(endpoint, secret="whsec_y", updated_at=NOW + 1, filter=None)
    assert await store.update_endpoint(rotated, was=NOW, now=NOW)
    assert (await store.catalogue()).endpoints == (rotated,)
    over = msgspec.structs.replace(rotated, old_secret=None, old_secret_until=None, updated_at=NOW + 2)
    assert await store.update_endpoint(over, was=NOW + 1, now=NOW)
    assert await store.list_endpoints(account=None, enabled=None, after=None, limit=9) == [over]


async def test_the_first_mark_is_kept_and_only_whoever_knows_it_replaces_it(store, second_store):
    assert await store.mark_sealed("one") == "one"
    assert await second_store.mark_sealed("two") == "one"
    assert await second_store.mark_sealed("two", was="zero") == "one"
    assert await second_store.mark_sealed("two", was="one") == "two"
    assert await store.mark_sealed("three") == "two"


async def test_of_two_that_mark_at_the_same_time_one_is_first(store, second_store):
    found = await asyncio.gather(*(each.mark_sealed(str(n)) for n, each in enumerate((store, second_store))))
    assert found[0] == found[1]
