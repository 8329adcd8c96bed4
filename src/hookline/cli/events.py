"""How are events published, and brought once more, from a shell?"""

import json
import sys
from typing import Any
from urllib.parse import quote

import click

from hookline.cli.exits import USAGE, CommandError, Errors
from hookline.cli.options import connect, json_option, read_future, url_option
from hookline.cli.showing import print_json


@click.command()
@click.argument("event_id")
@click.option("--endpoint", "endpoint_id", metavar="ID", help="Only the delivery to this endpoint.")
@click.option("--state", "states", multiple=True, help="Only those that are delivered, dead or cancelled.")
@url_option
@json_option
def replay(
    event_id: str, endpoint_id: str | None, states: tuple[str, ...], url: str | None, as_json: bool
) -> None:
    """Bring an event's deliveries once more, whatever became of them."""
    with Errors():
        body: dict[str, Any] = {} if endpoint_id is None else {"endpoint_id": endpoint_id}
        if states:
            body["states"] = list(states)
        answer = connect(url).post(f"/v1/events/{quote(event_id, safe='')}/replay", body)
        if as_json:
            print_json(answer)
            return
        click.echo(f"{answer['replayed']:,} replayed.", err=True)
        for id in answer["deliveries"]:
            click.echo(id)


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
    with Errors():
        given = sys.stdin.buffer.read() if payload == "-" else payload.encode()
        said = {"type": event_type} | {name: value for name, value in fields.items() if value is not None}
        # Put together by hand, so that the payload's bytes stay as they are.
        body = json.dumps(said)[:-1].encode() + b', "payload": ' + _one_value(given) + b"}"
        event = connect(url).post("/v1/events", body)
        if as_json:
            print_json(event)
            return
        click.echo(event["id"])
        again = ", published before" if event["duplicate"] else ""
        click.echo(f"{event['deliveries']:,} deliveries{again}.", err=True)


def _one_value(text: bytes) -> bytes:
    try:
        json.loads(text)
    except ValueError:
        raise CommandError(
            "the payload is not one JSON value (a text needs quotation marks).", USAGE
        ) from None
    return text.strip()
