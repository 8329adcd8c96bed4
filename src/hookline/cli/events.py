"""What can be seen of events, and how are they brought once more, from a shell?"""

from typing import Any
from urllib.parse import quote

import click

from hookline.cli.exits import Errors
from hookline.cli.options import connect, json_option, url_option
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
