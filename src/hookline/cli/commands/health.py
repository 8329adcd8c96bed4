"""The command that shows the health of an installation."""

import click

from hookline.cli.exits import Errors
from hookline.cli.options import connect, json_option, read_account, url_option
from hookline.cli.output import print_fields


@click.command()
@click.option("--account", callback=read_account, help="Only the endpoints of this account.")
@url_option
@json_option
def health(account: str | None, url: str | None, as_json: bool) -> None:
    """Show how much waits, fails and arrives. The counts may be some seconds old."""
    with Errors():
        print_fields(connect(url).get("/v1/health", account=account), as_json=as_json)
