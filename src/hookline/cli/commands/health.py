"""The command that shows the health of an installation."""

import shutil

import click

from hookline.cli.exits import Errors
from hookline.cli.options import connect, json_option, read_account, url_option
from hookline.cli.output import print_json


@click.command()
@click.option("--account", callback=read_account, help="Only the endpoints of this account.")
@url_option
@json_option
def health(account: str | None, url: str | None, as_json: bool) -> None:
    """Show how much waits, fails and arrives. The counts may be some seconds old."""
    with Errors():
        found = connect(url).get("/v1/health", account=account)
        if as_json:
            print_json(found)
            return
        from hookline.cli.printing.status_screen import health_lines
        from hookline.clock import SystemClock

        width = shutil.get_terminal_size((80, 24)).columns
        for line in health_lines(found, width=width, now=SystemClock().wall()):
            click.echo(line)
