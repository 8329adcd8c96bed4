"""Defines the drafts that producers hand in."""

from collections.abc import Callable, Sequence

import msgspec

from hookline.errors import HooklineError
from hookline.model import DEFAULT_ACCOUNT, EndpointId, Event, EventId
from hookline.pipeline.catalogue.payload_rules import Judgement
from hookline.pipeline.lanes.lane import Lane


class Draft(msgspec.Struct, frozen=True, gc=False):
    """An event as a producer hands it in, its payload checked."""

    type: str
    payload: bytes
    account: str = DEFAULT_ACCOUNT
    idempotency_key: str | None = None
    deliver_at: float | None = None
    hops: int = 0  # of the webhook that caused this publish
    trace: str | None = None  # that it belongs to
    id: EventId | None = None  # of a row of an outbox; None: it gets a new one


class Published(msgspec.Struct, frozen=True, gc=False):
    """The event that an accepted draft became, or that it repeats."""

    id: EventId
    type: str
    account: str
    created_at: float
    deliveries: int
    duplicate: bool = False
    is_repeat: bool = False  # an event with this id was there, perhaps with other content


Result = Published | HooklineError
Done = Callable[[list[Result] | HooklineError], None]


class Submission:
    """Drafts that are handed in together and answered together, when the last one is done."""

    __slots__ = (
        "account",
        "bytes",
        "came",
        "done",
        "drafts",
        "held_at",
        "is_over",
        "judged",
        "left",
        "next",
        "results",
    )

    def __init__(self, drafts: list[Draft], done: Done, came: float) -> None:
        self.drafts = drafts
        self.done = done
        self.came = came  # on the monotonic clock
        self.account = drafts[0].account if drafts else DEFAULT_ACCOUNT  # whose turn it takes
        self.results: list[Result | None] = [None] * len(drafts)
        self.bytes = sum([len(draft.payload) for draft in drafts])
        self.next = 0  # the first draft that is in no commit yet
        self.left = len(drafts)  # not answered yet
        self.judged: list[Judgement | None] = []  # for the first drafts, where payloads decide
        self.held_at: float | None = None  # since when it waits for lanes, on the monotonic clock
        self.is_over = False

    def judgement(self) -> Judgement | None:
        """The judgement of the next draft, if there is one."""
        return self.judged[self.next] if self.next < len(self.judged) else None

    def judge_again(self) -> None:
        """The rules changed: judge again what is in no commit yet."""
        del self.judged[self.next :]

    def answer(self, index: int, result: Result) -> None:
        self.results[index] = result
        self.left -= 1
        if not self.left:
            self.is_over = True
            self.done(self.results)  # type: ignore[arg-type]  # all are filled in by now

    def fail(self, error: HooklineError) -> None:
        """Store nothing more of it. Stored drafts are answered as stored; if there are none, all get the error."""
        if self.is_over:
            return
        self.is_over = True
        if any(isinstance(result, Published) for result in self.results):
            self.done([error if result is None else result for result in self.results])
        else:
            self.done(error)


class Entry:
    """One event on its way through a commit."""

    __slots__ = ("endpoints", "event", "index", "lanes", "submission")

    def __init__(
        self, submission: Submission, index: int, event: Event, endpoints: tuple[EndpointId, ...]
    ) -> None:
        self.submission = submission
        self.index = index
        self.event = event
        self.endpoints = endpoints
        self.lanes: Sequence[Lane | None] = ()  # per endpoint: where the delivery is reserved

    def answer(self, result: Result) -> None:
        self.submission.answer(self.index, result)
