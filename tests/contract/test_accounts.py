"""What is stored of accounts."""

import sqlite3
from contextlib import closing

import psycopg
import pytest

from factories import NOW, a_publication
from hookline.model import Account, Notify
from hookline.store.contract import NO_ENDPOINT
from hookline.store.sqlite.store import SqliteStore

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


async def test_settings_are_replaced_only_if_they_are_those_that_were_read(store):
    first, second = Notify(slack="https://a.example/x"), Notify(slack="sealed1 AAAA")
    await store.put_account(Account(id="acme", notify=first), now=NOW + 0.125)
    seen = (await store.pulse(seen=0)).changes[-1].n
    assert not await store.put_account(Account(id="acme", notify=second), now=NOW + 1, was=NOW)
    assert not await store.put_account(Account(id="none", notify=second), now=NOW + 1, was=NOW)
    assert await store.accounts(limit=9) == [Account(id="acme", notify=first, updated_at=NOW + 0.125)]
    assert not (await store.pulse(seen=seen)).changes
    assert await store.put_account(Account(id="acme", notify=second), now=NOW + 1, was=NOW + 0.125)
    assert await store.accounts(limit=9) == [Account(id="acme", notify=second, updated_at=NOW + 1)]
    assert len((await store.pulse(seen=seen)).changes) == 1


async def test_all_that_have_settings_are_listed_by_name(store):
    for name in ("b", "a.z", "B"):
        await store.put_account(Account(id=name, notify=Notify(email=f"{name}@x.example")), now=NOW)
    assert [each.id for each in await store.accounts(limit=9)] == ["B", "a.z", "b"]
    assert [each.id for each in await store.accounts(after="B", limit=1)] == ["a.z"]
    assert (await store.accounts(limit=9))[2] == Account(
        id="b", notify=Notify(email="b@x.example"), updated_at=NOW
    )


async def test_every_process_hears_of_a_change_and_no_publish_becomes_stale(store):
    seen = (await store.pulse(seen=0)).changes
    catalogue = (await store.catalogue()).n
    await store.put_account(Account(id="acme"), now=NOW)
    changes = (await store.pulse(seen=seen[-1].n if seen else 0)).changes
    assert [(each.endpoint_id, each.kind) for each in changes] == [(NO_ENDPOINT, "account")]
    acceptance = await store.accept([a_publication()], catalogue=catalogue, now=NOW)
    assert not acceptance.stale


@pytest.mark.parametrize("stored", ["", "no json", "[]", '{"email": 7}', "null"])
async def test_settings_that_cannot_be_read_are_none(store, stored):
    await store.put_account(Account(id="acme", notify=Notify(email="ops@acme.example")), now=NOW)
    change(store, stored)
    assert await store.accounts(limit=9) == [Account(id="acme", updated_at=NOW)]
    assert await store.account("acme") == Account(id="acme", updated_at=NOW)


def change(store, notify):
    if isinstance(store, SqliteStore):
        with closing(sqlite3.connect(store._path)) as file:
            file.execute("UPDATE accounts SET notify = ?", (notify,))
            file.commit()
    else:
        with psycopg.connect(store._url) as session:
            session.execute("UPDATE hookline.accounts SET notify = %s", (notify,))
