"""How are endpoints managed from a shell?"""

import json
from typing import Any

import click

from hookline.cli.asking import must_agree
from hookline.cli.exits import USAGE, CommandError, Errors
from hookline.cli.options import (
    connect,
    dry_run_option,
    json_option,
    limit_option,
    path_step,
    url_option,
    yes_option,
)
from hookline.cli.showing import print_fields, print_rows, printable, say

COLUMNS = ("id", "account", "url", "events", "enabled", "paused", "circuit_state.state")


@click.group()
def endpoints() -> None:
    """Endpoints: who gets which events."""


@endpoints.command("list")
@click.option("--account", help="Of this account.")
@click.option("--enabled/--disabled", default=None, help="Only those.")
@click.option("--circuit", help="Whose circuit is closed, open or half_open.")
@click.option("--type", "event_type", help="That get events of this type.")
@limit_option
@url_option
@json_option
def list_endpoints(limit: int, url: str | None, as_json: bool, **filter: Any) -> None:
    """Print endpoints, newest first."""
    with Errors():
        print_rows(connect(url).pages("/v1/endpoints", limit=limit, **filter), COLUMNS, as_json=as_json)


def _fields(command: Any) -> Any:
    for option in (
        click.option("--field", "fields", multiple=True, metavar="NAME=JSON", help="Any field of the API."),
        click.option(
            "--retry", metavar="PRESET|JSON", help="Such as brisk, [0, 5, 60], or the API's object."
        ),
        click.option("--rate", type=float, metavar="N", help="Requests per second at most."),
        click.option("--signing", help="standard or classic."),
        click.option("--ordering", help="parallel or strict."),
        click.option("--header", "headers", multiple=True, metavar="NAME:VALUE", help="A header to send."),
        click.option("--description", help="For people."),
        click.option("--event", "events", multiple=True, metavar="PATTERN", help="Such as 'order.*' or '*'."),
    ):
        command = option(command)
    return command


@endpoints.command()
@click.argument("endpoint_url", metavar="URL")
@click.option("--account", help="Whose endpoint it is.")
@_fields
@url_option
@json_option
def create(endpoint_url: str, account: str | None, url: str | None, as_json: bool, **options: Any) -> None:
    """Add an endpoint. Prints its secret, this once."""
    with Errors():
        said = {"url": endpoint_url, **({} if account is None else {"account": account}), **_said(**options)}
        print_fields(connect(url).post("/v1/endpoints", said), as_json=as_json)


@endpoints.command()
@click.argument("endpoint_id")
@click.option("--to", "endpoint_url", metavar="URL", help="The new URL.")
@_fields
@url_option
@json_option
def update(
    endpoint_id: str, endpoint_url: str | None, url: str | None, as_json: bool, **options: Any
) -> None:
    """Change what the options name."""
    with Errors():
        said = {**({} if endpoint_url is None else {"url": endpoint_url}), **_said(**options)}
        if not said:
            raise CommandError("say what to change, such as --retry or --field timeout_ms=5000.", USAGE)
        print_fields(connect(url).patch(_path(endpoint_id), said), as_json=as_json)


@endpoints.command()
@click.argument("endpoint_id")
@url_option
@json_option
def show(endpoint_id: str, url: str | None, as_json: bool) -> None:
    """Print an endpoint."""
    with Errors():
        print_fields(connect(url).get(_path(endpoint_id)), as_json=as_json)


@endpoints.command()
@click.argument("endpoint_id")
@dry_run_option
@yes_option
@url_option
def delete(endpoint_id: str, dry_run: bool, yes: bool, url: str | None) -> None:
    """Delete an endpoint; its pending deliveries are cancelled."""
    with Errors():
        client = connect(url)
        if dry_run or not yes:
            endpoint = client.get(_path(endpoint_id))
            named = f"{endpoint['id']} ({printable(endpoint['url'])})"
            if dry_run:
                click.echo(f"{named} would be deleted, and what waits for it cancelled.")
                return
            must_agree(f"Delete {named} and cancel what waits for it?", to="delete")
        client.delete(_path(endpoint_id))


def _verb(name: str, path: str, help: str) -> None:
    @endpoints.command(name, help=help)
    @click.argument("endpoint_id")
    @url_option
    @json_option
    def change(endpoint_id: str, url: str | None, as_json: bool) -> None:
        with Errors():
            endpoint = connect(url).post(f"{_path(endpoint_id)}/{path}")
            state = "enabled" if endpoint["enabled"] else "disabled"
            paused = ", paused" if endpoint["paused"] else ""
            circuit = endpoint["circuit_state"]["state"]
            say(f"{endpoint['id']} is {state}{paused}, circuit {circuit}.", endpoint, as_json=as_json)


_verb("pause", "pause", "Send nothing until it is resumed; deliveries wait.")
_verb("resume", "resume", "Send again.")
_verb("enable", "enable", "Give it events, and send what waits.")
_verb("disable", "disable", "Give it no new events; what is pending waits.")
_verb("reset-circuit", "circuit/reset", "Close its circuit: try again now.")


def _said(
    *,
    events: tuple[str, ...],
    description: str | None,
    headers: tuple[str, ...],
    ordering: str | None,
    signing: str | None,
    rate: float | None,
    retry: str | None,
    fields: tuple[str, ...],
) -> dict[str, Any]:
    said: dict[str, Any] = {
        "events": list(events) or None,
        "description": description,
        "headers": dict(_split(each, ":", "--header") for each in headers) or None,
        "ordering": ordering,
        "signing": signing,
        "rate_limit": None if rate is None else {"per_second": rate},
        "retry": None if retry is None else _retry(retry),
    }
    said = {name: value for name, value in said.items() if value is not None}
    for each in fields:
        name, value = _split(each, "=", "--field")
        said[name] = _json(value, "--field")
    return said


def _retry(text: str) -> Any:
    if not text.lstrip().startswith(("{", "[")):
        return {"preset": text}
    policy = _json(text, "--retry")
    return {"schedule": policy} if isinstance(policy, list) else policy


def _json(text: str, option: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        raise CommandError(
            f"{option}: {text[:100]!r} is not JSON (a text needs quotation marks).", USAGE
        ) from None


def _split(text: str, mark: str, option: str) -> tuple[str, str]:
    name, found, value = text.partition(mark)
    if not found or not name:
        raise CommandError(f"{option}: {text[:100]!r} has no {mark!r} in it.", USAGE)
    return name.strip(), value.strip()


def _path(endpoint_id: str) -> str:
    return f"/v1/endpoints/{path_step(endpoint_id)}"
