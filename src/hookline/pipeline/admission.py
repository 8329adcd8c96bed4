"""How fast may this process accept, beside what it has to deliver?"""

from collections.abc import Callable

from hookline.rules.admission import at_once


class Admission:
    """Says how many events the next commit may take."""

    def __init__(self, *, is_behind: Callable[[], bool], delivered: Callable[[], int]) -> None:
        self._is_behind = is_behind
        self._delivered = delivered
        self._before = delivered()

    def at_once(self) -> int:
        """How many now; what was delivered since the last time this was asked counts."""
        before, self._before = self._before, self._delivered()
        return at_once(is_behind=self._is_behind(), delivered=self._before - before)
