"""Holds the columns of an endpoint in SQLite: every statement and conversion that names them."""

from typing import Any

from hookline.model import Endpoint, Ordering
from hookline.store import endpoint_row
from hookline.store.sqlite.driver.bulk import Row
from hookline.store.sqlite.driver.values import json_text, maybe

CREATE_ENDPOINT = """
INSERT OR IGNORE INTO endpoints (id, account, url, events, secret, signing, description, enabled,
                                 disabled_reason, headers, metadata, timeout, max_in_flight, created_at, updated_at,
                                 max_redirects, paused, ordering, rate_limit, retry, retry_statuses, circuit,
                                 old_secret, old_secret_until, filter, signature)
VALUES (:id, :account, :url, :events, :secret, :signing, :description, :enabled,
        :disabled_reason, :headers, :metadata, :timeout, :max_in_flight, :created_at, :updated_at,
        :max_redirects, :paused, :ordering, :rate_limit, :retry, :retry_statuses, :circuit,
        :old_secret, :old_secret_until, :filter, :signature)
"""
UPDATE_ENDPOINT = """
UPDATE endpoints SET
  account = :account, url = :url, events = :events, secret = :secret, signing = :signing,
  description = :description, enabled = :enabled, disabled_reason = :disabled_reason, headers = :headers,
  metadata = :metadata, timeout = :timeout, max_in_flight = :max_in_flight,
  created_at = :created_at, updated_at = :updated_at, max_redirects = :max_redirects, paused = :paused,
  ordering = :ordering, rate_limit = :rate_limit, retry = :retry, retry_statuses = :retry_statuses, circuit = :circuit,
  old_secret = :old_secret, old_secret_until = :old_secret_until, filter = :filter, signature = :signature
WHERE id = :id AND updated_at = :was
"""
ENDPOINT_COLUMNS = """
SELECT id, account, url, events, secret, signing, description, enabled, disabled_reason, headers, metadata,
       timeout, max_in_flight, created_at, updated_at,
       max_redirects, paused, ordering, rate_limit, retry, retry_statuses, circuit,
       old_secret, old_secret_until, filter, signature
FROM endpoints
"""

_ENDPOINT = (
    *(
        "id",
        "account",
        "url",
        "events",
        "secret",
        "signing",
        "description",
        "enabled",
        "disabled_reason",
        "headers",
    ),
    *(
        "metadata",
        "timeout",
        "max_in_flight",
        "created_at",
        "updated_at",
        "max_redirects",
        "paused",
        "ordering",
    ),
    *(
        "rate_limit",
        "retry",
        "retry_statuses",
        "circuit",
        "old_secret",
        "old_secret_until",
        "filter",
        "signature",
    ),
)
_JSON = ("events", *endpoint_row.JSON)
_FLAGS = {0: False, 1: True}


def endpoint_values(endpoint: Endpoint) -> dict[str, Any]:
    return {
        "id": endpoint.id,
        "account": endpoint.account,
        "url": endpoint.url,
        "events": json_text(endpoint.events),
        "secret": endpoint.secret,
        "signing": endpoint.signing.value,
        "description": endpoint.description,
        "enabled": endpoint.enabled,
        "disabled_reason": endpoint.disabled_reason,
        "headers": json_text(endpoint.headers),
        "metadata": json_text(endpoint.metadata),
        "timeout": endpoint.timeout,
        "max_in_flight": endpoint.max_in_flight,
        "created_at": endpoint.created_at,
        "updated_at": endpoint.updated_at,
        "max_redirects": endpoint.max_redirects,
        "paused": endpoint.paused,
        "ordering": endpoint.ordering.value,
        "rate_limit": maybe(json_text, endpoint.rate_limit),
        "retry": maybe(json_text, endpoint.retry),
        "retry_statuses": json_text(endpoint.retry_statuses),
        "circuit": maybe(json_text, endpoint.circuit),
        "old_secret": endpoint.old_secret,
        "old_secret_until": endpoint.old_secret_until,
        "filter": endpoint.filter,
        "signature": endpoint.signature.value,
    }


def read_endpoint(row: Row) -> Endpoint | None:
    """The endpoint in this row; None when it has no id."""
    values = dict(zip(_ENDPOINT, row, strict=True))
    for name in ("enabled", "paused"):
        flag = values[name]
        values[name] = _FLAGS.get(flag, flag) if type(flag) is int else flag
    return endpoint_row.read(values, json=_JSON)


def lane_values(endpoint: Endpoint) -> dict[str, Any]:
    """What a lane needs to know of its endpoint."""
    return {
        "id": endpoint.id,
        "paused": endpoint.paused or not endpoint.enabled,
        "strict": endpoint.ordering is Ordering.STRICT,
    }
