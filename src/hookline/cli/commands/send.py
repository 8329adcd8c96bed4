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
@url_option
@json_option
def send(event_type: str, payload: str, url: str | None, as_json: bool, **fields: str | None) -> None:
    """Publish an event. PAYLOAD is JSON; if omitted, it is read from standard input."""
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
        event = connect(url).post("/v1/events", body)
        with although(f"{event['id']} is published"):
            if as_json:
                print_json(event)
                return
            click.echo(event["id"])
        again = "; this event was published before" if event["duplicate"] else ""
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
            "the payload is not one JSON value (a string needs quotation marks).", USAGE
        ) from None
    return value
