"""Describes the API for programs.

The description is OpenAPI 3.1, generated from the table of calls: nothing is described here that a call does not say
about itself.
"""

import re
from collections.abc import Sequence
from typing import Any

import msgspec

from hookline.api.call import Call, CallScope, Paged, names_account
from hookline.api.description.examples import PARTS, example_id
from hookline.api.description.operations import operation_id, tag
from hookline.api.description.samples import curl
from hookline.api.description.schemas import Schemas
from hookline.api.problem import STATUSES, TITLES, Problem
from hookline.api.request import parameters
from hookline.ids import PREFIXES
from hookline.model import OWN_ACCOUNT
from hookline.reports.own_events import OWN_EVENTS, OwnEventKind
from hookline.version import VERSION

ANY_CALL = ("bad_request", "unknown_parameter", "internal", "unavailable", "overloaded", "storage_full")
WITH_KEY = ("unauthenticated", "forbidden", "rate_limited")
WITH_BODY = (
    "invalid_json",
    "duplicate_key",
    "too_deep",
    "too_large",
    "request_timeout",
    "unsupported_media_type",
    "invalid_field",
)

_PART = re.compile(r"\{(\w+)\}")
_PART_SCHEMAS = {
    "name": parameters.TYPE_SCHEMA,
    "account": parameters.ACCOUNT_SCHEMA,
    "prefix": parameters.PREFIX_SCHEMA,
}
_MEDIA: dict[str, tuple[dict[str, str], Any]] = {
    "text/plain": ({"type": "string"}, "# TYPE hookline_deliveries gauge\n"),
    "text/html": ({"type": "string"}, "<!doctype html>"),
    "application/json": ({"type": "object"}, {"openapi": "3.1.0"}),
}
_DESCRIPTION = """\
Requests and responses are JSON in snake_case; times are RFC 3339 in UTC. Lists are sorted newest first and \
paged: pass `next_cursor` of a page as `cursor` to get the next one. Errors are `application/problem+json` with a stable `code`; unknown fields and \
parameters are refused, with a suggestion. Every response has a `Request-Id`."""


def describe(table: Sequence[Call], *, needs_key: bool = True) -> dict[str, Any]:
    """The whole document. In development the examples need no key."""
    table = [call for call in table if call.is_described]
    schemas = Schemas(
        asked={body for call in table if (body := fields_of(call)) is not None},
        answered={call.answer for call in table if call.answer is not None}
        | {kind.data for kind in OWN_EVENTS.values()}
        | {Problem},
    )
    paths: dict[str, dict[str, Any]] = {}
    for call in table:
        paths.setdefault(call.path, {})[call.method.lower()] = _operation(call, schemas, needs_key=needs_key)
    hooks = {name: {"post": _own_event(name, kind, schemas)} for name, kind in OWN_EVENTS.items()}
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "hookline",
            "version": VERSION,
            "summary": "Sends webhooks and does not lose them.",
            "description": _DESCRIPTION,
            "license": {"name": "Apache 2.0", "identifier": "Apache-2.0"},
        },
        "servers": [{"url": "/"}],
        "security": [{"key": []}],
        "tags": [{"name": name} for name in dict.fromkeys(tag(call) for call in table)],
        "paths": paths,
        "webhooks": hooks,
        "components": {
            "schemas": schemas.all(),
            "securitySchemes": {
                "key": {
                    "type": "http",
                    "scheme": "bearer",
                    "description": "An API key, `hlk_…`; none is needed in development mode.",
                }
            },
        },
    }


def _own_event(name: str, kind: OwnEventKind, schemas: Schemas) -> dict[str, Any]:
    """The request that an endpoint of hookline's own account gets."""
    title = "".join(word.capitalize() for word in name.split("."))
    payload = {
        "title": f"{title}Event",
        "type": "object",
        "required": ["type", "at", "account", "data"],
        "properties": {
            "type": {"type": "string", "const": name},
            "at": {"type": "string", "format": "date-time", "description": "When it happened."},
            "account": {"type": ["string", "null"], "description": "The account that it is about."},
            "data": schemas.of(kind.data)
            | {"description": "As the API shows it; only `id`, `account` and `reason` if it was deleted."},
        },
    }
    schema = schemas.named(payload)
    return {
        "operationId": f"on{title}",
        "tags": ["own-events"],
        "x-internal": True,  # OpenAPI Generator would make methods of a client of these, which it cannot compile
        "summary": kind.when,
        "description": f"Sent to the endpoints of the account `{OWN_ACCOUNT}` whose `events` match.",
        "security": [],
        "requestBody": {
            "required": True,
            "content": {"application/json": {"schema": schema, "examples": _shown(schemas.example(schema))}},
        },
        "responses": {"2XX": {"description": "Accepted; any other answer is retried or final as usual."}},
    }


def _operation(call: Call, schemas: Schemas, *, needs_key: bool) -> dict[str, Any]:
    described: dict[str, Any] = {
        "operationId": operation_id(call),
        "tags": [tag(call)],
        "summary": call.summary,
        "responses": _responses(call, schemas),
    }
    if call.scope is CallScope.OPEN:
        described["security"] = []
    else:
        lesser = call.scope_of_accounts
        also = "" if lesser is None else f", or with `{lesser}` if it is bound to an account"
        described["description"] = f"Needs a key with the scope `{call.scope}`{also}."
    if given := [*_path_parameters(call), *_query_parameters(call, schemas)]:
        described["parameters"] = given
    if call.takes_key:
        described.setdefault("parameters", []).append(
            {
                "name": "Idempotency-Key",
                "in": "header",
                "description": "A key of your choice. Repeating the request with the same key has no further effect.",
                "schema": parameters.KEY_SCHEMA,
            }
        )
    if (body := fields_of(call)) is not None:
        described["requestBody"] = {
            "required": call.method == "PATCH"
            or any(field.required for field in msgspec.structs.fields(body)),
            # A merge patch may have its own media type too, but generators fail on two media types with one schema.
            "content": {"application/json": {"schema": schemas.of(body), "examples": _shown(call.example)}},
        }
    path = _PART.sub(lambda part: _part_example(part[1]), call.path)
    sample = curl(call, path, call.example, needs_key=needs_key)
    described["x-codeSamples"] = [{"lang": "Shell", "label": "curl", "source": sample}]
    return described


def fields_of(call: Call) -> type[msgspec.Struct] | None:
    """The body, if it has fields. A call without any may be sent `{}`, which nobody needs to know."""
    return call.body if call.body is not None and call.body.__struct_fields__ else None


def _path_parameters(call: Call) -> list[dict[str, Any]]:
    found = []
    for name in _PART.findall(call.path):
        noun = name.removesuffix("_id")
        schema = (
            parameters.id_schema(noun) if noun in PREFIXES else _PART_SCHEMAS.get(name, {"type": "string"})
        )
        found.append(
            {"name": name, "in": "path", "required": True, "schema": schema, "example": _part_example(name)}
        )
    return found


def _part_example(name: str) -> str:
    return PARTS.get(name) or example_id(name.removesuffix("_id"))


def _query_parameters(call: Call, schemas: Schemas) -> list[dict[str, Any]]:
    kinds = parameters.kinds_of(call.query)
    found = []
    for field in msgspec.structs.fields(call.query):
        default = {} if field.default is None else {"default": field.default}
        kind = kinds[field.name]
        found.append(
            {
                "name": field.name,
                "in": "query",
                "description": kind.text,
                "schema": schemas.named(kind.schema) | default,
            }
        )
    return found


def _shown(example: Any) -> dict[str, Any]:
    """One example; the viewer reads `examples`, not `example`."""
    return {"Example": {"value": example}}


def _responses(call: Call, schemas: Schemas) -> dict[str, Any]:
    headers: dict[str, Any] = {"Request-Id": {"required": True, "schema": {"type": "string"}}}
    good: dict[str, Any] = {
        "description": "Done." if call.answer is None else call.summary,
        "headers": headers,
    }
    if call.media is not None:
        schema, example = _MEDIA[call.media]
        good["content"] = {call.media: {"schema": schema, "examples": _shown(example)}}
    elif call.answer is not None:
        schema = schemas.of(call.answer)
        good["content"] = {
            "application/json": {"schema": schema, "examples": _shown(schemas.example(schema))}
        }
    found = {str(call.status): good}
    by_status: dict[int, list[str]] = {}
    for code in problems_of(call):
        by_status.setdefault(STATUSES.get(code, 422), []).append(code)
    for status, codes in sorted(by_status.items()):
        found[str(status)] = {
            "description": f"{TITLES[status]}: {', '.join(f'`{code}`' for code in codes)}",
            "headers": headers,
            "content": {"application/problem+json": {"schema": schemas.of(Problem)}},
        }
    return found


def problems_of(call: Call) -> list[str]:
    """Every code that the call can answer with."""
    codes = [*ANY_CALL]
    if call.scope is not CallScope.OPEN:
        codes += WITH_KEY
    if "{" in call.path:
        codes.append("not_found")
    if call.query.__struct_fields__:
        codes.append("invalid_parameter")
    if issubclass(call.query, Paged):
        codes.append("invalid_cursor")
    if call.body is not None:
        codes += [*WITH_BODY, "unknown_field"]
    if call.takes_key:
        codes.append("invalid_field")
    if names_account(call):
        codes.append("account_mismatch")
    return list(dict.fromkeys([*codes, *call.problems]))
