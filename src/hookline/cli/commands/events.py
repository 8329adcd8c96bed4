"""Commands that show and replay events."""

from typing import TYPE_CHECKING, Any

import click

from hookline.cli.choices import FINISHED, state_option
from hookline.cli.exits import NOT_FOUND, CommandError, Errors
from hookline.cli.options import (
    connect,
    dry_run_option,
    json_option,
    limit_option,
    read_account,
    read_id,
    read_past,
    read_type,
    url_option,
    utc_option,
)
from hookline.cli.output import counted, print_fields, print_json
from hookline.cli.printing.columns import attempt_columns, delivery_columns, event_columns
from hookline.cli.printing.short_ids import WHOLE, whole_id
from hookline.cli.printing.table import print_list

if TYPE_CHECKING:
    from hookline.cli.client import Client


@click.group()
def events() -> None:
    """List events, their deliveries and attempts."""


@events.command("list")
@click.option("--type", callback=read_type, help="Only events of this type.")
@click.option("--account", callback=read_account, help="Only events of this account.")
@click.option("--idempotency-key", metavar="KEY", help="Only events with this idempotency key.")
@click.option(
    "--since",
    callback=read_past,
    metavar="TIME",
    help="Only events published after this time, or less than this long ago, such as 2h.",
)
@click.option(
    "--until",
    callback=read_past,
    metavar="TIME",
    help="Only events published before this time, or more than this long ago.",
)
@limit_option
@utc_option
@url_option
@json_option
def list_events(limit: int, utc: bool, url: str | None, as_json: bool, **filter: Any) -> None:
    """List events, newest first."""
    with Errors():
        found = connect(url).pages("/v1/events", limit=limit, **filter)
        print_list(found, event_columns(utc=utc), as_json=as_json)


@events.command()
@click.argument("event_id")
@url_option
@json_option
def show(event_id: str, url: str | None, as_json: bool) -> None:
    """Show an event with its payload."""
    with Errors():
        client = connect(url)
        try:
            found = client.get(f"/v1/events/{whole_id(client, 'event', event_id)}")
        except CommandError as error:
            raise _refused_row(client, event_id, error) from None
        print_fields(found, as_json=as_json)


def _refused_row(client: "Client", event_id: str, error: CommandError) -> CommandError:
    """What to say if there is no such event: a row of an outbox with this id may have been refused."""
    if error.exit_status != NOT_FOUND or len(event_id.partition("_")[2]) != WHOLE:
        return error
    try:
        client.get(f"/v1/outbox/refused/{event_id}")
    except CommandError:
        return error
    return CommandError(
        f"{event_id} was published in an outbox and refused: hookline outbox show {event_id}", NOT_FOUND
    )


@events.command()
@click.argument("event_id")
@state_option
@limit_option
@utc_option
@url_option
@json_option
def deliveries(
    event_id: str, state: str | None, limit: int, utc: bool, url: str | None, as_json: bool
) -> None:
    """List an event's deliveries, one for each subscribed endpoint."""
    with Errors():
        client = connect(url)
        path = f"/v1/events/{whole_id(client, 'event', event_id)}/deliveries"
        found = client.pages(path, limit=limit, state=state)
        print_list(found, delivery_columns(client, utc=utc), as_json=as_json)


@events.command()
@click.argument("event_id")
@limit_option
@utc_option
@url_option
@json_option
def attempts(event_id: str, limit: int, utc: bool, url: str | None, as_json: bool) -> None:
    """List the attempts of an event's deliveries, newest first."""
    with Errors():
        client = connect(url)
        found = client.pages(f"/v1/events/{whole_id(client, 'event', event_id)}/attempts", limit=limit)
        print_list(found, attempt_columns(utc=utc), as_json=as_json)


@click.command()
@click.argument("event_id")
@click.option(
    "--endpoint", "endpoint_id", callback=read_id, metavar="ID", help="Only the delivery to this endpoint."
)
@click.option(
    "--state",
    "states",
    multiple=True,
    type=click.Choice(FINISHED),
    help="Only deliveries in this state; can be repeated.",
)
@dry_run_option
@url_option
@json_option
def replay(
    event_id: str,
    endpoint_id: str | None,
    states: tuple[str, ...],
    dry_run: bool,
    url: str | None,
    as_json: bool,
) -> None:
    """Replay an event's finished deliveries. Finished means delivered, dead or cancelled."""
    with Errors():
        client = connect(url)
        path = f"/v1/events/{whole_id(client, 'event', event_id)}"
        if endpoint_id is not None:
            endpoint_id = whole_id(client, "endpoint", endpoint_id)
        if dry_run:
            found = [
                each["id"]
                for each in client.pages(f"{path}/deliveries", limit=None)
                if endpoint_id in (None, each["endpoint_id"]) and each["state"] in (states or FINISHED)
            ]
            answer: dict[str, Any] = {"replayed": len(found), "deliveries": found}
            done = "would be replayed"
        else:
            body: dict[str, Any] = {} if endpoint_id is None else {"endpoint_id": endpoint_id}
            if states:
                body["states"] = list(states)
            answer = client.post(f"{path}/replay", body)
            done = "replayed"
        if as_json:
            print_json(answer)
            return
        click.echo(f"{counted(answer['replayed'], 'delivery', 'deliveries')} {done}.", err=True)
        for id in answer["deliveries"]:
            click.echo(id)
