"""Makes and reads the cursors of lists.

A cursor is the last id that was shown (of event types: the last name), with a MAC over it, the list and its filters.
It is good for that list only and cannot be forged. The MAC's key comes from the installation's secret, so that every
process reads the others' cursors, also after a restart.
"""

import binascii
import hashlib
import hmac
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Mapping

from hookline.errors import Invalid

_MAC_BYTES = 16


class Cursors:
    """Makes and reads cursors."""

    def __init__(self, secret: bytes) -> None:
        self._key = hashlib.sha256(b"hookline cursor\0" + secret).digest()

    def show(self, last: bytes, *, of: str, filters: Mapping[str, str]) -> str:
        """The cursor for the page after this id."""
        return urlsafe_b64encode(last + self._mac(last, of, filters)).rstrip(b"=").decode()

    def read(self, text: str, *, of: str, filters: Mapping[str, str]) -> bytes:
        """The id in a cursor of this list."""
        try:
            raw = urlsafe_b64decode(text.encode("ascii") + b"=" * (-len(text) % 4))
        except (binascii.Error, ValueError):
            raw = b""
        last = raw[:-_MAC_BYTES]
        # The text itself is compared: the decoder ignores stray bits and invalid characters.
        if not last or not hmac.compare_digest(
            text.encode(), self.show(last, of=of, filters=filters).encode()
        ):
            raise Invalid(
                "This cursor is not one of this list with these filters; begin again without it.",
                pointer="cursor",
                code="invalid_cursor",
            )
        return last

    def _mac(self, last: bytes, of: str, filters: Mapping[str, str]) -> bytes:
        parts = [of, *(part for name in sorted(filters) for part in (name, filters[name]))]
        message = b"".join(len(part.encode()).to_bytes(4) + part.encode() for part in parts) + last
        return hmac.digest(self._key, message, "sha256")[:_MAC_BYTES]
