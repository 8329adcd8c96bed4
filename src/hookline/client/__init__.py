"""How does a program call a hookline server?"""

from hookline.client.aio.client import HooklineClient
from hookline.client.answers import (
    Alert,
    Analysis,
    Attempt,
    Circuit,
    Delivery,
    Endpoint,
    Event,
    Health,
    Job,
    Page,
    Published,
    Replayed,
    Secret,
    Stats,
    Worker,
)
from hookline.client.blocking.client import SyncHooklineClient
from hookline.client.errors import ApiError, ClientError, NotFound, Unavailable, UnexpectedAnswer, Unreachable
from hookline.client.publishing import NewEvent

__all__ = [
    "Alert",
    "Analysis",
    "ApiError",
    "Attempt",
    "Circuit",
    "ClientError",
    "Delivery",
    "Endpoint",
    "Event",
    "Health",
    "HooklineClient",
    "Job",
    "NewEvent",
    "NotFound",
    "Page",
    "Published",
    "Replayed",
    "Secret",
    "Stats",
    "SyncHooklineClient",
    "Unavailable",
    "UnexpectedAnswer",
    "Unreachable",
    "Worker",
]
