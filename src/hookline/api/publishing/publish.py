"""Handles a publish, from its headers and body to its answer.

The hot path: one decode, one commit shared with all that publish at the same time, one write. fast_publish.py moves
the bytes, or app.py where a request does not arrive whole.
"""

from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple, Protocol

import msgspec

from hookline import ids, rfc3339
from hookline.api.problem import describe
from hookline.api.publishing.envelope import read_batch, read_publication
from hookline.api.request.body import check_media
from hookline.app import Hookline
from hookline.clock import Clock, Timeline
from hookline.config import Settings
from hookline.errors import HooklineError, Invalid, TooLarge
from hookline.pipeline.intake.drafts import Draft, Published, Result
from hookline.rules import trace_context
from hookline.rules.hops import HEADER, checked, read

ONE, MANY = "/v1/events", "/v1/events/batch"
ENVELOPE_BYTES = 4_096  # room around a payload for the other fields

Headers = Sequence[tuple[bytes, bytes]]

_KEY = b"idempotency-key"
TRACE_PARENT, TRACE_STATE = trace_context.PARENT.encode("ascii"), trace_context.STATE.encode("ascii")
CHANGING = frozenset({_KEY, TRACE_PARENT, TRACE_STATE})  # headers that differ from one publish to the next
_HOPS = HEADER.encode("ascii")
_NOTED = frozenset({_KEY, _HOPS, TRACE_PARENT, TRACE_STATE})


class PublishRequest(Protocol):
    """The publications of one request."""

    drafts: list[Draft]
    path: str

    def answer(self, results: list[Result], *, request_id: str) -> bytes:
        """The body of the 202; raises the error that refused the whole request."""


class Way(Protocol):
    """One of the two ways to publish."""

    limit_bytes: int  # of a body
    too_large: TooLarge  # the refusal of a larger one

    def check(self, headers: Headers) -> None:
        """Raise unless the headers announce a body that can be read."""

    def read(self, headers: Headers, body: bytes, *, bound_to: str | None) -> PublishRequest:
        """The publications of a caller that may publish to this account only; raises what is wrong with them."""


class Head(NamedTuple):
    """The facts from the head of a publish."""

    way: Way
    headers: list[tuple[bytes, bytes]]
    body_bytes: int
    keep_alive: bool


def ways(hookline: Hookline) -> dict[str, Way]:
    """The ways to publish, by path."""
    settings, clock = hookline.settings, hookline.clock
    return {
        ONE: _SingleWay(settings, clock),
        MANY: _BatchWay(settings, clock, hookline.publish_refused),
    }


class _SingleWay:
    def __init__(self, settings: Settings, clock: Clock) -> None:
        self._clock = clock
        self._max_hops = settings.max_hops
        self._payload_limit = settings.payload_limit_bytes
        self.limit_bytes = settings.payload_limit_bytes + ENVELOPE_BYTES
        # The payload's limit, whichever of the two limits is exceeded: users need to know one number.
        self.too_large = TooLarge("A payload", limit_bytes=self._payload_limit)

    def check(self, headers: Headers) -> None:
        check_media(headers, limit_bytes=self.limit_bytes)

    def read(self, headers: Headers, body: bytes, *, bound_to: str | None) -> "_One":
        key, hops, trace = _noted(headers)
        return _One(
            read_publication(
                body,
                header_key=key,
                limit_bytes=self._payload_limit,
                now=self._clock.now(),
                bound_to=bound_to,
                hops=hops if not hops else checked(hops, most=self._max_hops),
                trace=trace,
            ),
            self._clock.line,
        )


class _One:
    __slots__ = ("_line", "drafts")
    path = ONE

    def __init__(self, draft: Draft, line: Timeline | None) -> None:
        self.drafts = [draft]
        self._line = line

    def answer(self, results: list[Result], *, request_id: str) -> bytes:
        result = results[0]
        if isinstance(result, HooklineError):
            raise result
        return _shown(result, self._line)


class _BatchWay:
    def __init__(self, settings: Settings, clock: Clock, refused: Counter[str]) -> None:
        self._clock = clock
        self._refused = refused
        self._max_hops = settings.max_hops
        self._payload_limit = settings.payload_limit_bytes
        self.limit_bytes = settings.batch_limit_bytes
        self.too_large = TooLarge("The body of this request", limit_bytes=self.limit_bytes)

    def check(self, headers: Headers) -> None:
        check_media(headers, limit_bytes=self.limit_bytes)
        if _noted(headers)[0] is not None:
            raise Invalid("In a batch each event has its own idempotency_key; the header is for one event.")

    def read(self, headers: Headers, body: bytes, *, bound_to: str | None) -> "_Many":
        now, (_, hops, trace) = self._clock.now(), _noted(headers)
        checked(hops, most=self._max_hops)
        read: list[Draft | HooklineError] = []
        limit = self._payload_limit
        for item in read_batch(body):
            try:
                read.append(
                    read_publication(
                        item, limit_bytes=limit, now=now, bound_to=bound_to, hops=hops, trace=trace
                    )
                )
            except HooklineError as error:
                read.append(error)
        return _Many(read, self._clock.line, self._refused)


class _Many:
    """A batch; an invalid event does not stop the others."""

    __slots__ = ("_line", "_read", "_refused", "drafts")
    path = MANY

    def __init__(
        self, read: list[Draft | HooklineError], line: Timeline | None, refused: Counter[str]
    ) -> None:
        self._read = read
        self._line = line
        self._refused = refused  # how many were refused, by code
        self.drafts = [each for each in read if isinstance(each, Draft)]

    def answer(self, results: list[Result], *, request_id: str) -> bytes:
        accepted = iter(results)
        shown: list[bytes] = []
        for place, each in enumerate(self._read):
            result = next(accepted) if isinstance(each, Draft) else each
            if isinstance(result, Published):
                shown.append(_shown(result, self._line))
            else:
                problem = describe(_placed(result, place), request_id=request_id)
                self._refused[problem.code] += 1
                shown.append(b'{"error":%b}' % msgspec.json.encode(problem))
        return b'{"results":[%b]}' % b",".join(shown)


def _placed(error: HooklineError, place: int) -> HooklineError:
    """Add the place in the batch, which the error does not know."""
    return error.under(f"/events/{place}") if isinstance(error, Invalid) else error


def _shown(published: Published, line: Timeline | None) -> bytes:
    at = published.created_at if line is None else line.shown(published.created_at)
    # By hand: type and account are letters, digits and a few marks that JSON does not escape.
    return (
        f'{{"id":"{ids.show("event", published.id)}","type":"{published.type}","account":"{published.account}",'
        f'"created_at":"{rfc3339.show(at)}","deliveries":{published.deliveries},'
        f'"duplicate":{"true" if published.duplicate else "false"}}}'
    ).encode("ascii")


def _noted(headers: Headers) -> tuple[bytes | None, int, str | None]:
    """The headers' facts about the event: its idempotency key, how many times it was forwarded, and its trace."""
    key: bytes | None = None
    hops: bytes | None = None
    traces: dict[bytes, list[str]] = {}
    for name, value in headers:
        if name not in _NOTED:
            continue
        if name == _KEY:
            if key is not None:
                raise Invalid("There are two Idempotency-Key headers.")
            key = value
        elif name != _HOPS:
            traces.setdefault(name, []).append(value.decode("latin-1"))
        else:
            if hops is not None:
                raise Invalid(f"There are two {HEADER} headers.")
            hops = value
    trace = trace_context.read(traces.get(TRACE_PARENT, ()), traces.get(TRACE_STATE, ())) if traces else None
    return key, 0 if hops is None else read(hops), trace
