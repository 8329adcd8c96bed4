"""Commands that manage API keys.

They work directly on the database, with or without a running server: whoever may write there needs no key.
"""

from typing import Any

import click

from hookline.cli.choices import SCOPES
from hookline.cli.confirm import must_agree
from hookline.cli.exits import Errors
from hookline.cli.options import database_option, json_option, settings, utc_option, yes_option
from hookline.cli.output import although, print_fields, print_json, printable, say
from hookline.cli.printing.columns import key_columns
from hookline.cli.printing.table import print_list


@click.group()
def keys() -> None:
    """Manage API keys."""


@keys.command()
@click.argument("name", default="")
@click.option(
    "--scope",
    "scopes",
    multiple=True,
    type=click.Choice(SCOPES),
    required=True,
    help="What the key may do; can be repeated. admin includes the others.",
)
@click.option("--account", help="Restrict the key to this account.")
@database_option
@json_option
def create(database: str | None, as_json: bool, **fields: Any) -> None:
    """Create an API key and print it. It is shown only once."""
    with Errors():
        from hookline.cli.database import keys

        made = keys.create(_database(database), {**fields, "scopes": sorted(set(fields["scopes"]))})
        with although(f"{made['id']} is created", step="the key was not shown: revoke it"):
            if as_json:
                print_json(made)
                return
            click.echo(made["key"])
        click.echo(f"{made['id']} is created. The key is shown only once; keep it in a safe place.", err=True)


@keys.command("list")
@utc_option
@database_option
@json_option
def list_keys(utc: bool, database: str | None, as_json: bool) -> None:
    """List API keys, newest first, without their values."""
    with Errors():
        from hookline.cli.database import keys

        print_list(keys.list_all(_database(database)), key_columns(utc=utc), as_json=as_json)


@keys.command()
@click.argument("key_id")
@database_option
@json_option
def show(key_id: str, database: str | None, as_json: bool) -> None:
    """Show a key's name, scopes and account, without its value."""
    with Errors():
        from hookline.cli.database import keys

        print_fields(keys.show(_database(database), key_id), as_json=as_json)


@keys.command()
@click.argument("key_id")
@yes_option
@database_option
@json_option
def revoke(key_id: str, yes: bool, database: str | None, as_json: bool) -> None:
    """Revoke a key permanently; every server refuses it within 5 seconds."""
    with Errors():
        from hookline.cli.database import keys

        where = _database(database)
        if not yes:
            key = keys.show(where, key_id)
            must_agree(f"Revoke {key['id']} ({key['hint']}… {printable(key['name'])})?", to="revoke")
        revoked = keys.revoke(where, key_id)
        say(f"{revoked['id']} is revoked.", revoked, as_json=as_json)


def _database(flag: str | None) -> str:
    return settings({"database": flag}).database
