"""Decides where requests may go.

They may go to the public internet and to the networks that the operator allowed, but to none that the operator denied
and not back to this very server: an
endpoint that is our own API would publish what it is sent.
"""

from collections.abc import Callable, Sequence

from hookline.config import Network, Settings
from hookline.errors import Invalid
from hookline.pipeline.sending.target import parse
from hookline.rules.address import is_denied, is_within, may_dial
from hookline.rules.destination import canonical
from hookline.rules.own_address import Place, is_own


class Destinations:
    """What the settings allow, and the addresses that this process listens on."""

    def __init__(self, settings: Settings, *, is_here: Callable[[str], bool]) -> None:
        self.listening: tuple[Place, ...] = ()
        self.private_allowed = settings.dev or bool(settings.allow_networks)
        self.allowed: Sequence[Network] | None = (
            None if settings.dev else settings.allow_networks
        )  # None: all
        self.denied: Sequence[Network] = settings.deny_networks  # wins over all that is allowed
        self._is_here = is_here  # is it an address of this machine?

    def canonical(self, url: str) -> str:
        """The one spelling of a URL that may be sent to; `Invalid` for others."""
        spelled = canonical(
            url, private_allowed=self.private_allowed, allowed=self.allowed, denied=self.denied
        )
        self.refuse_own(spelled)
        return spelled

    def refuse_own(self, url: str) -> None:
        """`Invalid` for a canonical URL with an address this process listens on; names are checked when dialled."""
        if not self.listening:
            return
        target = parse(url)
        if self._is_own(target.host, target.port):
            raise Invalid(
                "This is hookline's own address: what is sent there would be published again.",
                pointer="/url",
                code="url_forbidden",
            )

    def may_dial(self, address: str, port: int) -> bool:
        """Whether a connection to this address may be opened."""
        if self.allowed is None:
            return not is_denied(address, self.denied)
        return may_dial(address, self.allowed, self.denied) and not self._is_own(address, port)

    def is_allowed(self, address: str) -> bool:
        """Whether it is in a network that the operator named, so that no stranger is on the other side."""
        return self.allowed is None or is_within(address, self.allowed)

    def _is_own(self, address: str, port: int) -> bool:
        return not self.is_allowed(address) and is_own(
            address, port, listening=self.listening, is_here=self._is_here
        )
