"""Commands that show, retry and cancel deliveries."""

from typing import Any

import click

from hookline.cli.choices import state_option
from hookline.cli.exits import Errors
from hookline.cli.options import (
    connect,
    json_option,
    limit_option,
    read_account,
    read_id,
    read_past,
    read_type,
    url_option,
    utc_option,
)
from hookline.cli.output import print_fields, print_json, say
from hookline.cli.printing.attempts import print_attempt
from hookline.cli.printing.columns import delivery_columns
from hookline.cli.printing.short_ids import whole_id, with_whole_ids
from hookline.cli.printing.table import print_list


@click.group()
def deliveries() -> None:
    """List, retry and cancel deliveries: one event to one endpoint."""


@deliveries.command("list")
@state_option
@click.option(
    "--endpoint", "endpoint_id", callback=read_id, metavar="ID", help="Only deliveries to this endpoint."
)
@click.option("--event", "event_id", callback=read_id, metavar="ID", help="Only deliveries of this event.")
@click.option("--account", callback=read_account, help="Only deliveries of this account.")
@click.option("--type", "event_type", callback=read_type, help="Only deliveries of events of this type.")
@click.option(
    "--since",
    callback=read_past,
    metavar="TIME",
    help="Only deliveries of events published after this time, or less than this long ago, such as 2h.",
)
@click.option(
    "--until",
    callback=read_past,
    metavar="TIME",
    help="Only deliveries of events published before this time, or more than this long ago.",
)
@limit_option
@utc_option
@url_option
@json_option
def list_deliveries(limit: int, utc: bool, url: str | None, as_json: bool, **filter: Any) -> None:
    """List deliveries, newest first."""
    with Errors():
        client = connect(url)
        found = client.pages("/v1/deliveries", limit=limit, **with_whole_ids(client, filter))
        print_list(found, delivery_columns(client, utc=utc), as_json=as_json)


@deliveries.command()
@click.argument("delivery_id")
@click.option("--attempts", is_flag=True, help="Also print all attempts.")
@url_option
@json_option
def show(delivery_id: str, attempts: bool, url: str | None, as_json: bool) -> None:
    """Show a delivery."""
    with Errors():
        client = connect(url)
        path = f"/v1/deliveries/{whole_id(client, 'delivery', delivery_id)}"
        delivery = client.get(path)
        if attempts:
            delivery["attempt_log"] = list(client.pages(f"{path}/attempts", limit=None))
        print_fields(delivery, as_json=as_json)


@deliveries.command()
@click.argument("delivery_id")
@limit_option
@url_option
@json_option
def attempts(delivery_id: str, limit: int, url: str | None, as_json: bool) -> None:
    """Show the attempts of a delivery, newest first: answer, error, timing, headers and the response's body."""
    with Errors():
        client = connect(url)
        path = f"/v1/deliveries/{whole_id(client, 'delivery', delivery_id)}/attempts"
        found = list(client.pages(path, limit=limit))
        if as_json:
            print_json(found)
            return
        if not found:
            click.echo("No attempts yet.", err=True)
        for place, attempt in enumerate(found):
            if place:
                click.echo()
            print_attempt(attempt)


@deliveries.command()
@click.argument("delivery_id")
@url_option
@json_option
def cancel(delivery_id: str, url: str | None, as_json: bool) -> None:
    """Cancel a pending delivery."""
    _do("cancel", delivery_id, url, as_json)


@deliveries.command()
@click.argument("delivery_id")
@url_option
@json_option
def retry(delivery_id: str, url: str | None, as_json: bool) -> None:
    """Retry a pending delivery now."""
    _do("retry", delivery_id, url, as_json)


def _do(verb: str, delivery_id: str, url: str | None, as_json: bool) -> None:
    with Errors():
        client = connect(url)
        delivery = client.post(f"/v1/deliveries/{whole_id(client, 'delivery', delivery_id)}/{verb}")
        say(f"{delivery['id']} is {delivery['state']}.", delivery, as_json=as_json)
