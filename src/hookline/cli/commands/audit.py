"""The command that lists the audit trail."""

from typing import Any

import click

from hookline.cli.exits import Errors
from hookline.cli.options import (
    connect,
    json_option,
    limit_option,
    read_account,
    read_past,
    url_option,
    utc_option,
)
from hookline.cli.printing.columns import audit_columns
from hookline.cli.printing.table import print_list


@click.command()
@click.option("--account", callback=read_account, help="Only what concerns this account.")
@click.option("--action", help="Only this action, such as endpoint.updated.")
@click.option("--subject", metavar="ID", help="Only changes of this: an id, an account or an event type.")
@click.option("--actor", metavar="KEY", help="Only what was done with this key, by its whole id.")
@click.option(
    "--since",
    callback=read_past,
    metavar="TIME",
    help="Only what was done after this time, or less than this long ago, such as 2h.",
)
@click.option(
    "--until",
    callback=read_past,
    metavar="TIME",
    help="Only what was done before this time, or more than this long ago.",
)
@limit_option
@utc_option
@url_option
@json_option
def audit(limit: int, utc: bool, url: str | None, as_json: bool, **filters: Any) -> None:
    """List who changed what, when and from where. Newest first."""
    with Errors():
        client = connect(url)
        if filters["subject"] is not None:
            filters["subject"] = _whole(client, filters["subject"])
        found = client.pages("/v1/audit", limit=limit, **filters)
        print_list(found, audit_columns(utc=utc), as_json=as_json)


def _whole(client: Any, text: str) -> str:
    """The whole id that a short one means; names, and ids that lists do not shorten, stay as they are."""
    from hookline.cli.printing.short_ids import looks_like_id, whole_id

    for noun in ("endpoint", "event", "delivery", "replay", "discard"):
        if looks_like_id(noun, text):
            return whole_id(client, noun, text)
    return text
