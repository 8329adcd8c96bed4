"""Describes a row's system while nothing is wrong with it."""

from collections.abc import Mapping
from typing import Any, NamedTuple

ENDPOINTS = 24
WORKERS = 3
TAKEOVER_S = 2.0
IN_FLIGHT = 100  # of one process
SLOWEST_S = 0.4
ENDPOINT = {"retry": {"schedule": [0.5] * 20, "jitter": "none"}, "circuit": None}


class Scene(NamedTuple):
    """How many processes and endpoints there are, and their settings."""

    workers: int = WORKERS  # beside the API; on SQLite there are none
    endpoints: int = ENDPOINTS
    endpoint: Mapping[str, Any] = ENDPOINT  # fields of each, beside its address, type and secret
    slowest_s: float = SLOWEST_S  # the receiver answers after a random time of at most this
    settings: Mapping[str, str] = {}  # of every hookline process, in addition to those of system.py
    proxied: bool = False  # workers reach the database through a proxy that can be cut
