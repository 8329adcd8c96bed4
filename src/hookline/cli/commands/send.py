"""The command that publishes an event."""

import json
import sys

import click

from hookline.cli.exits import USAGE, CommandError, Errors
from hookline.cli.options import connect, json_option, read_future, url_option
from hookline.cli.output import although, counted, print_json


@click.command()
@click.argument("event_type", metavar="TYPE")
@click.argument("payload", default="-")
@click.option("--account", help="Whose event it is.")
@click.option(
    "--idempotency-key", metavar="KEY", help="Your own name for it: sent once, however often repeated."
)
@click.option(
    "--deliver-at",
    callback=read_future,
    metavar="TIME",
    help="Not before this: a time, or in how long, such as 2h.",
)
@url_option
@json_option
def send(event_type: str, payload: str, url: str | None, as_json: bool, **fields: str | None) -> None:
    """Publish an event. PAYLOAD is JSON; read from standard input without it."""
    from hookline.validate.names import check_account, check_idempotency_key, check_type

    with Errors():
        check_type(event_type)
        for name, check in (("account", check_account), ("idempotency_key", check_idempotency_key)):
            if fields[name] is not None:
                check(fields[name])
        if payload == "-" and sys.stdin.isatty():
            click.echo("Type the payload, a JSON value, and end it with Ctrl-D.", err=True)
        given = sys.stdin.buffer.read() if payload == "-" else payload.encode()
        said = {"type": event_type} | {name: value for name, value in fields.items() if value is not None}
        # Built by hand, so that the payload's bytes stay as they are.
        body = json.dumps(said)[:-1].encode() + b', "payload": ' + _one_value(given) + b"}"
        event = connect(url).post("/v1/events", body)
        with although(f"{event['id']} is published"):
            if as_json:
                print_json(event)
                return
            click.echo(event["id"])
        again = ", published before" if event["duplicate"] else ""
        click.echo(f"{counted(event['deliveries'], 'delivery', 'deliveries')}{again}.", err=True)


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
            "the payload is not one JSON value (a text needs quotation marks).", USAGE
        ) from None
    return value
