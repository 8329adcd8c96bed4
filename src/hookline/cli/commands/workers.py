"""The command that lists workers."""

import click

from hookline.cli.exits import Errors
from hookline.cli.options import connect, json_option, limit_option, url_option, utc_option
from hookline.cli.printing.columns import worker_columns
from hookline.cli.printing.table import print_list


@click.command()
@limit_option
@utc_option
@url_option
@json_option
def workers(limit: int, utc: bool, url: str | None, as_json: bool) -> None:
    """List the processes that publish and deliver."""
    with Errors():
        found = connect(url).pages("/v1/workers", limit=limit)
        print_list(found, worker_columns(utc=utc), as_json=as_json)
