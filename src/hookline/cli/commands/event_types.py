"""Commands that describe event types."""

from typing import IO, TYPE_CHECKING, Any

import click

from hookline.cli.confirm import must_agree
from hookline.cli.exits import NOT_FOUND, USAGE, CommandError, Errors
from hookline.cli.options import (
    checked,
    connect,
    dry_run_option,
    json_option,
    json_value,
    limit_option,
    url_option,
    utc_option,
    yes_option,
)
from hookline.cli.output import print_fields, say
from hookline.cli.printing.columns import event_type_columns
from hookline.cli.printing.table import print_list

if TYPE_CHECKING:
    from hookline.cli.client import Client


@click.group()
def event_types() -> None:
    """Describe event types and set their JSON Schemas."""


@event_types.command("list")
@limit_option
@utc_option
@url_option
@json_option
def list_event_types(limit: int, utc: bool, url: str | None, as_json: bool) -> None:
    """List the described event types."""
    with Errors():
        found = connect(url).pages("/v1/event-types", limit=limit)
        print_list(found, event_type_columns(utc=utc), as_json=as_json)


@event_types.command()
@click.argument("name")
@url_option
@json_option
def show(name: str, url: str | None, as_json: bool) -> None:
    """Show a type's description and schema."""
    with Errors():
        print_fields(connect(url).get(_path(name)), as_json=as_json)


@event_types.command("set")
@click.argument("name")
@click.option("--description", help="Text that describes the type.")
@click.option(
    "--schema",
    type=click.File("rb"),
    metavar="FILE",
    help="JSON Schema file (- for standard input); payloads that do not match are refused.",
)
@click.option("--no-schema", is_flag=True, help="Remove the schema; any payload is accepted.")
@url_option
@json_option
def set_event_type(
    name: str,
    description: str | None,
    schema: IO[bytes] | None,
    no_schema: bool,
    url: str | None,
    as_json: bool,
) -> None:
    """Set a type's description or schema; the rest stays as it is."""
    with Errors():
        if schema is not None and no_schema:
            raise CommandError("use either --schema or --no-schema.", USAGE)
        given = None if schema is None else json_value(schema.read(), option="--schema")
        client = connect(url)
        found = _known(client, name)
        said: dict[str, Any] = {each: found[each] for each in ("description", "schema") if found.get(each)}
        if description is not None:
            said["description"] = description
        if given is not None:
            said["schema"] = given
        if no_schema:
            said.pop("schema", None)
        print_fields(client.put(_path(name), said), as_json=as_json)


@event_types.command()
@click.argument("name")
@dry_run_option
@yes_option
@url_option
@json_option
def delete(name: str, dry_run: bool, yes: bool, url: str | None, as_json: bool) -> None:
    """Delete a type's description and schema; its events can still be published."""
    with Errors():
        client = connect(url)
        if dry_run or not yes:
            found = client.get(_path(name))
            if dry_run:
                said = {"name": found["name"], "deleted": False}
                say(f"The description and schema of {found['name']} would be deleted.", said, as_json=as_json)
                return
            must_agree(f"Delete the description and schema of {found['name']}?", to="delete")
        client.delete(_path(name))
        say(
            f"The description and schema of {name} are deleted.",
            {"name": name, "deleted": True},
            as_json=as_json,
        )


def _known(client: "Client", name: str) -> dict[str, Any]:
    """The description of the type so far; empty if there is none."""
    try:
        found: dict[str, Any] = client.get(_path(name))
    except CommandError as error:
        if error.exit_status == NOT_FOUND:
            return {}
        raise
    return found


def _path(name: str) -> str:
    from hookline.validate.names import check_type

    return f"/v1/event-types/{checked(name, check_type)}"
