"""What does a producer hand in, and what is it told of it?"""

from collections.abc import Callable, Sequence

import msgspec

from hookline.errors import HooklineError
from hookline.model import DEFAULT_ACCOUNT, EndpointId, Event, EventId
from hookline.pipeline.lane import Lane


class Draft(msgspec.Struct, frozen=True, gc=False):
    """An event as a producer hands it in, its payload checked."""

    type: str
    payload: bytes
    account: str = DEFAULT_ACCOUNT
    idempotency_key: str | None = None
    deliver_at: float | None = None
    hops: int = 0  # as it came with the webhook that it is published because of


class Published(msgspec.Struct, frozen=True, gc=False):
    """The event an accepted draft became, or was before."""

    id: EventId
    type: str
    account: str
    created_at: float
    deliveries: int
    duplicate: bool = False


Result = Published | HooklineError
Done = Callable[[list[Result] | HooklineError], None]


class Submission:
    """Drafts handed in together, answered together."""

    __slots__ = ("bytes", "done", "drafts", "results")

    def __init__(self, drafts: list[Draft], done: Done) -> None:
        self.drafts = drafts
        self.done = done
        self.results: list[Result | None] = [None] * len(drafts)
        self.bytes = sum([len(draft.payload) for draft in drafts])


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
        self.submission.results[self.index] = result
