"""Checks that each outbox can be read: its database, its table and the rights on it."""

import os
from collections.abc import Iterator
from pathlib import Path

from hookline.cli.doctor.findings import Finding, bad, ok, warn
from hookline.cli.output import counted
from hookline.errors import HooklineError, StoreUnavailable
from hookline.rules.outbox_state import OWN, outbox_name
from hookline.store import database_url
from hookline.store.contract.doctor import Examination, OutboxExamination

LATE_S = 300.0  # the oldest row


def check_outboxes(
    sources: tuple[str, ...], database: str, found: Examination | None, *, wall: float
) -> Iterator[Finding]:
    """Check the outboxes of these URLs, and the one in hookline's own database."""
    if found is not None and found.schema is None:
        yield from _check(OWN, database, wall=wall)
    for each in sources:
        yield from _check(database_url.name(each), each, wall=wall)


def _check(name: str, url: str, *, wall: float) -> Iterator[Finding]:
    try:
        examined = _examined(url, wall=wall)
    except StoreUnavailable as error:
        yield bad("outbox", f"{outbox_name(name)}: {error}", "start its database, or correct HOOKLINE_OUTBOX")
        return
    except HooklineError as error:
        yield bad(
            "outbox", f"{outbox_name(name)}: {error}", "follow this message, or correct HOOKLINE_OUTBOX"
        )
        return
    yield from judge_outbox(name, examined, is_file=url.startswith("sqlite:"))


def _examined(url: str, *, wall: float) -> OutboxExamination:
    if not url.startswith("sqlite:"):
        import asyncio

        from hookline.store.postgres.outbox.examination import examine_outbox as examine_on_postgres

        return asyncio.run(examine_on_postgres(url))
    from hookline.store.sqlite.outbox.examination import examine_outbox

    path = Path(url.removeprefix("sqlite:///"))
    if not path.is_file():
        raise StoreUnavailable(f"there is no file {path}")
    if not os.access(path, os.R_OK | os.W_OK) or not os.access(path.absolute().parent, os.W_OK):
        raise HooklineError(f"the file {path} or its directory is not writable: rows are deleted there")
    return examine_outbox(str(path), wall=wall)


def judge_outbox(name: str, found: OutboxExamination, *, is_file: bool) -> Iterator[Finding]:
    """Judge the facts about one outbox."""
    shown, dialect = outbox_name(name), "sqlite" if is_file else "postgresql"
    made = f'`hookline.outbox.ddl("{dialect}")` has the statements'
    if found.is_old:
        yield bad("outbox", f"{shown}: {found.server} is too old", "upgrade it to PostgreSQL 15 or later")
    if not found.has_table:
        yield bad("outbox", f"{shown}: there is no outbox table", f"create it: {made}")
    elif found.missing_columns:
        lacking = ", ".join(found.missing_columns)
        yield bad("outbox", f"{shown}: the table lacks the columns {lacking}", f"add them: {made}")
    elif found.missing_rights:
        yield bad(
            "outbox",
            f"{shown}: the database user lacks {', '.join(found.missing_rights)}",
            "GRANT these rights to it",
        )
    elif found.reuses_numbers:
        yield bad(
            "outbox",
            f"{shown}: the table has no AUTOINCREMENT, so a row can get the number of one that is gone",
            f"create it again: {made}",
        )
    elif name == OWN and found.was_used:
        yield warn(
            "outbox",
            f"{shown}: an application writes into the file that hookline serves",
            "give the application a file of its own (HOOKLINE_OUTBOX): its open transactions stop hookline's writes",
        )
    elif found.oldest_age_s is not None and found.oldest_age_s > LATE_S:
        yield warn(
            "outbox",
            f"{shown}: {counted(found.waiting, 'row', 'rows')}, the oldest for {found.oldest_age_s:,.0f} s",
            "start a worker, or look at its log: rows are moved as soon as they are committed",
        )
    elif name != OWN or found.waiting:
        yield ok("outbox", f"{shown}: {found.server}, {counted(found.waiting, 'row', 'rows')}")
