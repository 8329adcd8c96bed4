"""The server's answer about how the installation is."""

from datetime import datetime

from hookline.client.answers import ApiObject
from hookline.client.overview import Health, Worker
from hookline.client.words import AlertKind, AlertState, CircuitState, DeathPattern, StatusLevel


class StatusEndpoint(ApiObject, frozen=True, kw_only=True):
    """An endpoint that fails."""

    endpoint_id: str
    url: str
    account: str | None = None
    answer: str | None = None  # the commonest failure: a status, or an error
    since: datetime | None = None
    cause: str | None = None
    pattern: DeathPattern | None = None  # as in the analysis of dead letters
    enabled: bool = True  # False: it answered 410, so hookline disabled it
    circuit: CircuitState | None = None
    opened_at: datetime | None = None
    next_probe_at: datetime | None = None
    last_success_at: datetime | None = None
    waiting: int = 0
    dead: int = 0


class StatusTrouble(ApiObject, frozen=True, kw_only=True):
    """An endpoint that fails, or several of one host, in a sentence."""

    name: str
    sentence: str
    endpoints: list[StatusEndpoint]


class StatusAlert(ApiObject, frozen=True, kw_only=True):
    """An alert that fires."""

    id: str
    kind: AlertKind
    state: AlertState | None = None
    account: str | None = None
    endpoint_id: str | None = None
    since: datetime | None = None
    resolved_at: datetime | None = None
    value: float | None = None
    threshold: float | None = None
    message: str = ""


class WorstEndpoint(ApiObject, frozen=True, kw_only=True):
    """An endpoint with dead letters, or with deliveries that wait."""

    endpoint_id: str
    url: str
    account: str | None = None
    pending: int = 0
    awaiting_retry: int = 0
    dead: int = 0


class Rates(ApiObject, frozen=True, kw_only=True):
    """The attempts of the last minutes."""

    window_s: int
    attempts_per_s: float | None = None
    accepted_per_s: float | None = None
    delivery_rate: float | None = None  # None: there were no attempts


class DatabaseState(ApiObject, frozen=True, kw_only=True):
    """The database, as the server sees it."""

    latency_ms: float | None = None  # None: it does not answer
    not_ready: str | None = None  # why it takes no publishes


class Status(ApiObject, frozen=True, kw_only=True):
    """How the installation is, or one account's endpoints."""

    healthy: bool
    level: StatusLevel
    headline: str
    troubles: list[StatusTrouble]
    alerts: list[StatusAlert]
    worst: list[WorstEndpoint]
    more_troubles: int = 0
    step: str | None = None  # the command that shows more of what the headline says of outboxes
    at: datetime | None = None
    rates: Rates | None = None
    health: Health | None = None  # None: the database does not answer
    workers: list[Worker] | None = None  # None for a key of one account
    database: DatabaseState | None = None  # likewise
