"""The command that deletes old data.

It works directly on the database, with or without a running server, in short transactions. It can be interrupted at
any moment and started again.
"""

from typing import Any

import click

from hookline.cli.confirm import must_agree
from hookline.cli.exits import USAGE, CommandError, Errors
from hookline.cli.options import database_option, dry_run_option, json_option, read_span, settings, yes_option
from hookline.cli.output import counted, say

LEAST = 3_600.0  # seconds; a request under way may still settle what is younger


@click.command()
@click.option(
    "--older-than",
    callback=read_span,
    metavar="DURATION",
    help="Delete what finished longer ago than this, such as 7d (minimum 1h).  [default: HOOKLINE_KEEP_DELIVERED_DAYS and HOOKLINE_KEEP_DEAD_DAYS]",
)
@dry_run_option
@yes_option
@database_option
@json_option
def prune(older_than: float | None, dry_run: bool, yes: bool, as_json: bool, **flags: Any) -> None:
    """Delete old finished deliveries and events. Safe while a server runs."""
    with Errors():
        if older_than is not None and older_than < LEAST:
            raise CommandError("--older-than must be at least 1h.", USAGE)
        found = settings(flags)
        from hookline.cli.database import pruning
        from hookline.rules.retention import Keep, keep_from_days

        keep = keep_from_days(
            delivered=found.keep_delivered_days, dead=found.keep_dead_days, audit=found.keep_audit_days
        )
        if older_than is not None:
            keep = Keep(done=older_than, dead=older_than)
        if dry_run:
            there = pruning.count(found.database, keep)
            say(f"{_listed(there)} would be deleted.", there, as_json=as_json)
            return
        if not yes:
            there = pruning.count(found.database, keep)
            must_agree(f"Permanently delete {_listed(there)}?", to="prune")
        gone = pruning.prune(found.database, keep)
        say(f"{_listed(gone)} deleted.", gone, as_json=as_json)


def _listed(found: dict[str, int]) -> str:
    events = counted(found["events"], "event", "events")
    return f"{events} with {counted(found['deliveries'], 'delivery', 'deliveries')}"
