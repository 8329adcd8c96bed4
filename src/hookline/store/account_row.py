"""Reads the stored settings of an account."""

import msgspec

from hookline.model import Notify


def notify_of(stored: str) -> Notify:
    """Where an account is notified. What cannot be read is nowhere: one bad row must not stop the others."""
    try:
        return msgspec.json.decode(stored, type=Notify)
    except (msgspec.DecodeError, UnicodeDecodeError, TypeError):
        return Notify()
