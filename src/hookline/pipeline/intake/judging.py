"""Applies the current schemas and filters to the payloads of events.

An event is judged before it joins the line for a commit, so that no other event waits for that. Each turn of the loop
judges one slice, and accounts take turns.
"""

import asyncio
from collections.abc import Callable, Generator
from typing import Any

import structlog

from hookline.clock import Clock
from hookline.errors import AcceptFailed, HooklineError
from hookline.pipeline.catalogue.catalogue import Catalogue
from hookline.pipeline.intake.account_turns import AccountTurns
from hookline.pipeline.intake.drafts import Submission
from hookline.rules.loop_budget import LoopBudget

log = structlog.get_logger()

_Steps = Generator[asyncio.Future[Any] | None, None, None]


class PayloadJudge:
    """Judges the drafts of submissions."""

    def __init__(
        self, catalogue: Catalogue, clock: Clock, *, on_judged: Callable[[Submission], None]
    ) -> None:
        self._catalogue = catalogue
        self._clock = clock
        self._on_judged = on_judged
        self._line = AccountTurns()
        self._steps: dict[Submission, _Steps] = {}
        self._task: asyncio.Task[None] | None = None
        self.slice = LoopBudget()

    @property
    def is_idle(self) -> bool:
        return not self._steps

    def add(self, submission: Submission) -> None:
        """Judge the drafts of it that are not judged, then report it."""
        self._steps[submission] = self._judge(submission)
        self._stand_in_line(submission)

    def _stand_in_line(self, submission: Submission) -> None:
        self._line.add(submission)
        if self._task is None:
            self._task = asyncio.get_running_loop().create_task(self._run())

    async def _run(self) -> None:
        try:
            while self._line:
                self.slice.begin()
                while self._line and not self.slice.is_spent:
                    self._go_on_with(self._line.turns[0][0])
                await self._clock.sleep(0)
        finally:
            self.slice.begin()
            self._task = None

    def _go_on_with(self, submission: Submission) -> None:
        try:
            awaited = next(self._steps[submission])
        except StopIteration:
            self._end(submission)
            self._on_judged(submission)
        except Exception as error:
            self._end(submission)
            if not isinstance(error, HooklineError):
                log.exception("judging.failed", events=len(submission.drafts))
                error = AcceptFailed("The event could not be judged; it may be tried again.")
            submission.fail(error)
            self._on_judged(submission)
        else:
            if awaited is None:
                self._line.turn()
            else:
                self._line.leave()
                awaited.add_done_callback(lambda _: self._stand_in_line(submission))

    def _end(self, submission: Submission) -> None:
        del self._steps[submission]
        self._line.leave()

    def _judge(self, submission: Submission) -> _Steps:
        catalogue, judged = self._catalogue, submission.judged
        judged += [None] * (submission.next - len(judged))  # these needed no judgement
        while len(judged) < len(submission.drafts) and not submission.is_over:
            draft = submission.drafts[len(judged)]
            asked = catalogue.find(draft.account, draft.type)
            n = catalogue.n
            judged.append(
                (yield from catalogue.content.judge(n, draft.type, draft.payload, asked, self.slice))
            )
            if self.slice.is_spent:
                yield None
