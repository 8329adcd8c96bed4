"""A client for programs that call a hookline server."""

from hookline.client.aio.client import HooklineClient
from hookline.client.answers import (
    Attempt,
    Circuit,
    Delivery,
    Event,
    Job,
    Page,
    Published,
    Replayed,
    Secret,
    Trial,
)
from hookline.client.blocking.client import SyncHooklineClient
from hookline.client.endpoint import Endpoint
from hookline.client.errors import ApiError, ClientError, NotFound, Unavailable, UnexpectedAnswer, Unreachable
from hookline.client.overview import (
    Account,
    Actor,
    Alert,
    AlertTest,
    Analysis,
    AuditEntry,
    AuditSubject,
    ChannelResult,
    Conservation,
    EndpointDeaths,
    EventType,
    FoundIds,
    Key,
    Notify,
    PortalLink,
    Worker,
)
from hookline.client.publishing import NewEvent
from hookline.client.status import Status

__all__ = [
    "Account",
    "Actor",
    "Alert",
    "AlertTest",
    "Analysis",
    "ApiError",
    "Attempt",
    "AuditEntry",
    "AuditSubject",
    "ChannelResult",
    "Circuit",
    "ClientError",
    "Conservation",
    "Delivery",
    "Endpoint",
    "EndpointDeaths",
    "Event",
    "EventType",
    "FoundIds",
    "HooklineClient",
    "Job",
    "Key",
    "NewEvent",
    "NotFound",
    "Notify",
    "Page",
    "PortalLink",
    "Published",
    "Replayed",
    "Secret",
    "Status",
    "SyncHooklineClient",
    "Trial",
    "Unavailable",
    "UnexpectedAnswer",
    "Unreachable",
    "Worker",
]
