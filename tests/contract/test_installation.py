"""All processes of one installation share a secret."""

import asyncio

import pytest

pytestmark = pytest.mark.anyio


async def test_of_many_that_start_at_once_all_have_the_secret_of_one(store, second_store):
    fresh = [bytes([n]) * 32 for n in range(8)]
    found = await asyncio.gather(
        *(each.installation_secret(own) for own, each in zip(fresh, [store, second_store] * 4, strict=True))
    )
    assert len(set(found)) == 1
    assert found[0] in fresh
    assert await second_store.installation_secret(b"x" * 32) == found[0]
