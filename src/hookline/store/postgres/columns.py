"""Holds the columns of an endpoint in PostgreSQL: every statement and conversion that names them."""

from collections.abc import Iterable
from typing import Any

from hookline.model import Endpoint, Ordering
from hookline.store import endpoint_row
from hookline.store.postgres.driver.values import json_text, maybe, printable

CREATE_ENDPOINT = """
INSERT INTO endpoints (id, account, url, events, secret, signing, description, enabled, disabled_reason, headers, metadata,
  timeout, max_in_flight, created_at, updated_at, max_redirects, paused, ordering, rate_limit, retry, retry_statuses, circuit,
  old_secret, old_secret_until, filter, signature)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, to_timestamp($14), to_timestamp($15),
  $16, $17, $18, $19, $20, $21, $22, $23, to_timestamp($24), $25, $26)
ON CONFLICT (id) DO NOTHING RETURNING id
"""
UPDATE_ENDPOINT = """
UPDATE endpoints SET account = $2, url = $3, events = $4, secret = $5, signing = $6, description = $7, enabled = $8,
  disabled_reason = $9, headers = $10, metadata = $11, timeout = $12, max_in_flight = $13,
  created_at = to_timestamp($14), updated_at = to_timestamp($15), max_redirects = $16, paused = $17, ordering = $18,
  rate_limit = $19, retry = $20, retry_statuses = $21, circuit = $22,
  old_secret = $23, old_secret_until = to_timestamp($24), filter = $25, signature = $26
WHERE id = $1 AND updated_at = to_timestamp($27) RETURNING id
"""
ENDPOINT_COLUMNS = """e.id, e.account, e.url, e.events, e.secret, e.signing, e.description, e.enabled, e.disabled_reason,
  e.headers, e.metadata, e.timeout, e.max_in_flight, e.max_redirects, e.paused, e.ordering,
  e.rate_limit, e.retry, e.retry_statuses, e.circuit, e.old_secret, e.filter, e.signature,
  date_part('epoch', e.old_secret_until) AS old_secret_until,
  date_part('epoch', e.created_at) AS created_at, date_part('epoch', e.updated_at) AS updated_at"""


def endpoint_values(endpoint: Endpoint) -> list[Any]:
    """The values of CREATE_ENDPOINT and UPDATE_ENDPOINT."""
    return [
        endpoint.id,
        endpoint.account,
        endpoint.url,
        list(endpoint.events),
        endpoint.secret,
        endpoint.signing,
        printable(endpoint.description),
        endpoint.enabled,
        None if endpoint.disabled_reason is None else printable(endpoint.disabled_reason),
        json_text(endpoint.headers),
        json_text(endpoint.metadata),
        endpoint.timeout,
        endpoint.max_in_flight,
        endpoint.created_at,
        endpoint.updated_at,
        endpoint.max_redirects,
        endpoint.paused,
        endpoint.ordering,
        maybe(json_text, endpoint.rate_limit),
        maybe(json_text, endpoint.retry),
        json_text(endpoint.retry_statuses),
        maybe(json_text, endpoint.circuit),
        endpoint.old_secret,
        endpoint.old_secret_until,
        endpoint.filter,
        endpoint.signature,
    ]


def read_endpoints(found: Iterable[Any]) -> list[Endpoint]:
    """The endpoints in these rows; a row without an id is skipped."""
    return [endpoint for row in found if (endpoint := endpoint_row.read(dict(row))) is not None]


def lane_values(endpoint: Endpoint) -> list[Any]:
    """What a lane needs to know of its endpoint: whether it is paused, whether it is strict."""
    return [endpoint.paused or not endpoint.enabled, endpoint.ordering is Ordering.STRICT]
