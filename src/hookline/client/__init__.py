"""How does a program call a hookline server?"""

from hookline.client.aio.client import HooklineClient
from hookline.client.answers import (
    Account,
    Alert,
    Analysis,
    Attempt,
    Circuit,
    Delivery,
    Endpoint,
    Event,
    EventType,
    Health,
    Job,
    Key,
    Page,
    Published,
    Replayed,
    Secret,
    Stats,
    Trial,
    Worker,
)
from hookline.client.blocking.client import SyncHooklineClient
from hookline.client.errors import ApiError, ClientError, NotFound, Unavailable, UnexpectedAnswer, Unreachable
from hookline.client.publishing import NewEvent

__all__ = [
    "Account",
    "Alert",
    "Analysis",
    "ApiError",
    "Attempt",
    "Circuit",
    "ClientError",
    "Delivery",
    "Endpoint",
    "Event",
    "EventType",
    "Health",
    "HooklineClient",
    "Job",
    "Key",
    "NewEvent",
    "NotFound",
    "Page",
    "Published",
    "Replayed",
    "Secret",
    "Stats",
    "SyncHooklineClient",
    "Trial",
    "Unavailable",
    "UnexpectedAnswer",
    "Unreachable",
    "Worker",
]
