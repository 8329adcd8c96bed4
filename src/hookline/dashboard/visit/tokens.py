"""Makes and checks the tokens of forms, and the messages that survive a redirect.

A form's token is bound to its visit. It is written differently into each page, so that the length of a compressed page
tells nothing about it.
"""

import base64
import hmac
import secrets
from hashlib import sha256

import msgspec

from hookline.dashboard.page import GoTo, Tone, Visitor

_SIZE = 16
_LONGEST = 1_500  # characters of a message: a cookie has 4,096


class Said(msgspec.Struct, frozen=True):
    """A message that is shown once."""

    text: str
    tone: Tone


def form_token(visitor: Visitor) -> str:
    """The token of a form on a page for this visitor."""
    mask = secrets.token_bytes(_SIZE)
    return base64.urlsafe_b64encode(mask + _mixed(mask, _of(visitor))).decode("ascii")


def is_good(token: str, visitor: Visitor) -> bool:
    """Whether the token came from a page for this visitor."""
    try:
        given = base64.b64decode(token.encode("ascii"), altchars=b"-_", validate=True)
    except ValueError:
        return False
    if len(given) != 2 * _SIZE:
        return False
    return hmac.compare_digest(_mixed(given[:_SIZE], given[_SIZE:]), _of(visitor))


def pack_said(gone: GoTo, visitor: Visitor) -> str:
    """The message as a cookie's value."""
    content = msgspec.json.encode(Said(gone.said[:_LONGEST], gone.tone))
    sealed = hmac.digest(visitor.secret, b"said" + content, "sha256")[:_SIZE]
    return base64.urlsafe_b64encode(sealed + content).decode("ascii")


def unpack_said(text: str, visitor: Visitor) -> Said | None:
    """The message in a cookie; None if it is not one that this server wrote for this visitor."""
    try:
        given = base64.b64decode(text.encode("ascii"), altchars=b"-_", validate=True)
    except ValueError:
        return None
    sealed, content = given[:_SIZE], given[_SIZE:]
    if not hmac.compare_digest(hmac.digest(visitor.secret, b"said" + content, "sha256")[:_SIZE], sealed):
        return None
    return msgspec.json.decode(content, type=Said)


def _of(visitor: Visitor) -> bytes:
    return sha256(b"form" + visitor.secret).digest()[:_SIZE]


def _mixed(mask: bytes, value: bytes) -> bytes:
    return bytes(one ^ other for one, other in zip(mask, value, strict=True))
