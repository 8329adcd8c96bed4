"""Tools for an application's own tests."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from hookline.testing.clock import ManualClock
    from hookline.testing.receiver import Answer, Received, WebhookReceiver
    from hookline.testing.running import HooklineServer, RunningHookline, running_hookline, serving_hookline

__all__ = [
    "Answer",
    "HooklineServer",
    "ManualClock",
    "Received",
    "RunningHookline",
    "WebhookReceiver",
    "running_hookline",
    "serving_hookline",
]

_HOMES = {
    "Answer": "receiver",
    "HooklineServer": "running",
    "ManualClock": "clock",
    "Received": "receiver",
    "RunningHookline": "running",
    "WebhookReceiver": "receiver",
    "running_hookline": "running",
    "serving_hookline": "running",
}


def __getattr__(name: str) -> Any:
    # On demand: pytest loads this package in every run, and the receiver needs no server.
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module 'hookline.testing' has no attribute {name!r}")
    from importlib import import_module

    from hookline.errors import naming_extras

    with naming_extras(f"hookline.testing.{name}"):
        return getattr(import_module(f"hookline.testing.{home}"), name)
