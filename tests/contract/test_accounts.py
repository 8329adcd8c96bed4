"""What is stored of accounts."""

import pytest

from factories import NOW
from hookline.model import Account, Notify

pytestmark = pytest.mark.anyio


async def test_nothing_is_known_of_an_account_that_nothing_was_said_about(store):
    assert await store.account("acme") is None


async def test_what_was_said_last_is_kept(store):
    first = Account(id="acme", notify=Notify(email="ops@acme.example", slack="https://hooks.slack.com/x"))
    await store.put_account(first, now=NOW)
    await store.put_account(Account(id="other"), now=NOW)
    assert await store.account("acme") == Account(id="acme", notify=first.notify, updated_at=NOW)
    second = Account(id="acme", notify=Notify(webhook="https://acme.example/ops"))
    await store.put_account(second, now=NOW + 1)
    assert await store.account("acme") == Account(id="acme", notify=second.notify, updated_at=NOW + 1)
    assert await store.account("other") == Account(id="other", updated_at=NOW)
