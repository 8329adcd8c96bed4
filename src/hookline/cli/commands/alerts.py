"""The command that lists alerts."""

import click

from hookline.cli.choices import ALERT_KINDS
from hookline.cli.exits import Errors
from hookline.cli.options import connect, json_option, limit_option, read_account, url_option, utc_option
from hookline.cli.printing.columns import alert_columns
from hookline.cli.printing.table import print_list


@click.command()
@click.option("--all", "is_all", is_flag=True, help="List resolved alerts too.")
@click.option("--kind", type=click.Choice(ALERT_KINDS), help="Only alerts of this kind.")
@click.option("--account", callback=read_account, help="Only alerts of this account.")
@limit_option
@utc_option
@url_option
@json_option
def alerts(
    is_all: bool, kind: str | None, account: str | None, limit: int, utc: bool, url: str | None, as_json: bool
) -> None:
    """List alerts: what hookline found wrong. Newest first."""
    with Errors():
        state = None if is_all else "firing"
        found = connect(url).pages("/v1/alerts", limit=limit, state=state, kind=kind, account=account)
        print_list(found, alert_columns(utc=utc), as_json=as_json)
