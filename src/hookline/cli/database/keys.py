"""Does the work of the key commands in the database."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import msgspec

from hookline import ids
from hookline.admin.audit import acting
from hookline.admin.keys import KeyAdmin, KeyReport, shown
from hookline.app import key_admin, store_for
from hookline.cli.database.origin import command_line
from hookline.cli.printing.short_ids import check_length, only
from hookline.errors import NotFound, SchemaMissing
from hookline.model import KeyId
from hookline.reports.id_prefixes import CANDIDATES, ids_beginning
from hookline.store.contract import Store

PAGE = 200

Work = Callable[[Store, KeyAdmin], Awaitable[Any]]


def create(database: str, fields: dict[str, Any]) -> Any:
    """Create a key, also before the first start: an empty database gets its schema."""
    return _run(database, lambda _, keys: keys.create(fields), is_new=True)


def list_all(database: str) -> Any:
    """All keys, newest first."""
    return _run(database, lambda store, _: _all(store))


def show(database: str, id: str) -> Any:
    """One key."""

    async def work(store: Store, keys: KeyAdmin) -> KeyReport:
        return await keys.one(await _whole_id(store, id))

    return _run(database, work)


def revoke(database: str, id: str) -> Any:
    """Revoke a key."""

    async def work(store: Store, keys: KeyAdmin) -> KeyReport:
        return await keys.revoke(await _whole_id(store, id))

    return _run(database, work)


def _run(database: str, work: Work, *, is_new: bool = False) -> Any:
    async def run() -> Any:
        store = store_for(database)
        await _open(store, is_new=is_new)
        try:
            with acting(command_line()):
                return msgspec.to_builtins(await work(store, key_admin(store)))
        finally:
            await store.close()

    return asyncio.run(run())


async def _open(store: Store, *, is_new: bool) -> None:
    """Open the database beside the process that serves it."""
    try:
        await store.open(serve=False)
    except SchemaMissing:
        if not is_new:
            raise
        await store.migrate()
        await store.open(serve=False)


async def _whole_id(store: Store, text: str) -> KeyId:
    """The id, or the only one that begins like this."""
    prefix = ids.read_prefix(text)
    if prefix is None or prefix.noun != "key":
        raise NotFound("key", text[:100])
    check_length("key", text.removeprefix("key_"), text)
    found = await ids_beginning(store, prefix)
    return KeyId(ids.read("key", only(found[:CANDIDATES], len(found) > CANDIDATES, text, "key")))


async def _all(store: Store) -> list[KeyReport]:
    found: list[KeyReport] = []
    page = await store.list_keys(after=None, limit=PAGE)
    while page:
        found += map(shown, page)
        page = await store.list_keys(after=page[-1].id, limit=PAGE)
    return found
