"""Tools for an application's own tests."""

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
