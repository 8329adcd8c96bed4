"""Bugs: a delivery that kills its worker is tried for ever."""

from collections.abc import Callable

from hookline.rules import crash_suspects

NEVER = 1_000


def crash_limit_off() -> None:
    """No delivery is ever given up for the workers that died sending it."""
    crash_suspects.CRASH_LIMIT = NEVER


BUGS: dict[str, Callable[[], None]] = {
    "crash-limit-off": crash_limit_off,
}
