"""Describes the API for programs.

The description is OpenAPI 3.1, generated from the table of calls: nothing is described here that a call does not say
about itself.
"""

import re
from collections.abc import Sequence
from typing import Any, get_origin

import msgspec

from hookline.api.call import Call, CallScope, Page, Paged, names_account
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

_REF = "#/components/schemas/{name}"
_PART = re.compile(r"\{(\w+)\}")
_NAMES = {
    ("POST", "/v1/events"): "publish_event",
    ("POST", "/v1/events/batch"): "publish_batch",
    ("POST", "/v1/accounts/{account}/test-alert"): "test_alert",
    ("POST", "/v1/accounts/{account}/portal-link"): "create_portal_link",
}
_PARTS = {
    "name": parameters.TYPE_SCHEMA,
    "account": parameters.ACCOUNT_SCHEMA,
    "prefix": parameters.PREFIX_SCHEMA,
}
_DESCRIPTION = """\
Requests and responses are JSON in snake_case; times are RFC 3339 in UTC. Lists are sorted newest first and \
paged: pass `next_cursor` of a page as `cursor` to get the next one. Errors are `application/problem+json` with a stable `code`; unknown fields and \
parameters are refused, with a suggestion. Every response has a `Request-Id`."""


def describe(table: Sequence[Call]) -> dict[str, Any]:
    """The whole document."""
    table = [call for call in table if call.is_described]
    bodies = {call.body for call in table if call.body is not None}
    answers = {call.answer for call in table if call.answer is not None}
    told = {kind.data for kind in OWN_EVENTS.values()}
    types = sorted(bodies | answers | told | {Problem}, key=str)
    references, schemas = msgspec.json.schema_components(types, ref_template=_REF)
    for body in bodies:  # unknown names are refused before a body is decoded
        schemas[body.__name__]["additionalProperties"] = False
    schema_of = {kind: _renamed(found) for kind, found in zip(types, references, strict=True)}
    schemas = {
        _public(name): _renamed(schema) | {"title": _public(name)} for name, schema in sorted(schemas.items())
    }
    paths: dict[str, dict[str, Any]] = {}
    for call in table:
        paths.setdefault(call.path, {})[call.method.lower()] = _operation(call, schema_of)
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
        "tags": [{"name": name} for name in dict.fromkeys(_tag(call) for call in table)],
        "paths": paths,
        "webhooks": {name: {"post": _own_event(name, kind, schema_of)} for name, kind in OWN_EVENTS.items()},
        "components": {
            "schemas": schemas,
            "securitySchemes": {
                "key": {
                    "type": "http",
                    "scheme": "bearer",
                    "description": "An API key, `hlk_…`; none is needed in development mode.",
                }
            },
        },
    }


def _own_event(name: str, kind: OwnEventKind, schema_of: dict[Any, dict[str, Any]]) -> dict[str, Any]:
    """The request that an endpoint of hookline's own account gets."""
    payload = {
        "type": "object",
        "required": ["type", "at", "account", "data"],
        "properties": {
            "type": {"const": name},
            "at": {"type": "string", "format": "date-time", "description": "When it happened."},
            "account": {"type": ["string", "null"], "description": "The account that it is about."},
            "data": schema_of[kind.data]
            | {"description": "As the API shows it; only `id`, `account` and `reason` if it was deleted."},
        },
    }
    return {
        "tags": ["own events"],
        "summary": kind.when,
        "description": f"Sent to the endpoints of the account `{OWN_ACCOUNT}` whose `events` match.",
        "security": [],
        "requestBody": {"required": True, "content": {"application/json": {"schema": payload}}},
        "responses": {"2XX": {"description": "Accepted; any other answer is retried or final as usual."}},
    }


def _operation(call: Call, schema_of: dict[Any, dict[str, Any]]) -> dict[str, Any]:
    described: dict[str, Any] = {
        "operationId": operation_id(call),
        "tags": [_tag(call)],
        "summary": call.summary,
        "responses": _responses(call, schema_of),
    }
    if call.scope is CallScope.OPEN:
        described["security"] = []
    else:
        lesser = call.scope_of_accounts
        also = "" if lesser is None else f", or with `{lesser}` if it is bound to an account"
        described["description"] = f"Needs a key with the scope `{call.scope}`{also}."
    if given := [*_path_parameters(call), *_query_parameters(call)]:
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
    if call.body is not None:
        described["requestBody"] = {
            "required": call.method == "PATCH"
            or any(field.required for field in msgspec.structs.fields(call.body)),
            # A merge patch may have its own media type too, but generators fail on two media types with one schema.
            "content": {"application/json": {"schema": schema_of[call.body]}},
        }
    return described


def _path_parameters(call: Call) -> list[dict[str, Any]]:
    found = []
    for name in _PART.findall(call.path):
        noun = name.removesuffix("_id")
        schema = parameters.id_schema(noun) if noun in PREFIXES else _PARTS.get(name, {"type": "string"})
        found.append({"name": name, "in": "path", "required": True, "schema": schema})
    return found


def _query_parameters(call: Call) -> list[dict[str, Any]]:
    kinds = parameters.kinds_of(call.query)
    found = []
    for field in msgspec.structs.fields(call.query):
        default = {} if field.default is None else {"default": field.default}
        found.append({"name": field.name, "in": "query", "schema": kinds[field.name].schema | default})
    return found


def _responses(call: Call, schema_of: dict[Any, dict[str, Any]]) -> dict[str, Any]:
    headers: dict[str, Any] = {"Request-Id": {"required": True, "schema": {"type": "string"}}}
    good: dict[str, Any] = {
        "description": "Done." if call.answer is None else call.summary,
        "headers": headers,
    }
    if call.media is not None:
        good["content"] = {call.media: {}}
    elif call.answer is not None:
        good["content"] = {"application/json": {"schema": schema_of[call.answer]}}
    found = {str(call.status): good}
    by_status: dict[int, list[str]] = {}
    for code in problems_of(call):
        by_status.setdefault(STATUSES.get(code, 422), []).append(code)
    for status, codes in sorted(by_status.items()):
        found[str(status)] = {
            "description": f"{TITLES[status]}: {', '.join(f'`{code}`' for code in codes)}",
            "headers": headers,
            "content": {"application/problem+json": {"schema": schema_of[Problem]}},
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


def operation_id(call: Call) -> str:
    """A name such as `list_endpoints`, `get_endpoint` or `rotate_endpoint_secret`; generated clients use it."""
    if (call.method, call.path) in _NAMES:
        return _NAMES[call.method, call.path]
    steps = [
        step.replace("-", "_").replace(".", "_") for step in call.path.split("/") if step not in ("", "v1")
    ]
    if not steps:
        return "get_root"
    collection, rest = steps[0], [step for step in steps[1:] if not step.startswith("{")]
    noun = _singular(collection) if len(steps) > 1 or call.method == "POST" else collection
    is_list = get_origin(call.answer) is Page
    if call.method == "POST":
        return "_".join([rest[-1], noun, *rest[:-1]]) if rest else f"create_{noun}"
    verb = {"GET": "list" if is_list else "get", "PUT": "put", "PATCH": "update", "DELETE": "delete"}[
        call.method
    ]
    return "_".join([verb, noun, *rest])


def _public(name: str) -> str:
    """The public name of a type: `Endpoint` for EndpointReport, `EndpointPage` for Page[EndpointReport]."""
    return re.sub(r"^Page_(\w+?)(?:Report)?_$", r"\1Page", name).removesuffix("Report")


def _renamed(schema: Any) -> Any:
    if isinstance(schema, dict):
        named = {key: _renamed(value) for key, value in schema.items()}
        if isinstance(reference := named.get("$ref"), str):
            named["$ref"] = _REF.format(name=_public(reference.rpartition("/")[2]))
        return named
    return [_renamed(each) for each in schema] if isinstance(schema, list) else schema


def _singular(noun: str) -> str:
    return noun.removesuffix("ies") + "y" if noun.endswith("ies") else noun.removesuffix("s")


def _tag(call: Call) -> str:
    steps = call.path.split("/")
    return steps[2] if len(steps) > 2 and steps[1] == "v1" else "server"
