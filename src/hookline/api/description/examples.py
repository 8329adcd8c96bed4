"""Makes the examples of the API's description.

The body of a request is the call's own `example`. An answer is made from its schema, so that it always has every field;
`_SHOWN` says what is in it where the first possible value would tell little.
"""

from collections.abc import Mapping
from typing import Any

from hookline import ids
from hookline.ids import PREFIXES

Schema = Mapping[str, Any]

_NOON = "2026-01-31T12:00:00.000000Z"
_ID = bytes.fromhex("019c13e3f2007a6b8c1d4e5f60718293")


def example_id(noun: str) -> str:
    """An id of this kind that nothing has."""
    return ids.show(noun, _ID)


# Of parts of a path that are no ids.
PARTS = {"account": "acme", "name": "order.paid", "prefix": example_id("delivery")[:12]}
_PAYLOAD = {"order": 42, "total": "19.90"}
_ERROR = {"kind": "http_5xx", "detail": "The endpoint answered 500."}
_RETRY = {"preset": "patient", "jitter": "full"}
# By schema, and by field wherever it is.
_SHOWN: dict[str, dict[str, Any]] = {
    "Account": {"id": "acme", "endpoints": 2, "updated_at": _NOON},
    "Notify": {"email": "ops@acme.example"},
    "Alert": {"threshold": 100, "value": 130, "message": "acme has 130 dead letters."},
    "Attempt": {"status": 500, "error": _ERROR, "response_body": "database is down", "duration_ms": 41.3},
    "AttemptError": _ERROR,
    "AttemptRequest": {
        "url": "https://acme.example/webhooks",
        "headers": {"webhook-id": example_id("event")},
    },
    "AuditEntry": {"action": "endpoint.update", "address": "192.0.2.7", "changes": {"paused": [False, True]}},
    "AuditSubject": {"kind": "endpoint", "id": example_id("endpoint")},
    "Delivery": {
        "state": "dead",
        "attempts": 9,
        "max_attempts": 9,
        "last_status": 500,
        "last_error": _ERROR,
        "reason": "exhausted",
        "created_at": _NOON,
        "dead_at": _NOON,
    },
    "Endpoint": {
        "description": "Orders of Acme",
        "enabled": True,
        "retry": _RETRY,
        "retry_statuses": ["5xx", 429],
        "timeout_ms": 15_000,
        "max_in_flight": 5,
    },
    "Event": {"payload": _PAYLOAD, "payload_bytes": 29},
    "EventType": {"name": "order.paid", "description": "An order was paid.", "schema": {"type": "object"}},
    "FieldError": {"pointer": "/type", "detail": "The field type is missing."},
    "Ids": {"data": [example_id("delivery")]},
    "Job": {"id": example_id("replay"), "matched": 12, "filter": {"event_type": "order.paid"}},
    "Key": {"id": example_id("key"), "name": "shop", "hint": "hlk_4f9a", "scopes": ["publish"]},
    "PortalLink": {"url": "https://hooks.example.com/portal/…", "path": "/portal/…", "visit_s": 3_600},
    "Probe": {"status": "ok"},
    "Problem": {
        "type": "urn:hookline:problem:invalid_field",
        "title": "The request is invalid",
        "status": 422,
        "detail": "The field type is missing.",
        "code": "invalid_field",
        "request_id": "req_019c13e3f200",
    },
    "Published": {"deliveries": 2},
    "Replayed": {"replayed": 1},
    "Secret": {"signature": "v1"},
    "InstallationStatus": {"healthy": True, "level": "good", "headline": "All is well."},
}
_FIELDS: dict[str, Any] = {
    "account": "acme",
    "delivery_id": example_id("delivery"),
    "endpoint_id": example_id("endpoint"),
    "event_id": example_id("event"),
    "event_type": "order.paid",
    "events": ["order.*"],
    "secret": "whsec_MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3",
    "type": "order.paid",
    "url": "https://acme.example/webhooks",
    "version": "1.0.0",
}


def example(schema: Schema, named: Mapping[str, Schema], *, field: str = "", of: str = "") -> Any:
    """A value that the schema allows."""
    if "$ref" in schema:
        name = schema["$ref"].rpartition("/")[2]
        return example(named[name], named, field=field, of=name)
    if "const" in schema:
        return schema["const"]
    if "enum" in schema:
        return schema["enum"][0]
    if "anyOf" in schema:
        return (
            None if {"type": "null"} in schema["anyOf"] else example(schema["anyOf"][0], named, field=field)
        )
    match schema.get("type"):
        case "object":
            shown = _SHOWN.get(of, {})
            return {
                name: shown[name]
                if name in shown
                else _FIELDS[name]
                if name in _FIELDS and _is_plain(inner)
                else example(inner, named, field=name)
                for name, inner in schema.get("properties", {}).items()
            }
        case "array":
            return [example(schema["items"], named, field=field)]
        case "string":
            return _text(schema, field)
        case "integer" | "number":
            return 0
        case "boolean":
            return False
        case _:  # null, or anything
            return None


def _is_plain(schema: Schema) -> bool:
    return schema.get("type") in ("string", "array") and not {"enum", "const"} & schema.keys()


def _text(schema: Schema, field: str) -> str:
    if schema.get("format") == "date-time" or field.endswith("_at"):
        return _NOON
    beginning = schema.get("pattern", "").removeprefix("^").partition("_")[0] + "_"
    noun = next((noun for noun, prefix in PREFIXES.items() if prefix == beginning), None)
    return f"a {field}" if noun is None else example_id(noun)
