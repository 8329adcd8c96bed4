# Generated from model.py and other enums of the server by scripts/mirror_client.py: change those, and run it.
"""The words of states and kinds in the answers."""

from hookline.client.open_word import OpenWord


class DeliveryState(OpenWord):
    """The state of a delivery."""

    PENDING = "pending"
    DELIVERED = "delivered"
    DEAD = "dead"
    CANCELLED = "cancelled"


class Reason(OpenWord):
    """Why a delivery is dead or cancelled."""

    EXHAUSTED = "exhausted"
    REJECTED = "rejected"
    GONE = "gone"
    CRASH_LIMIT = "crash_limit"
    CANCELLED = "cancelled"
    DISCARDED = "discarded"
    ENDPOINT_DELETED = "endpoint_deleted"


class WaitingFor(OpenWord):
    """What a pending delivery waits for."""

    DUE = "due"
    CIRCUIT = "circuit"
    RECEIVER = "receiver"
    RATE = "rate"
    SLOT = "slot"
    ORDER = "order"
    PAUSED = "paused"
    DISABLED = "disabled"


class ErrorKind(OpenWord):
    """Why an attempt was not accepted."""

    DNS = "dns"
    BLOCKED_ADDRESS = "blocked_address"
    CONNECT_TIMEOUT = "connect_timeout"
    CONNECT_REFUSED = "connect_refused"
    CONNECT_FAILED = "connect_failed"
    TLS = "tls"
    TIMEOUT = "timeout"
    RESET = "reset"
    PROTOCOL = "protocol"
    INTERNAL = "internal"
    HTTP_3XX = "http_3xx"
    HTTP_4XX = "http_4xx"
    HTTP_410 = "http_410"
    HTTP_429 = "http_429"
    HTTP_5XX = "http_5xx"


class CircuitState(OpenWord):
    """Whether an endpoint's circuit lets requests through."""

    CLOSED = "closed"
    OPEN = "open"
    HALF_OPEN = "half_open"


class Signing(OpenWord):
    """The style of an endpoint's signatures."""

    STANDARD = "standard"
    CLASSIC = "classic"


class Signature(OpenWord):
    """How the signatures of the standard style are made."""

    V1 = "v1"
    V1A = "v1a"


class Ordering(OpenWord):
    """Whether deliveries to an endpoint may overtake each other."""

    PARALLEL = "parallel"
    STRICT = "strict"


class DeathPattern(OpenWord):
    """What the dead letters of an endpoint have in common."""

    OUTAGE = "outage"
    CREDENTIALS = "credentials"
    THROTTLED = "throttled"
    INTERMITTENT = "intermittent"
    REJECTED = "rejected"
    GONE = "gone"
    MIXED = "mixed"


class JobState(OpenWord):
    """The progress of a bulk replay or discard."""

    RUNNING = "running"
    DONE = "done"
    FAILED = "failed"


class AlertKind(OpenWord):
    """A condition that somebody should know of."""

    DEAD_LETTERS = "dead_letters"
    DEAD_LETTERS_GROWING = "dead_letters_growing"
    OLDEST_DUE = "oldest_due"
    STUCK = "stuck"
    QUEUE_GROWING = "queue_growing"
    ENDPOINT_SLOW = "endpoint_slow"
    CIRCUIT_OPEN = "circuit_open"
    ENDPOINT_DISABLED = "endpoint_disabled"
    OUTBOX_REFUSED = "outbox_refused"
    OUTBOX_LATE = "outbox_late"


class AlertState(OpenWord):
    """Whether an alert's condition still holds."""

    FIRING = "firing"
    RESOLVED = "resolved"


class StatusLevel(OpenWord):
    """How bad it is."""

    BAD = "bad"
    WARNING = "warning"
    GOOD = "good"
    NEW = "new"


class WorkerState(OpenWord):
    """The condition of a process, as of its last heartbeat."""

    RUNNING = "running"
    DRAINING = "draining"
    STALE = "stale"


class WorkerKind(OpenWord):
    """What a process was started as."""

    SERVE = "serve"
    WORKER = "worker"
    API = "api"
    LIBRARY = "library"


class Scope(OpenWord):
    """What a key may do."""

    PUBLISH = "publish"
    READ = "read"
    ADMIN = "admin"


class AuditAction(OpenWord):
    """What somebody did."""

    ENDPOINT_CREATED = "endpoint.created"
    ENDPOINT_UPDATED = "endpoint.updated"
    ENDPOINT_ENABLED = "endpoint.enabled"
    ENDPOINT_DISABLED = "endpoint.disabled"
    ENDPOINT_PAUSED = "endpoint.paused"
    ENDPOINT_RESUMED = "endpoint.resumed"
    ENDPOINT_DELETED = "endpoint.deleted"
    CIRCUIT_RESET = "circuit.reset"
    SECRET_ROTATED = "secret.rotated"
    SECRET_REVEALED = "secret.revealed"
    SECRETS_SEALED = "secrets.sealed"
    SECRETS_UNSEALED = "secrets.unsealed"
    KEY_CREATED = "key.created"
    KEY_REVOKED = "key.revoked"
    PORTAL_LINK_CREATED = "portal_link.created"
    ACCOUNT_UPDATED = "account.updated"
    DELIVERY_RETRIED = "delivery.retried"
    DELIVERY_CANCELLED = "delivery.cancelled"
    DELIVERY_REPLAYED = "delivery.replayed"
    DELIVERY_DISCARDED = "delivery.discarded"
    EVENT_REPLAYED = "event.replayed"
    DEAD_LETTERS_REPLAYED = "dead_letters.replayed"
    DEAD_LETTERS_DISCARDED = "dead_letters.discarded"
    EVENT_TYPE_PUT = "event_type.put"
    EVENT_TYPE_DELETED = "event_type.deleted"
    EVENTS_PRUNED = "events.pruned"
    OUTBOX_ROW_RETRIED = "outbox_row.retried"
    OUTBOX_ROW_DISCARDED = "outbox_row.discarded"
    OUTBOX_FORGOTTEN = "outbox.forgotten"


class ActorKind(OpenWord):
    """What somebody acted with."""

    KEY = "key"
    SETTINGS_KEY = "settings_key"
    PORTAL = "portal"
    DEVELOPMENT = "development"
    COMMAND_LINE = "command_line"
    PROGRAM = "program"


class Via(OpenWord):
    """The way in that somebody took."""

    API = "api"
    DASHBOARD = "dashboard"
    PORTAL = "portal"
    CLI = "cli"
    LIBRARY = "library"


class Channel(OpenWord):
    """A way on which an account is told of trouble."""

    EMAIL = "email"
    SLACK = "slack"
    WEBHOOK = "webhook"
    EVENTS = "events"
