"""What is known about an account, and how is it changed, from a shell?"""

import click

from hookline.cli.exits import USAGE, CommandError, Errors
from hookline.cli.options import checked, connect, json_option, url_option
from hookline.cli.output import print_fields


@click.group()
def accounts() -> None:
    """Accounts: where they want to be told about trouble."""


@accounts.command()
@click.argument("account")
@url_option
@json_option
def show(account: str, url: str | None, as_json: bool) -> None:
    """Print an account."""
    with Errors():
        print_fields(connect(url).get(_path(account)), as_json=as_json)


@accounts.command("set")
@click.argument("account")
@click.option("--email", metavar="ADDRESS", help="Where mail about trouble goes; '' for nowhere.")
@click.option("--webhook", metavar="URL", help="Where alerts are posted; '' for nowhere.")
@click.option("--slack", metavar="URL", help="A Slack webhook for alerts; '' for nowhere.")
@url_option
@json_option
def set_account(account: str, url: str | None, as_json: bool, **ways: str | None) -> None:
    """Say where an account is told about trouble. What the options do not name stays as it was."""
    with Errors():
        said = {name: value for name, value in ways.items() if value is not None}
        if not said:
            raise CommandError("say what to change: --email, --webhook or --slack.", USAGE)
        client = connect(url)
        notify = {**(client.get(_path(account))["notify"] or {}), **said}
        kept = {name: value for name, value in notify.items() if value}
        print_fields(client.put(_path(account), {"notify": kept}), as_json=as_json)


def _path(account: str) -> str:
    from hookline.validate.names import check_account

    return f"/v1/accounts/{checked(account, check_account)}"
