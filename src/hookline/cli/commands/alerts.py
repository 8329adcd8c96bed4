"""Commands that list alerts and test how they are told."""

import sys
from typing import Any

import click
from click.core import ParameterSource

from hookline.cli.choices import ALERT_KINDS
from hookline.cli.exits import FAILED, CommandError, Errors
from hookline.cli.options import connect, json_option, limit_option, read_account, url_option, utc_option
from hookline.cli.output import print_json
from hookline.cli.printing.columns import alert_columns
from hookline.cli.printing.table import print_list
from hookline.cli.printing.text import printable


@click.group(invoke_without_command=True, subcommand_metavar="[COMMAND] [ARGS]...")
@click.option("--all", "is_all", is_flag=True, help="List resolved alerts too.")
@click.option("--kind", type=click.Choice(ALERT_KINDS), help="Only alerts of this kind.")
@click.option("--account", callback=read_account, help="Only alerts of this account.")
@limit_option
@utc_option
@url_option
@json_option
@click.pass_context
def alerts(
    context: click.Context,
    is_all: bool,
    kind: str | None,
    account: str | None,
    limit: int,
    utc: bool,
    url: str | None,
    as_json: bool,
) -> None:
    """List alerts: what hookline found wrong. Newest first."""
    if context.invoked_subcommand is not None:
        _refuse_options_of_the_list(context)
        return
    with Errors():
        state = None if is_all else "firing"
        found = connect(url).pages("/v1/alerts", limit=limit, state=state, kind=kind, account=account)
        print_list(found, alert_columns(utc=utc), as_json=as_json)


@alerts.command("test")
@click.argument("account")
@url_option
@json_option
def test_alert(account: str, url: str | None, as_json: bool) -> None:
    """Send a test alert on every channel of an account and print the answers.

    Exits with 1 if one failed or none is configured. The operators' account is `hookline`.
    """
    from hookline.cli.commands.accounts import account_path

    with Errors():
        found = connect(url).post(f"{account_path(account)}/test-alert")
        results = found["results"]
        if as_json:
            print_json(found)
        else:
            for line in _lines(results):
                click.echo(line)
        if not results:
            raise CommandError(
                f"the account {account} has no channel; hookline accounts set {account} --email ADDRESS sets one.",
                FAILED,
            )
        if not all(each["ok"] for each in results):
            sys.exit(FAILED)


def _refuse_options_of_the_list(context: click.Context) -> None:
    """An option before `test` would be ignored, also `--url`."""
    for option in context.command.params:
        if context.get_parameter_source(option.name or "") is ParameterSource.COMMANDLINE:
            raise click.UsageError(
                f"Give {option.opts[0]} after {context.invoked_subcommand}, if it takes this option.", context
            )


def _lines(results: list[dict[str, Any]]) -> list[str]:
    """A line for each channel: whether it worked, whom it reaches and the answer."""
    widths = [max((len(each[name]) for each in results), default=0) for name in ("channel", "recipient")]
    return [
        f"{printable(each['channel']).ljust(widths[0])}  {_verdict(is_ok=each['ok'])}  "
        f"{printable(each['recipient']).ljust(widths[1])}  {printable(each['detail'])}".rstrip()
        for each in results
    ]


def _verdict(*, is_ok: bool) -> str:
    return click.style("ok    ", fg="green") if is_ok else click.style("failed", fg="red")
