"""Reads the limits that a publish is checked against before it is written.

The server checks again, against its own settings. Where those differ from the defaults, the application has the same
variables.
"""

import os
from functools import cache
from typing import NamedTuple

from hookline.errors import ConfigError

MOST_DRAFTS = 1_000


class PublishLimits(NamedTuple):
    payload_bytes: int
    batch_bytes: int
    hops: int


@cache
def publish_limits() -> PublishLimits:
    """The limits, read at the first publish."""
    return PublishLimits(
        payload_bytes=_whole("HOOKLINE_PAYLOAD_LIMIT_BYTES", 1_048_576, low=1, high=64 << 20),
        batch_bytes=_whole("HOOKLINE_BATCH_LIMIT_BYTES", 16_777_216, low=1, high=256 << 20),
        hops=_whole("HOOKLINE_MAX_HOPS", 3, low=0, high=100),
    )


def _whole(name: str, default: int, *, low: int, high: int) -> int:
    text = os.environ.get(name)
    if text is None:
        return default
    if not (text.isascii() and text.isdecimal() and len(text) < 12 and low <= int(text) <= high):
        raise ConfigError(f"{name} is a whole number from {low:,} to {high:,}.")
    return int(text)
