"""The reasons why a request fails verification."""

from enum import StrEnum

from hookline.errors import HooklineError


class Refusal(StrEnum):
    """Why a request failed verification, for programs; the error's text is for people."""

    MISSING_HEADER = "missing_header"  # not signed, or not by hookline
    MALFORMED_HEADER = "malformed_header"  # a header that verification needs cannot be read, or came twice
    WRONG_SIGNATURE = (
        "wrong_signature"  # changed on the way, signed with another secret, or not from hookline
    )
    TOO_OLD = "too_old"  # genuine, but signed longer ago than the tolerance: perhaps a replay of a recording
    TOO_NEW = "too_new"  # genuine, but signed in the future: one of the two clocks is wrong
    # The receiver's own mistakes: no sender can cause these.
    BAD_SECRET = "bad_secret"  # noqa: S105 - the reason's name; no secret that was given can be used
    BAD_BODY = "bad_body"  # the body is not bytes: it was already decoded or parsed


class VerificationError(HooklineError):
    """The request must not be acted upon. The text holds no secret, and nothing that the sender chose."""

    def __init__(self, reason: Refusal, detail: str) -> None:
        super().__init__(detail)
        self.reason = reason
