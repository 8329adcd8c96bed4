"""Names the operations of the API's description; a generated client's methods are called so."""

import re
from typing import get_origin

from hookline.api.call import Call, Page

_NAMES = {
    "POST /v1/events": "publishEvent",
    "POST /v1/events/batch": "publishBatch",
    "POST /v1/endpoints/{endpoint_id}/test": "sendTestEvent",
    "POST /v1/accounts/{account}/test-alert": "sendTestAlert",
    "POST /v1/accounts/{account}/portal-link": "createPortalLink",
    "GET /v1/dead-letters/analysis": "analyseDeadLetters",
    "POST /v1/replays": "replayDeadLetters",
    "POST /v1/discards": "discardDeadLetters",
    "GET /v1/audit": "listAuditEntries",
    "GET /v1/ids/{prefix}": "findIds",
    "GET /v1/outbox": "getOutboxes",
    "GET /v1/outbox/refused": "listRefusedRows",
    "GET /v1/outbox/refused/{row_id}": "getRefusedRow",
    "POST /v1/outbox/refused/{row_id}/retry": "retryRefusedRow",
    "POST /v1/outbox/refused/{row_id}/discard": "discardRefusedRow",
    "GET /healthz": "getLiveness",
    "GET /readyz": "getReadiness",
    "GET /openapi.json": "getOpenapi",
}
_VERBS = {"GET": "get", "PUT": "put", "PATCH": "update", "DELETE": "delete"}


def operation_id(call: Call) -> str:
    """A name such as `listEndpoints`, `getEndpoint` or `rotateEndpointSecret`."""
    if name := _NAMES.get(f"{call.method} {call.path}"):
        return name
    steps = [step for step in call.path.split("/") if step not in ("", "v1")]
    collection, rest = steps[0], [step for step in steps[1:] if not step.startswith("{")]
    noun = _singular(collection) if len(steps) > 1 or call.method == "POST" else collection
    if call.method == "POST":
        words = [rest[-1], noun, *rest[:-1]] if rest else ["create", noun]
    else:
        words = ["list" if get_origin(call.answer) is Page else _VERBS[call.method], noun, *rest]
    first, *others = re.split("[-_.]", "-".join(words))
    return first + "".join(word.capitalize() for word in others)


def tag(call: Call) -> str:
    """The group that the operation belongs to."""
    steps = call.path.split("/")
    return steps[2] if len(steps) > 2 and steps[1] == "v1" else "server"


def _singular(noun: str) -> str:
    return noun.removesuffix("ies") + "y" if noun.endswith("ies") else noun.removesuffix("s")
