"""Checks that each outbox can be read: its database, its table and the rights on it."""

import os
from collections.abc import Iterable, Iterator
from pathlib import Path

from hookline.cli.doctor.findings import Finding, bad, ok, warn
from hookline.cli.output import counted
from hookline.errors import HooklineError, StoreUnavailable
from hookline.outbox.table import Dialect, adding
from hookline.rules.outbox_state import OWN, outbox_name
from hookline.store import database_url
from hookline.store.contract.doctor import MOST_COUNTED, Examination, OutboxExamination

LATE_S = 300.0  # the oldest row


def check_outboxes(
    sources: tuple[str, ...], database: str, found: Examination | None, *, wall: float
) -> Iterator[Finding]:
    """Check the outboxes of these URLs, and the one in hookline's own database."""
    if found is not None and found.schema is None:
        yield from _check(OWN, database, wall=wall)
    for each in sources:
        yield from _check(database_url.name(each), each, wall=wall)
    if found is not None:
        yield from judge_known(found, configured=map(database_url.name, sources))


def judge_known(found: Examination, *, configured: Iterable[str]) -> Iterator[Finding]:
    """Judge what hookline's own database knows of outboxes."""
    if found.refused:
        more = " or more" if found.refused >= MOST_COUNTED else ""
        were = "was refused and is" if found.refused == 1 else "were refused and are"
        yield warn(
            "outbox",
            f"{counted(found.refused, 'row', 'rows')}{more} {were} not sent",
            "`hookline outbox list` says why",
        )
    for name in sorted({*found.sources} - {OWN, *configured}):
        yield warn(
            "outbox",
            f"{name}: it was read before, but HOOKLINE_OUTBOX does not name it here; until it is read or forgotten, no "
            "later event is pruned",
            f"name it, or if it is gone for good: `hookline outbox forget {name}`",
        )


def _check(name: str, url: str, *, wall: float) -> Iterator[Finding]:
    try:
        if url.startswith("sqlite:") and (wrong := _wrong_file(Path(url.removeprefix("sqlite:///")))):
            yield bad("outbox", f"{outbox_name(name)}: {wrong[0]}", wrong[1])
            return
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

    return examine_outbox(url.removeprefix("sqlite:///"), wall=wall)


def _wrong_file(path: Path) -> tuple[str, str] | None:
    """What is wrong with the file, and what to do."""
    if not path.is_file():
        return f"there is no file {path}", "start the application that makes it, or correct HOOKLINE_OUTBOX"
    if not os.access(path, os.R_OK | os.W_OK) or not os.access(path.absolute().parent, os.W_OK):
        return (
            f"this user may not write to the file {path} or its directory",
            "give the user the right to write to both: rows are deleted there",
        )
    return None


def judge_outbox(name: str, found: OutboxExamination, *, is_file: bool) -> Iterator[Finding]:
    """Judge the facts about one outbox."""
    shown = outbox_name(name)
    dialect: Dialect = "sqlite" if is_file else "postgresql"
    made = f'`hookline.outbox.ddl("{dialect}")` has the statements'
    if found.is_old:
        yield bad("outbox", f"{shown}: {found.server} is too old", "upgrade it to PostgreSQL 15 or later")
    if not found.has_table:
        yield bad("outbox", f"{shown}: there is no outbox table", f"create it: {made}")
    elif found.missing_columns:
        lacking = ", ".join(found.missing_columns)
        alter = adding(dialect, found.missing_columns)
        step = f"create it again: {made}" if alter is None else f"run on it: {alter}"
        yield bad("outbox", f"{shown}: the table lacks the columns {lacking}", step)
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
