"""Commands that list, analyse, replay and discard dead letters."""

from typing import Any

import click

from hookline.cli.commands.analyse import analyse
from hookline.cli.confirm import must_agree
from hookline.cli.exits import FAILED, USAGE, CommandError, Errors
from hookline.cli.options import (
    connect,
    dead_letter_filter,
    json_option,
    limit_option,
    url_option,
    utc_option,
    yes_option,
)
from hookline.cli.output import counted, print_fields, print_json, say
from hookline.cli.printing.attempts import print_attempt
from hookline.cli.printing.columns import dead_columns, job_columns, replayed_columns
from hookline.cli.printing.short_ids import whole_id, with_whole_ids
from hookline.cli.printing.table import print_list


@click.group()
def dead() -> None:
    """List, analyse, replay and discard dead letters: failed deliveries."""


dead.add_command(analyse)


@dead.command("list")
@dead_letter_filter
@click.option("--replayed", is_flag=True, help="List replayed deliveries that are not delivered yet instead.")
@limit_option
@utc_option
@url_option
@json_option
def list_dead(replayed: bool, limit: int, utc: bool, url: str | None, as_json: bool, **filter: Any) -> None:
    """List dead letters, newest event first."""
    with Errors():
        client = connect(url)
        chosen = with_whole_ids(client, filter)
        found = client.pages("/v1/dead-letters", limit=limit, replayed=replayed or None, **chosen)
        columns = replayed_columns if replayed else dead_columns
        print_list(found, columns(client, utc=utc), as_json=as_json)


@dead.command()
@click.option("--discards", is_flag=True, help="List bulk discards instead of bulk replays.")
@limit_option
@utc_option
@url_option
@json_option
def jobs(discards: bool, limit: int, utc: bool, url: str | None, as_json: bool) -> None:
    """List bulk replays, newest first, with their progress."""
    with Errors():
        found = connect(url).pages("/v1/discards" if discards else "/v1/replays", limit=limit)
        print_list(found, job_columns(utc=utc), as_json=as_json)


@dead.command()
@click.argument("delivery_id")
@url_option
@json_option
def show(delivery_id: str, url: str | None, as_json: bool) -> None:
    """Show a dead letter with its payload and all its attempts."""
    with Errors():
        client = connect(url)
        delivery = client.get(f"/v1/deliveries/{whole_id(client, 'delivery', delivery_id)}")
        payload = client.get(f"/v1/events/{delivery['event_id']}")["payload"]
        attempts = list(client.pages(f"/v1/deliveries/{delivery['id']}/attempts", limit=None))
        if as_json:
            print_json({**delivery, "payload": payload, "attempt_log": attempts})
            return
        print_fields({**delivery, "payload": payload}, as_json=False)
        for attempt in reversed(attempts):
            click.echo()
            print_attempt(attempt)


@dead.command()
@click.argument("delivery_ids", nargs=-1)
@dead_letter_filter
@click.option("--all", "everything", is_flag=True, help="All dead letters.")
@click.option("--dry-run", is_flag=True, help="Print how many match, and change nothing.")
@click.option("--yes", "-y", is_flag=True, hidden=True)  # not needed; accepted because discard accepts it
@url_option
@json_option
def replay(**options: Any) -> None:
    """Replay dead letters, by id or by filter."""
    with Errors():
        _carry_out("replay", "replayed", **options)


@dead.command()
@click.argument("delivery_ids", nargs=-1)
@dead_letter_filter
@click.option("--all", "everything", is_flag=True, help="All dead letters.")
@click.option("--dry-run", is_flag=True, help="Print how many match, and change nothing.")
@yes_option
@url_option
@json_option
def discard(**options: Any) -> None:
    """Discard dead letters, by id or by filter. They become cancelled."""
    with Errors():
        _carry_out("discard", "discarded", asks=True, **options)


def _carry_out(
    verb: str,
    done: str,
    *,
    delivery_ids: tuple[str, ...],
    everything: bool,
    dry_run: bool,
    yes: bool,
    url: str | None,
    as_json: bool,
    asks: bool = False,
    **filter: Any,
) -> None:
    chosen = _chosen(delivery_ids, everything, filter)
    client = connect(url)
    if delivery_ids:
        delivery_ids = tuple(whole_id(client, "delivery", each) for each in delivery_ids)
        chosen = {"ids": list(delivery_ids)}
    else:
        chosen = with_whole_ids(client, chosen)
    path = f"/v1/{verb}s"
    if dry_run or (asks and not yes):
        tried = client.post(path, {"filter": chosen, "dry_run": True})
        if dry_run:
            say(f"{_letters(tried['matched'])} would be {done}.", tried, as_json=as_json)
            return
        must_agree(f"{verb.capitalize()} {_letters(tried['matched'])}?", to=verb)
    if len(delivery_ids) == 1:
        # Sent one by one, the server says what is wrong with each: not there, not dead.
        delivery = client.post(f"/v1/dead-letters/{delivery_ids[0]}/{verb}")
        say(f"{delivery['id']} is {delivery['state']}.", delivery, as_json=as_json)
        return
    from hookline.cli.job import run_job

    job = run_job(client, path, chosen)
    say(f"{_letters(job['done'])} {done}.", job, as_json=as_json)
    if job["failed"]:
        raise CommandError(f"{job['failed']:,} skipped: not dead letters, or no longer.", FAILED)


def _letters(number: int) -> str:
    return counted(number, "dead letter", "dead letters")


def _chosen(ids: tuple[str, ...], everything: bool, filter: dict[str, Any]) -> dict[str, Any]:
    said = {name: value for name, value in filter.items() if value is not None}
    if bool(ids) + bool(said) + everything != 1:
        raise CommandError(
            "choose dead letters in one way: by delivery ids, by filters such as --endpoint, or with --all.",
            USAGE,
        )
    if ids:
        return {"ids": list(ids)}
    if everything:
        from hookline import rfc3339
        from hookline.clock import SystemClock

        # A day ahead: the server's clock may differ from ours, and it leaves out what dies after the start anyway.
        return {"until": rfc3339.show(SystemClock().wall() + 86_400)}
    return said
