"""Checks that endpoints' secrets are sealed at rest and that this key opens them."""

from collections.abc import Iterator, Sequence

from hookline.cli.checks.findings import Finding, bad, ok, warn
from hookline.cli.output import counted
from hookline.config import PREFIX
from hookline.crypto.sealing import Sealer
from hookline.errors import SealBroken
from hookline.store.contract.doctor import Examination

KEY = f"{PREFIX}SECRET_KEY"


def check_secret_key(keys: Sequence[str], found: Examination | None) -> Iterator[Finding]:
    """Check by what the database holds; None means that it could not be read."""
    sealer = Sealer(keys)
    sealed = () if found is None else found.sealed
    closed = sum(not _opens(sealer, text, of=id) for id, text in sealed)
    is_other = sealer.seals and found is not None and not sealer.opens_mark(found.seal)
    if not keys and closed:
        yield bad(
            "secret_key",
            f"the database holds sealed secrets ({closed:,}), and {KEY} is not set: nothing can be delivered",
            f"set {KEY} to the key they were sealed with",
        )
    elif closed or is_other:
        yield bad(
            "secret_key",
            f"{KEY} is not the key that this database's secrets are sealed with: nothing can be delivered",
            f"set {KEY} to that key; to change keys, to the new one and that one, separated by a comma",
        )
    elif not keys:
        yield warn(
            "secret_key",
            "without a key endpoints' secrets are stored as they are",
            f"set {KEY}, keep it apart from the database, and run `hookline secrets seal`",
        )
    elif found is not None and found.plain:
        endpoints = counted(found.plain, "endpoint", "endpoints")
        yield warn(
            "secret_key",
            f"secrets of {endpoints} are stored as they are, from before there was a key",
            "run `hookline secrets seal`",
        )
    else:
        yield ok("secret_key", "endpoints' secrets are sealed")


def _opens(sealer: Sealer, text: str, *, of: bytes) -> bool:
    try:
        sealer.open(text, of=of)
    except SealBroken:
        return False
    return True
