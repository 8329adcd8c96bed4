"""Commands about outboxes, and about rows of theirs that were refused."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

import click

from hookline.cli.choices import REFUSALS
from hookline.cli.confirm import must_agree
from hookline.cli.exits import NOT_FOUND, REFUSED, USAGE, CommandError, Errors
from hookline.cli.options import (
    connect,
    database_option,
    json_option,
    limit_option,
    read_account,
    read_past,
    read_type,
    settings,
    url_option,
    utc_option,
    yes_option,
)
from hookline.cli.output import counted, print_fields, print_json, say
from hookline.cli.printing.columns import outbox_columns, refused_columns
from hookline.cli.printing.short_ids import whole_row_id
from hookline.cli.printing.table import print_list
from hookline.cli.printing.text import printable

if TYPE_CHECKING:
    from hookline.cli.client import Client

_Command = TypeVar("_Command", bound=Callable[..., Any])
_REFUSED = "/v1/outbox/refused"
_AGAIN = (NOT_FOUND, REFUSED)  # of one row; whatever else goes wrong goes wrong with the next one too

_NAMED = 3  # rows in the message about those that failed


@click.group()
def outbox() -> None:
    """Show outboxes, and retry or discard rows of theirs that were refused."""


def _read_code(context: click.Context, option: click.Parameter, value: str | None) -> str | None:
    """A code that a server may give; the nearest one is suggested for a wrong one."""
    if value is None or value in REFUSALS or value.startswith("invalid_"):
        return value
    from hookline.validate.suggest import nearest

    near = nearest(value, REFUSALS)
    step = f"did you mean {near}?" if near else f"one of: {', '.join(REFUSALS)}."
    raise click.BadParameter(f"no row is refused as {printable(value)!r}; {step}", context, option)


def _filter(command: _Command) -> _Command:
    """The options that choose refused rows."""
    for option in (
        click.option(
            "--until",
            callback=read_past,
            metavar="TIME",
            help="Only those that were refused before this time, or more than this long ago.",
        ),
        click.option(
            "--since",
            callback=read_past,
            metavar="TIME",
            help="Only those that were refused after this time, or less than this long ago, such as 2h.",
        ),
        click.option("--source", metavar="NAME", help="Only those of this outbox."),
        click.option(
            "--code",
            callback=_read_code,
            metavar="CODE",
            help="Only those that were refused for this reason, such as schema_mismatch.",
        ),
        click.option("--type", "event_type", callback=read_type, help="Only those of events of this type."),
        click.option("--account", callback=read_account, help="Only those of this account."),
    ):
        command = option(command)
    return command


@outbox.command("list")
@_filter
@limit_option
@utc_option
@url_option
@json_option
def list_refused(limit: int, utc: bool, url: str | None, as_json: bool, **filter: Any) -> None:
    """List refused rows, newest first."""
    with Errors():
        found = connect(url).pages(_REFUSED, limit=limit, **filter)
        print_list(found, refused_columns(utc=utc), as_json=as_json)


@outbox.command()
@click.argument("row_id", metavar="ID")
@url_option
@json_option
def show(row_id: str, url: str | None, as_json: bool) -> None:
    """Show a refused row with its payload."""
    with Errors():
        client = connect(url)
        print_fields(client.get(f"{_REFUSED}/{whole_row_id(client, row_id)}"), as_json=as_json)


@outbox.command()
@click.argument("row_ids", metavar="[ID]...", nargs=-1)
@_filter
@click.option("--all", "everything", is_flag=True, help="All refused rows.")
@click.option("--dry-run", is_flag=True, help="Print how many match, and change nothing.")
@url_option
@json_option
def retry(**options: Any) -> None:
    """Publish refused rows under their ids, by id or by filter. Their place in the order is lost."""
    with Errors():
        _carry_out("retry", "published", **options)


@outbox.command()
@click.argument("row_ids", metavar="[ID]...", nargs=-1)
@_filter
@click.option("--all", "everything", is_flag=True, help="All refused rows.")
@click.option("--dry-run", is_flag=True, help="Print how many match, and change nothing.")
@yes_option
@url_option
@json_option
def discard(yes: bool, **options: Any) -> None:
    """Discard refused rows, by id or by filter. They are never sent."""
    with Errors():
        _carry_out("discard", "discarded", must_ask=not yes, **options)


@outbox.command()
@utc_option
@url_option
@json_option
def sources(utc: bool, url: str | None, as_json: bool) -> None:
    """List the outboxes: whether each can be read, and what waits there."""
    with Errors():
        found = connect(url).get("/v1/outbox")
        if as_json:
            print_json(found)
            return
        print_list(found["data"], outbox_columns(utc=utc), as_json=False)
        if found["refused"]:
            click.echo(f"{_rows(found['refused'])} refused: hookline outbox list", err=True)


@outbox.command()
@click.argument("source")
@yes_option
@database_option
@json_option
def forget(source: str, yes: bool, database: str | None, as_json: bool) -> None:
    """Forget an outbox that is removed for good, so that events are pruned again. Works on the database.

    If it comes back, events that were accepted from it and pruned meanwhile are sent again.
    """
    with Errors():
        from hookline.cli.database import outboxes

        where = settings({"database": database})
        if not yes:
            must_agree(f"Forget the outbox {printable(source)}?", to="forget")
        outboxes.forget(where, source)
        say(f"The outbox {printable(source)} is forgotten.", {"source": source}, as_json=as_json)


def _carry_out(
    verb: str,
    done: str,
    *,
    row_ids: tuple[str, ...],
    everything: bool,
    dry_run: bool,
    url: str | None,
    as_json: bool,
    must_ask: bool = False,
    **filter: Any,
) -> None:
    said = {name: value for name, value in filter.items() if value is not None}
    if bool(row_ids) + bool(said) + everything != 1:
        raise CommandError(
            "choose refused rows in one way: by ids, by filters such as --code, or with --all.", USAGE
        )
    client = connect(url)
    chosen = _chosen(client, row_ids, said)
    if dry_run:
        match = "matches" if len(chosen) == 1 else "match"
        said_of = f"{_rows(len(chosen))} {match}; nothing is {done} in a dry run."
        say(said_of, {"matched": len(chosen), "ids": chosen}, as_json=as_json)
        return
    if must_ask:
        must_agree(f"{verb.capitalize()} {_rows(len(chosen))}?", to=verb)
    if len(chosen) == 1 and row_ids:
        answer = client.post(f"{_REFUSED}/{chosen[0]}/{verb}")
        say(f"{answer['id']} is {done}.", answer, as_json=as_json)
        return
    failed = _one_by_one(client, verb, chosen)
    good = len(chosen) - len(failed)
    errors = [{"id": id, "detail": str(error)} for id, error in failed.items()]
    result = {"done": good, "failed": len(failed), "errors": errors}
    say(f"{_rows(good)} {done}.", result, as_json=as_json)
    if failed:
        first = "; ".join(f"{id}: {str(error).rstrip('.')}" for id, error in list(failed.items())[:_NAMED])
        more = f"; and {len(failed) - _NAMED:,} more" if len(failed) > _NAMED else ""
        raise CommandError(f"{_rows(len(failed))} not {done}: {first}{more}.", REFUSED)


def _chosen(client: "Client", ids: tuple[str, ...], filter: dict[str, Any]) -> list[str]:
    """The ids of the chosen rows, oldest first."""
    if ids:
        return list(dict.fromkeys(whole_row_id(client, each) for each in ids))
    return [each["id"] for each in client.pages(_REFUSED, limit=None, **filter)][::-1]


def _one_by_one(client: "Client", verb: str, ids: list[str]) -> dict[str, CommandError]:
    """Do it with each; the ids that it was not done with, each with its error."""
    failed = {}
    for id in ids:
        try:
            client.post(f"{_REFUSED}/{id}/{verb}")
        except CommandError as error:
            if error.exit_status not in _AGAIN:
                raise
            failed[id] = error
    return failed


def _rows(number: int) -> str:
    return counted(number, "row", "rows")
