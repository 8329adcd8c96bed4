"""Checks that secrets are sealed at rest and that this key opens them."""

from collections.abc import Iterator, Sequence

from hookline.cli.doctor.findings import Finding, bad, ok, warn
from hookline.cli.output import counted
from hookline.config import PREFIX
from hookline.crypto.sealing import Seal, Sealer
from hookline.errors import SealBroken
from hookline.store.contract.doctor import Examination

KEY = f"{PREFIX}SECRET_KEY"


def check_secret_key(keys: Sequence[str], found: Examination | None) -> Iterator[Finding]:
    """Check by what the database holds; None means that it could not be read."""
    if found is not None and "secrets" in found.unanswered:
        return
    sealer = Sealer(keys)
    sealed = () if found is None else found.sealed
    closed = sum(not _opens(sealer, text, of=id) for id, text in sealed)
    # The values of headers are known of the endpoints that were read.
    endpoints = [] if found is None else [sealer.seals_of(each) for each in found.endpoints]
    accounts = [] if found is None else [sealer.seals_of(each) for each in found.notified]
    closed = max(closed, _count(endpoints, Seal.CLOSED)) + _count(accounts, Seal.CLOSED)
    plain = max(0 if found is None else found.plain, _count(endpoints, Seal.PLAIN))
    plain_accounts = _count(accounts, Seal.PLAIN)
    is_other = sealer.seals and found is not None and not sealer.opens_mark(found.seal)
    if not keys and closed:
        yield bad(
            "secret_key",
            f"the database has encrypted secrets ({closed:,}), but {KEY} is not set: nothing can be delivered",
            f"set {KEY} to the key that encrypted them",
        )
    elif closed or is_other:
        yield bad(
            "secret_key",
            f"{KEY} is not the key that encrypted the secrets in this database: nothing can be delivered",
            f"set {KEY} to that key; to change keys, set it to the new key and that key, separated by a comma",
        )
    elif not keys:
        yield warn(
            "secret_key",
            "secrets are stored in plain text",
            f"set {KEY}, keep it apart from the database, and run `hookline secrets seal` to encrypt them",
        )
    elif plain or plain_accounts:
        yield warn(
            "secret_key",
            f"the secrets of {_owners(plain, plain_accounts)} are still stored in plain text",
            "run `hookline secrets seal` to encrypt them",
        )
    else:
        yield ok("secret_key", "secrets are encrypted")


def _count(found: Sequence[frozenset[Seal]], seal: Seal) -> int:
    return sum(seal in each for each in found)


def _owners(endpoints: int, accounts: int) -> str:
    named = (
        (endpoints, counted(endpoints, "endpoint", "endpoints")),
        (accounts, counted(accounts, "account", "accounts")),
    )
    return " and ".join(said for number, said in named if number)


def _opens(sealer: Sealer, text: str, *, of: bytes) -> bool:
    try:
        sealer.open(text, of=of)
    except SealBroken:
        return False
    return True
