"""Commands that seal and unseal the secrets in a database."""

from collections.abc import Awaitable, Callable
from typing import Any

import click

from hookline.cli.confirm import must_agree
from hookline.cli.exits import Errors
from hookline.cli.options import database_option, json_option, settings, yes_option
from hookline.cli.output import counted, say


@click.group()
def secrets() -> None:
    """Encrypt or decrypt the stored endpoint secrets."""


@secrets.command()
@database_option
@json_option
def seal(as_json: bool, **flags: Any) -> None:
    """Encrypt all stored endpoint secrets with the first key in HOOKLINE_SECRET_KEY."""
    with Errors():
        from hookline.admin.secrets import seal_all

        written = _run(flags, seal_all)
        say(f"Encrypted the secrets of {_endpoints(written)}.", {"sealed": written}, as_json=as_json)


@secrets.command()
@database_option
@yes_option
@json_option
def unseal(yes: bool, as_json: bool, **flags: Any) -> None:
    """Decrypt all stored endpoint secrets, so that they are stored in plain text."""
    with Errors():
        if not yes:
            must_agree("Store all endpoint secrets in plain text?", to="unseal")
        from hookline.admin.secrets import unseal_all

        written = _run(flags, unseal_all)
        say(f"Decrypted the secrets of {_endpoints(written)}.", {"unsealed": written}, as_json=as_json)


def _endpoints(number: int) -> str:
    return counted(number, "endpoint", "endpoints")


def _run(flags: dict[str, Any], work: Callable[..., Awaitable[int]]) -> int:
    found = settings(flags)
    import asyncio

    from hookline.admin.audit import acting
    from hookline.app import audit_of, store_for
    from hookline.cli.database.origin import command_line
    from hookline.crypto.sealing import Sealer

    async def run() -> int:
        store = store_for(found.database)
        await store.open(serve=False)
        try:
            with acting(command_line()):
                return await work(store, Sealer(found.secret_key), audit_of())
        finally:
            await store.close()

    return asyncio.run(run())
