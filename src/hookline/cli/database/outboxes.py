"""Does the work of the forget command in the database."""

import asyncio

from hookline.admin.audit import acting
from hookline.app import audit_of, store_for
from hookline.cli.database.origin import command_line
from hookline.cli.exits import NOT_FOUND, REFUSED, CommandError
from hookline.clock import SystemClock
from hookline.config import Settings
from hookline.model import AuditAction
from hookline.rules.outbox_state import NOTED_WITHIN, OWN, is_stale
from hookline.rules.status_sentence import age
from hookline.store import database_url


def forget(settings: Settings, name: str) -> None:
    """Forget an outbox that is no longer configured."""
    if name == OWN:
        raise CommandError("the outbox own is in hookline's own database, which is always read.", REFUSED)
    if name in map(database_url.name, settings.outbox):
        raise CommandError(f"the outbox {name} is still read: remove it from HOOKLINE_OUTBOX first.", REFUSED)
    asyncio.run(_forget(settings, name))


async def _forget(settings: Settings, name: str) -> None:
    store = store_for(settings.database)
    await store.open(serve=False)
    try:
        known = {each.name: each for each in await store.outbox_sources()}
        if name not in known:
            there = f" There are: {', '.join(known)}." if known else ""
            raise CommandError(f"there is no outbox {name!r}.{there}", NOT_FOUND)
        looked_at, now = known[name].looked_at, SystemClock().wall()
        if looked_at is not None and not is_stale(looked_at, now=now):
            raise CommandError(
                f"the outbox {name} was read {age(now - looked_at)} ago, so a running server still reads it: remove it "
                f"from the server's HOOKLINE_OUTBOX, restart that, and try again {age(NOTED_WITHIN)} later.",
                REFUSED,
            )
        with acting(command_line()):
            entry = audit_of().entry(AuditAction.OUTBOX_FORGOTTEN, "outbox", name, account=None)
            await store.forget_source(name, audit=entry)
    finally:
        await store.close()
