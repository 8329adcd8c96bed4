"""Decides whether a call is done, is tried again, or has failed.

No I/O: the sender of the bytes reports what happened and is told how to continue. The rules:

- A call that may not be repeated is sent again only when its request cannot have arrived, or was refused unread (429).
  So nothing is done twice.
- Waits grow, are random, and are never shorter than the server's `Retry-After`.
- No try begins later than `retry_for` seconds after the first.
"""

from collections.abc import Mapping
from random import Random
from typing import Generic, NamedTuple, TypeVar

import msgspec

from hookline.client.call import ClientCall
from hookline.client.errors import ApiError, ClientError, Problem, UnexpectedAnswer, Unreachable
from hookline.rules.retry_after import asked_wait

FIRST_WAIT_S = 0.1
LONGEST_WAIT_S = 5.0  # unless the server asks for more
PROBLEM = "application/problem+json"

_TURNED_AWAY = 429
_IN_DOUBT = frozenset({502, 503, 504})  # our own 503; those of a proxy that lost its server
_GONE = 404

T = TypeVar("T")
_problem = msgspec.json.Decoder(Problem)


class HttpAnswer(NamedTuple):
    """An answer of the server."""

    status: int
    headers: Mapping[str, str]  # names in lower case
    body: bytes


class Wait(NamedTuple):
    """Send the call again after this time."""

    seconds: float


class ClientExchange(Generic[T]):
    """One call, from its first try to its end."""

    def __init__(self, call: ClientCall[T], *, retry_for: float, now: float, rng: Random) -> None:
        self._call = call
        self._until = now + retry_for
        self._rng = rng
        self._tries = 0
        self._may_be_done = False  # by a try whose answer was lost

    def answered(self, answer: HttpAnswer, *, now: float, wall: float) -> T | Wait:
        """The call's result, or when to send it again; raises the error that refused it."""
        self._tries += 1
        if 200 <= answer.status < 300:
            return self._read(answer)
        if answer.status == _GONE and self._call.method == "DELETE" and self._may_be_done:
            return self._call.read(b"")  # an earlier try has deleted it
        error = _refusal(answer)
        repeats = answer.status in _IN_DOUBT and self._call.may_repeat
        if not repeats and answer.status != _TURNED_AWAY:
            raise error
        self._may_be_done |= answer.status in _IN_DOUBT
        asked = asked_wait(answer.headers.get("retry-after", ""), wall=wall)
        return self._wait_or(error, asked=asked or 0.0, now=now)

    def failed(self, error: Unreachable, *, now: float) -> Wait:
        """When to send the call again; raises the error when that is unsafe, useless or too late."""
        self._tries += 1
        if not error.may_pass or (error.may_be_done and not self._call.may_repeat):
            raise error
        self._may_be_done |= error.may_be_done
        return self._wait_or(error, asked=0.0, now=now)

    def _wait_or(self, error: ClientError, *, asked: float, now: float) -> Wait:
        longest = min(LONGEST_WAIT_S, FIRST_WAIT_S * 2.0 ** min(self._tries - 1, 10))
        # On top of the server's wait: many clients may have been told the same.
        seconds = asked + longest * (0.5 + 0.5 * self._rng.random())
        if now + seconds > self._until:
            raise error
        return Wait(seconds)

    def _read(self, answer: HttpAnswer) -> T:
        try:
            return self._call.read(answer.body)
        except msgspec.DecodeError as error:
            raise UnexpectedAnswer(answer.status, str(error)) from None


def _refusal(answer: HttpAnswer) -> ApiError | UnexpectedAnswer:
    media = answer.headers.get("content-type", "")
    if media.partition(";")[0].strip().lower() == PROBLEM:
        try:
            return _problem.decode(answer.body).error()
        except msgspec.DecodeError:
            pass
    return UnexpectedAnswer(answer.status, f"it is {media[:100] or 'without a type'} and no problem")
