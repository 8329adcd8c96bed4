"""The command that publishes an event."""

import json
import sys
from typing import TYPE_CHECKING, Any

import click

from hookline.cli.exits import USAGE, CommandError, Errors
from hookline.cli.options import connect, json_option, read_future, read_span, url_option
from hookline.cli.output import although, counted, print_json

if TYPE_CHECKING:
    from hookline.cli.client import Client


@click.command()
@click.argument("event_type", metavar="TYPE")
@click.argument("payload", default="-")
@click.option("--account", help="Account of the event.")
@click.option(
    "--idempotency-key",
    metavar="KEY",
    help="Idempotency key: repeating the command with the same key creates no second event.",
)
@click.option(
    "--deliver-at",
    callback=read_future,
    metavar="TIME",
    help="Do not deliver before this time, or before this much time has passed, such as 2h.",
)
@click.option("--wait", is_flag=True, help="Follow the event until all its deliveries have ended.")
@click.option(
    "--timeout",
    callback=read_span,
    default="1m",
    show_default=True,
    metavar="DURATION",
    help="With --wait: how long to follow it, such as 30s or 10m.",
)
@url_option
@json_option
def send(
    event_type: str,
    payload: str,
    wait: bool,
    timeout: float,
    url: str | None,
    as_json: bool,
    **fields: str | None,
) -> None:
    """Publish an event. PAYLOAD is JSON; if omitted, it is read from standard input.

    With --wait each change is printed on standard error, the final state of each delivery on standard output. Exits
    with 0 if all were delivered, with 1 if one was not or the time is up.
    """
    from hookline.validate.names import check_account, check_idempotency_key, check_type

    with Errors():
        check_type(event_type)
        for name, check in (("account", check_account), ("idempotency_key", check_idempotency_key)):
            if fields[name] is not None:
                check(fields[name])
        if payload == "-" and sys.stdin.isatty():
            click.echo("Type the payload as JSON and end it with Ctrl-D.", err=True)
        given = sys.stdin.buffer.read() if payload == "-" else payload.encode()
        said = {"type": event_type} | {name: value for name, value in fields.items() if value is not None}
        # Built by hand, so that the payload's bytes stay as they are.
        body = json.dumps(said)[:-1].encode() + b', "payload": ' + _one_value(given) + b"}"
        client = connect(url)
        event = client.post("/v1/events", body)
        if wait:
            _follow(client, event, timeout=timeout, as_json=as_json)
            return
        with although(f"{event['id']} is published"):
            if as_json:
                print_json(event)
                return
            click.echo(event["id"])
        again = "; this event was published before" if event["duplicate"] else ""
        click.echo(f"{counted(event['deliveries'], 'delivery', 'deliveries')}{again}.", err=True)


def _follow(client: "Client", event: dict[str, Any], *, timeout: float, as_json: bool) -> None:
    from hookline.cli.event_progress import check_all_delivered, follow_event
    from hookline.cli.printing.columns import delivery_columns
    from hookline.cli.printing.table import print_list
    from hookline.cli.printing.times import span

    number = counted(event["deliveries"], "delivery", "deliveries")
    click.echo(f"{event['id']} is published: {number}.", err=True)
    try:
        found = follow_event(client, event["id"], timeout=timeout)
    except CommandError as error:
        raise CommandError(
            f"{event['id']} is published, but cannot be followed: {error}", error.exit_status
        ) from None
    if as_json:
        print_json({**event, "final_deliveries": found})
    elif found:
        print_list(found, delivery_columns(client, utc=False), as_json=False)
    check_all_delivered(found, timeout=span(timeout))


def _one_value(text: bytes) -> bytes:
    from hookline.errors import Unreadable
    from hookline.validate import payload

    value = text.strip(b" \t\r\n")
    try:
        payload.check(value, sys.maxsize)  # the size limit is a setting of the server
    except Unreadable as error:
        if error.code == "too_deep":
            raise CommandError(f"the payload is invalid: {error.detail}", USAGE) from None
        raise CommandError(
            "the payload is not one JSON value (a string needs quotation marks).", USAGE
        ) from None
    return value
