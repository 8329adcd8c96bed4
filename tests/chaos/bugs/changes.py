"""Bugs: a worker acts on outdated knowledge."""

import asyncio
from collections.abc import Callable
from typing import Any

from hookline.pipeline.worker import Worker

LATE_S = 30.0


def changes_late() -> None:
    """The owner of a lane looks at its endpoint only every half minute."""
    changed = Worker._changed

    def late(self: Any, *change: Any) -> None:
        asyncio.get_running_loop().call_later(LATE_S, changed, self, *change)

    Worker._changed = late


BUGS: dict[str, Callable[[], None]] = {
    "changes-late": changes_late,
}
