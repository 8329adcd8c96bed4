"""Commands that seal and unseal the secrets in a database."""

from collections.abc import Awaitable, Callable
from typing import Any

import click

from hookline.cli.confirm import must_agree
from hookline.cli.exits import Errors
from hookline.cli.options import database_option, json_option, settings, yes_option
from hookline.cli.output import say


@click.group()
def secrets() -> None:
    """Secrets in the database: sealed with HOOKLINE_SECRET_KEY, or plain."""


@secrets.command()
@database_option
@json_option
def seal(as_json: bool, **flags: Any) -> None:
    """Seal every endpoint's secret with the first key of HOOKLINE_SECRET_KEY."""
    with Errors():
        from hookline.admin.secrets import seal_all

        written = _run(flags, seal_all)
        say(f"{written} endpoints sealed.", {"sealed": written}, as_json=as_json)


@secrets.command()
@database_option
@yes_option
@json_option
def unseal(yes: bool, as_json: bool, **flags: Any) -> None:
    """Store every endpoint's secret plain, as it is without a key."""
    with Errors():
        if not yes:
            must_agree("Store every secret plain?", to="unseal")
        from hookline.admin.secrets import unseal_all

        written = _run(flags, unseal_all)
        say(f"{written} endpoints unsealed.", {"unsealed": written}, as_json=as_json)


def _run(flags: dict[str, Any], work: Callable[..., Awaitable[int]]) -> int:
    found = settings(flags)
    import asyncio

    from hookline.app import store_for
    from hookline.crypto.sealing import Sealer

    async def run() -> int:
        store = store_for(found.database)
        await store.open(serve=False)
        try:
            return await work(store, Sealer(found.secret_key))
        finally:
            await store.close()

    return asyncio.run(run())
