"""Lists the values of options that have a fixed set of them.

A wrong value is a usage error here, before a server is asked. The values are repeated here because the modules that
define them take longer to load than most commands take to run.
"""

import click

STATES = ("pending", "delivered", "dead", "cancelled")
FINISHED = STATES[1:]
CIRCUITS = ("closed", "open", "half_open")
REASONS = ("exhausted", "rejected", "gone", "crash_limit")
STYLES = ("standard", "classic")
ORDERINGS = ("parallel", "strict")
SIGNATURES = ("v1", "v1a")
ALERT_KINDS = (
    "dead_letters",
    "dead_letters_growing",
    "oldest_due",
    "stuck",
    "queue_growing",
    "endpoint_slow",
    "circuit_open",
    "endpoint_disabled",
    "outbox_refused",
    "outbox_late",
)
REFUSALS = (
    "schema_mismatch",
    "fanout_limit",
    "idempotency_conflict",
    "id_conflict",
    "loop_detected",
    "too_large",
    "internal",
    "invalid_account",
    "invalid_deliver_at",
    "invalid_hops",
    "invalid_id",
    "invalid_idempotency_key",
    "invalid_payload",
    "invalid_row",
    "invalid_type",
)
SCOPES = ("publish", "read", "admin")

state_option = click.option("--state", type=click.Choice(STATES), help="Only deliveries in this state.")
