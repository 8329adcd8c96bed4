"""Tells a server in the same process that there is something to look for in an outbox.

A hint only: a server that is not told looks by itself, a little later.
"""

import os
import threading
from collections.abc import Callable

Look = Callable[[], None]  # called from any thread; returns at once

# Replaced, never changed: `nudge` reads it without the lock, also in a child of a process that forked while it was held.
_lookers: tuple[Look, ...] = ()
_registering = threading.Lock()


def register(look: Look) -> Callable[[], None]:
    """Have this called by every nudge; returns what ends that."""
    global _lookers
    with _registering:
        _lookers = (*_lookers, look)

    def unregister() -> None:
        global _lookers
        with _registering:
            _lookers = tuple(each for each in _lookers if each is not look)

    return unregister


def is_watched() -> bool:
    """Whether anybody in this process would look."""
    return bool(_lookers)


def nudge() -> None:
    """Have a server in this process look for published events now; does nothing where none runs.

    Call it after the commit. SQLAlchemy's sessions and Django's `atomic` do it by themselves.
    """
    for look in _lookers:
        try:
            look()
        except RuntimeError:  # its event loop has just closed: it is leaving, and the next server looks
            continue


def _forget() -> None:
    # A child has the parent's lookers, but not the loop that they wake.
    global _lookers, _registering
    _lookers, _registering = (), threading.Lock()


os.register_at_fork(after_in_child=_forget)
