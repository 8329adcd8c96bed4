"""What if a worker remembered what is no longer so?"""

import asyncio
from collections.abc import Callable
from typing import Any

from hookline.pipeline.worker import Worker

LATE_S = 30.0


def changes_late() -> None:
    """The owner of a lane looks at its endpoint every half minute."""
    changed = Worker._endpoint_changed

    def late(self: Any, *change: Any) -> None:
        asyncio.get_running_loop().call_later(LATE_S, changed, self, *change)

    Worker._endpoint_changed = late


BUGS: dict[str, Callable[[], None]] = {
    "changes-late": changes_late,
}
