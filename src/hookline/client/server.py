"""Holds the address of the server and the key for it."""

import os
from collections.abc import Mapping
from typing import Any

import msgspec

from hookline.client.call import ClientCall
from hookline.config import load
from hookline.errors import ConfigError
from hookline.version import VERSION

URL, KEY = "HOOKLINE_URL", "HOOKLINE_API_KEY"
USER_AGENT = f"hookline-client/{VERSION}"
LONGEST_S = 86_400.0

# Shorter than any server or load balancer keeps an idle connection: a request that is written into a connection
# that is being closed is lost, and so is a call that may not be repeated.
KEEP_IDLE_S = 15.0


class Server(msgspec.Struct, frozen=True, kw_only=True):
    """A server, and how long to wait for it."""

    url: str  # without a slash at the end
    key: str | None
    timeout: float  # seconds, for one try
    retry_for: float  # seconds after a call's first try in which another may begin

    def __repr__(self) -> str:
        return f"Server({self.url!r})"

    def headers(self, call: ClientCall[Any]) -> Mapping[str, str]:
        """The headers of a call."""
        headers = {"user-agent": USER_AGENT, "accept": "application/json", "accept-encoding": "identity"}
        if self.key is not None:
            headers["authorization"] = f"Bearer {self.key}"
        if call.body is not None:
            headers["content-type"] = "application/json"
        return {**headers, **call.headers}


def server(url: str | None, key: str | None, *, timeout: float, retry_for: float) -> Server:
    """The server from the arguments, otherwise from the environment; raises ConfigError if it is invalid."""
    for name, seconds in (("timeout", timeout), ("retry_for", retry_for)):
        if not isinstance(seconds, int | float):
            raise TypeError(f"{name} is a number of seconds, not {type(seconds).__name__}.")
        if not (name == "retry_for" and seconds == 0) and not 0 < seconds <= LONGEST_S:
            raise ConfigError(f"{name}: {seconds!r} is not valid; allowed: seconds up to {LONGEST_S:,g}.")
    for name, text in (("url", url), ("api_key", key)):
        if not isinstance(text, str | None):
            raise TypeError(f"{name} is a str or None, not {type(text).__name__}.")
    given = {URL: url if url is not None else os.environ.get(URL)}
    given[KEY] = key if key is not None else os.environ.get(KEY)
    settings = load(environ={name: value for name, value in given.items() if value})
    return Server(url=settings.url, key=settings.api_key, timeout=timeout, retry_for=retry_for)
