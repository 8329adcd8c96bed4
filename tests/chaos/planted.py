"""Runs `hookline` with a planted bug, to show that the checker sees it.

CHAOS_BUG names one of the bugs in bugs/; without it this is `hookline` as it is. Bugs live there and nowhere else: no
release holds a line of them. Also here: at SIGUSR1 a running process reads failpoints from the file that CHAOS_ARM
names, so that the process that is to die can be chosen while it works; a request that contains the text of
CHAOS_POISON kills the process that is about to send it; and the instruments of instruments.py.
"""

import os
import signal
from collections.abc import Callable
from pathlib import Path

from hookline import failpoints
from hookline.cli import main
from hookline.pipeline.sending.client import HttpSender
from hookline.pipeline.sending.contract import Request, SendResult
from tests.chaos import instruments
from tests.chaos.registry import bugs


def _arm(*_: object) -> None:
    file = Path(os.environ["CHAOS_ARM"])
    failpoints.plant(file.read_text() if file.exists() else "")
    file.unlink(missing_ok=True)  # which says that it is done


def _be_poisoned_by(text: bytes) -> None:
    send = HttpSender.send

    def or_die(self: HttpSender, request: Request, done: Callable[[SendResult], None]) -> None:
        if text in request.body:
            os.kill(os.getpid(), signal.SIGKILL)
        send(self, request, done)

    HttpSender.send = or_die


if __name__ == "__main__":
    if os.environ.get("CHAOS_ARM"):
        signal.signal(signal.SIGUSR1, _arm)
        instruments.install()
    if poison := os.environ.get("CHAOS_POISON"):
        _be_poisoned_by(poison.encode())
    if bug := os.environ.get("CHAOS_BUG"):
        bugs()[bug]()
    main()
