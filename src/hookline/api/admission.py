"""Who may call the API?

Whoever has the key. In development mode everybody on this machine; there the Host header must be a local
one, or any web page could reach the server through a name that its owner points at 127.0.0.1.
"""

import hashlib
import hmac
import re
from collections.abc import Iterable

from hookline.api.problem import Refused
from hookline.config import Settings
from hookline.errors import ConfigError

_LOCAL = re.compile(rb"(?:localhost|127\.[0-9.]+|\[::1\])(?::[0-9]+)?", re.IGNORECASE)


class Admission:
    """Checks the caller by the headers of a request."""

    def __init__(self, settings: Settings) -> None:
        if not settings.dev and settings.api_key is None:
            raise ConfigError("HOOKLINE_API_KEY: outside --dev the API needs a key; set it.")
        self._dev = settings.dev
        self._digest = hashlib.sha256((settings.api_key or "").encode()).digest()

    def check(self, headers: Iterable[tuple[bytes, bytes]]) -> None:
        """Raise unless the caller may go on."""
        if self._dev:
            self._check_host(headers)
            return
        key = b""
        for name, value in headers:
            if name == b"authorization":
                if key:
                    raise _unauthenticated()
                key = value
        # Compared as digests: neither the length nor the place of the first difference shows in the time taken.
        digest = hashlib.sha256(key[7:].strip()).digest()
        if not hmac.compare_digest(digest, self._digest) or key[:7].lower() != b"bearer ":
            raise _unauthenticated()

    def _check_host(self, headers: Iterable[tuple[bytes, bytes]]) -> None:
        for name, value in headers:
            if name == b"host" and not _LOCAL.fullmatch(value):
                raise Refused("forbidden", "In development mode only requests to localhost are answered.")


def _unauthenticated() -> Refused:
    return Refused("unauthenticated", "Send the API key as 'Authorization: Bearer <key>'.")
