"""Makes the TLS contexts of requests: whom they trust, and the certificate that they show."""

import re
import ssl
from collections.abc import Callable
from pathlib import Path

from hookline.crypto import client_certificate
from hookline.errors import ConfigError
from hookline.pipeline.sending.contract import ClientIdentity

MOST_KEPT = (
    64  # contexts with a certificate: each holds the machine's authorities, and takes most of a megabyte
)

_CERTIFICATE = re.compile(rb"-----BEGIN CERTIFICATE-----\s[A-Za-z0-9+/=\s]+-----END CERTIFICATE-----")


class TlsContexts:
    """One context for requests without a certificate, and one for each certificate that was used lately."""

    def __init__(
        self, make: Callable[[], ssl.SSLContext] | None = None, *, plain: ssl.SSLContext | None = None
    ) -> None:
        self._make = make or default_context
        self._plain = plain or self._make()
        self._kept: dict[str, ssl.SSLContext] = {}  # the one used longest ago first

    def of(self, identity: ClientIdentity | None) -> ssl.SSLContext:
        """The context of requests that show this certificate; raises ssl.SSLError or ValueError if it cannot be used."""
        if identity is None:
            return self._plain
        context = self._kept.pop(identity.digest, None)
        if context is None:
            context = self._make()
            client_certificate.load(context, identity.pem)
            if len(self._kept) >= MOST_KEPT:
                del self._kept[next(iter(self._kept))]
        self._kept[identity.digest] = context
        return context


def default_context() -> ssl.SSLContext:
    """Certificates checked against the machine's authorities, names checked, TLS 1.2 or later."""
    context = ssl.create_default_context()
    context.minimum_version = (
        ssl.TLSVersion.TLSv1_2
    )  # Debian's Python leaves it to the machine's configuration
    context.options |= ssl.OP_NO_RENEGOTIATION  # a receiver could ask for it without end
    context.set_alpn_protocols(["http/1.1"])
    return context


def trusting(authorities: str) -> Callable[[], ssl.SSLContext]:
    """Makes contexts that trust these authorities too."""

    def make() -> ssl.SSLContext:
        context = default_context()
        context.load_verify_locations(cadata=authorities)
        return context

    return make


def read_authorities(path: str) -> str:
    """The certificates in a file of authorities; `ConfigError` if it cannot be used."""
    try:
        content = Path(path).read_bytes()
    except OSError as error:
        raise ConfigError(f"ca_file: {path} cannot be read: {error.strerror}.") from None
    found = _CERTIFICATE.findall(content)
    if not found:
        raise ConfigError(f"ca_file: {path} has no certificate in PEM form.")
    authorities = b"\n".join(found).decode("ascii")
    try:
        ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT).load_verify_locations(cadata=authorities)
    except (ssl.SSLError, ValueError):
        raise ConfigError(f"ca_file: a certificate in {path} cannot be read.") from None
    return authorities
