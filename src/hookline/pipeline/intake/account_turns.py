"""Queues submissions by account until they are committed.

Accounts take turns, so that no account waits for all that another has handed in. What one account hands in keeps its
order.
"""

from collections import deque

from hookline.pipeline.intake.drafts import Submission


class AccountTurns:
    """Submissions in line, by account."""

    __slots__ = ("_accounts", "turns")

    def __init__(self) -> None:
        self._accounts: dict[str, deque[Submission]] = {}
        # The accounts that have something in line: `turns[0][0]` is next, and is read for each event.
        self.turns: deque[deque[Submission]] = deque()

    def __bool__(self) -> bool:
        return bool(self.turns)

    @property
    def accounts(self) -> int:
        """How many accounts share the turns."""
        return len(self.turns)

    def add(self, submission: Submission) -> None:
        """Put it last in its account's line."""
        waiting = self._accounts.get(submission.account)
        if waiting is None:
            waiting = self._accounts[submission.account] = deque((submission,))
            self.turns.append(waiting)
        else:
            waiting.append(submission)

    def put_back(self, submission: Submission) -> None:
        """Put it first in its account's line again; the account's turn does not come sooner."""
        waiting = self._accounts.get(submission.account)
        if waiting is None:
            self.add(submission)
        elif waiting[0] is not submission:
            waiting.appendleft(submission)

    def leave(self) -> bool:
        """The first one leaves the line; True if it was the last of its account."""
        waiting = self.turns[0]
        submission = waiting.popleft()
        if waiting:
            return False
        del self._accounts[submission.account]
        self.turns.popleft()
        return True

    def turn(self) -> None:
        """Give the turn to the next account."""
        self.turns.rotate(-1)
