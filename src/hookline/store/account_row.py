"""Reads the stored settings of an account."""

import msgspec

from hookline.model import Notify
from hookline.store import spoiled_rows


def notify_of(stored: str, *, account: object = None) -> Notify:
    """Where an account is notified. What cannot be read is nowhere: one bad row must not stop the others."""
    try:
        return msgspec.json.decode(stored, type=Notify)
    except (msgspec.DecodeError, UnicodeDecodeError, TypeError, RecursionError):
        spoiled_rows.note("Account", account, "notify")
        return Notify()
