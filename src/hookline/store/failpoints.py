"""Puts failpoints around the verbs of a store that write.

`settle.before` is before the transaction, `settle.after` after its commit, before the caller knows of it. Every verb of
the contract that is not listed as reading has both, so that a new verb cannot be forgotten.
"""

import inspect
from collections.abc import Awaitable, Callable
from functools import wraps
from typing import Any, TypeVar

from hookline.failpoints import failpoint, planted
from hookline.store.contract import Store

T = TypeVar("T")
Verb = Callable[..., Awaitable[Any]]

LIFE = frozenset({"migrate", "open", "close"})  # each has many steps, and nothing else runs meanwhile
NOTIFICATIONS = frozenset({"listen", "notify"})  # nothing durable: a notification may get lost at any time
READS = frozenset(
    {
        "account",
        "accounts",
        "alerts_by_id",
        "attempts",
        "bloat",
        "catalogue",
        "changed_keys",
        "circuits_open",
        "conservation",
        "count_by_state",
        "count_dead",
        "count_deaths",
        "counts",
    }
    | {
        "delivery",
        "endpoints_by_id",
        "event",
        "event_type",
        "event_types",
        "ids_between",
        "job",
        "key",
        "lanes",
        "list_attempts",
    }
    | {"announcements", "deliveries_by_id"}
    | {"account_counts", "all_counts", "endpoint_counts", "health_samples", "worker_status"}
    | {"attempt_totals", "open_circuits"}
    | {"failing_endpoints", "status_counts", "worst_endpoints"}
    | {"board_figures", "hourly_attempts", "busiest_endpoints", "count_events", "minute_attempts"}
    | {"alert_facts", "firing_alerts", "list_alerts", "stuck_since"}
    | {"list_deliveries", "list_endpoints", "list_events", "list_jobs", "list_keys", "list_workers", "load"}
    | {"latency_days", "latency_window", "slowest"}
    | {"new_latency_source"}  # a number that gets lost is not missed
    | {"session"}
    | {"list_audit"}
    | {"oldest_due", "oldest_pending", "outstanding", "owned", "payload", "pulse", "running_jobs"}
    | {"try_accept"}
    | {"look_at_outbox", "outbox_backlog", "outbox_conflicts", "outbox_sources"}
    | {"count_refused", "refused_row", "refused_rows"}
)


def writing_verbs() -> frozenset[str]:
    """The contract's verbs that write."""
    verbs = {name for name, _ in inspect.getmembers(Store, inspect.iscoroutinefunction)}
    return frozenset(verbs - LIFE - NOTIFICATIONS - READS)


def failing(store: type[T]) -> type[T]:
    """Put failpoints around a store's writing verbs."""
    for verb in writing_verbs():
        setattr(store, verb, _around(verb, getattr(store, verb)))
    return store


def _around(verb: str, carry_out: Verb) -> Verb:
    before, after = f"{verb}.before", f"{verb}.after"

    async def fail_around(*arguments: Any, **named: Any) -> Any:
        failpoint(before)
        result = await carry_out(*arguments, **named)
        failpoint(after)
        return result

    @wraps(carry_out)
    def either(*arguments: Any, **named: Any) -> Awaitable[Any]:
        # While nothing is planted, the verb itself is returned: no extra coroutine around it.
        return fail_around(*arguments, **named) if planted else carry_out(*arguments, **named)

    return either
