"""Does the work of the forget command in the database."""

import asyncio

from hookline.admin.audit import acting
from hookline.app import audit_of, store_for
from hookline.cli.database.origin import command_line
from hookline.cli.exits import NOT_FOUND, REFUSED, CommandError
from hookline.config import Settings
from hookline.model import AuditAction
from hookline.rules.outbox_state import OWN
from hookline.store import database_url


def forget(settings: Settings, name: str) -> None:
    """Forget an outbox that is no longer configured."""
    if name == OWN or name in map(database_url.name, settings.outbox):
        raise CommandError(f"the outbox {name} is still read: remove it from HOOKLINE_OUTBOX first.", REFUSED)
    asyncio.run(_forget(settings, name))


async def _forget(settings: Settings, name: str) -> None:
    store = store_for(settings.database)
    await store.open(serve=False)
    try:
        known = [each.name for each in await store.outbox_sources()]
        if name not in known:
            there = f" There are: {', '.join(known)}." if known else ""
            raise CommandError(f"there is no outbox {name!r}.{there}", NOT_FOUND)
        with acting(command_line()):
            entry = audit_of().entry(AuditAction.OUTBOX_FORGOTTEN, "outbox", name, account=None)
            await store.forget_source(name, audit=entry)
    finally:
        await store.close()
