"""Logs verbs of a store that take long.

The line names the verb, never what it was given. One verb is named at most once in ten seconds; how often it was slow in
between is in its next line.
"""

import structlog

SAY_AGAIN_S = 10.0

log = structlog.get_logger()


class SlowVerbs:
    """The verbs that were slow, and when each was last named."""

    def __init__(self) -> None:
        self.limit = float("inf")  # seconds; a command that a person waits for logs nothing
        self._said: dict[str, float] = {}
        self._unsaid: dict[str, int] = {}

    def note(self, verb: str, took: float, *, at: float) -> None:
        """This verb took longer than the limit."""
        if at - self._said.get(verb, float("-inf")) < SAY_AGAIN_S:
            self._unsaid[verb] = self._unsaid.get(verb, 0) + 1
            return
        self._said[verb] = at
        log.warning("statement.slow", verb=verb, took_s=round(took, 3), unnamed=self._unsaid.pop(verb, 0))
