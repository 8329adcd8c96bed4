"""Commands that seal, unseal and count the secrets in a database."""

import sys
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any, TypeVar

import click

from hookline.cli.confirm import must_agree
from hookline.cli.exits import Errors
from hookline.cli.options import database_option, json_option, settings, yes_option
from hookline.cli.output import counted, say

if TYPE_CHECKING:
    from hookline.admin.resealing import Rewritten, SealReport
    from hookline.config import Settings
    from hookline.crypto.sealing import Sealer
    from hookline.store.contract import Store

T = TypeVar("T")


@click.group()
def secrets() -> None:
    """Encrypt, decrypt or count the stored secrets."""


@secrets.command()
@database_option
@json_option
def seal(as_json: bool, **flags: Any) -> None:
    """Encrypt all stored secrets with the first key in HOOKLINE_SECRET_KEY."""
    with Errors():
        from hookline.admin.resealing import seal_all
        from hookline.app import audit_of

        written = _run(flags, lambda store, sealer, _: seal_all(store, sealer, audit_of()))
        found = {"sealed": written.endpoints, "accounts": written.accounts}
        say(f"Encrypted the secrets of {_owners(written)}.", found, as_json=as_json)


@secrets.command()
@database_option
@yes_option
@json_option
def unseal(yes: bool, as_json: bool, **flags: Any) -> None:
    """Decrypt all stored secrets, so that they are stored in plain text."""
    with Errors():
        if not yes:
            must_agree("Store all secrets in plain text?", to="unseal")
        from hookline.admin.resealing import unseal_all
        from hookline.app import audit_of

        written = _run(flags, lambda store, sealer, _: unseal_all(store, sealer, audit_of()))
        found = {"unsealed": written.endpoints, "accounts": written.accounts}
        say(f"Decrypted the secrets of {_owners(written)}.", found, as_json=as_json)


@secrets.command()
@database_option
@json_option
def status(as_json: bool, **flags: Any) -> None:
    """Count what is encrypted with which key; exit with 1 unless all of it is, with the first key."""
    with Errors():
        import msgspec

        from hookline.admin.resealing import count_seals

        report = _run(
            flags, lambda store, sealer, found: count_seals(store, sealer, keys=len(found.secret_key))
        )
        answer = {**msgspec.to_builtins(report), "older_keys_needed": not report.is_whole}
        say("\n".join(_sentences(report)), answer, as_json=as_json)
    sys.exit(0 if report.is_whole else 1)


def _sentences(report: "SealReport") -> list[str]:
    counts = (
        ("Encrypted with the first key", "current"),
        ("Encrypted with another key that is set", "older"),
        ("In plain text", "plain"),
        ("Encrypted with a key that is not set, or damaged", "closed"),
    )
    lines = [
        f"{what}: {_both(getattr(report.endpoints, name), getattr(report.accounts, name))}."
        for what, name in counts
        if name == "current" or getattr(report.endpoints, name) or getattr(report.accounts, name)
    ]
    return [*lines, _verdict(report)]


def _verdict(report: "SealReport") -> str:
    from hookline.crypto.sealing import Seal

    if not report.keys:
        return "HOOKLINE_SECRET_KEY is not set."
    if report.is_whole and report.keys > 1:
        return "Only the first key is needed. Remove the others when every process has this first key."
    if report.is_whole:
        return "All secrets are encrypted with this key."
    if report.mark is Seal.CLOSED or report.endpoints.closed or report.accounts.closed:
        return "Keep every key, and set the one that is missing."
    return "Keep every key, and run `hookline secrets seal`."


def _owners(written: "Rewritten") -> str:
    endpoints = counted(written.endpoints, "endpoint", "endpoints")
    if not written.accounts:
        return endpoints
    return f"{endpoints} and {counted(written.accounts, 'account', 'accounts')}"


def _both(endpoints: int, accounts: int) -> str:
    return f"{counted(endpoints, 'endpoint', 'endpoints')}, {counted(accounts, 'account', 'accounts')}"


def _run(flags: dict[str, Any], work: Callable[["Store", "Sealer", "Settings"], Awaitable[T]]) -> T:
    found = settings(flags)
    import asyncio

    from hookline.admin.audit import acting
    from hookline.app import store_for
    from hookline.cli.database.origin import command_line
    from hookline.crypto.sealing import Sealer

    async def run() -> T:
        store = store_for(found.database)
        await store.open(serve=False)
        try:
            with acting(command_line()):
                return await work(store, Sealer(found.secret_key), found)
        finally:
            await store.close()

    return asyncio.run(run())
