"""Names the schemas of the API's description, so that generated clients have types with names that people choose.

A type is called like its Struct without `Report`, or as `_CALLED` says. Lists of words that `WORDS` knows and nested
schemas with a `title` become schemas of their own.
"""

import re
from collections.abc import Iterable
from typing import Any

import msgspec

from hookline import model
from hookline.api.description.examples import example
from hookline.reports.waiting import WORDS as WAITING
from hookline.rules.death_pattern import Pattern
from hookline.rules.liveness import Condition
from hookline.rules.outbox_state import OutboxState
from hookline.rules.retry import JITTERS, PRESETS
from hookline.rules.status_sentence import Severity
from hookline.validate.dead_letter_filter import REASONS

REF = "#/components/schemas/{name}"
# Not `NewEndpoint`: Go's generator names the constructor of Endpoint so. Not `Error`, `Request`: languages have those.
_CALLED = {
    "AlertTest": "TestAlert",
    "Audit": "AuditEntry",
    "ChangedEndpoint": "EndpointPatch",
    "Channel": "ChannelResult",
    "Culprit": "FieldError",
    "Database": "DatabaseStatus",
    "Deaths": "EndpointDeaths",
    "Description": "EventTypeInput",
    "Error": "AttemptError",
    "Failing": "FailingEndpoint",
    "NewEndpoint": "EndpointInput",
    "NewKey": "KeyInput",
    "Phases": "AttemptPhases",
    "Request": "AttemptRequest",
    "Situation": "InstallationStatus",
    "Status": "Probe",
    "Test": "TestEvent",
    "Worst": "WorstEndpoint",
}
WORDS: dict[str, Iterable[str]] = {
    "ActorKind": model.ActorKind,
    "AlertKind": model.AlertKind,
    "AlertState": ("firing", "resolved"),
    "AuditAction": model.AuditAction,
    "AuditVia": model.Via,
    "CircuitState": model.CircuitState,
    "DeadLetterReason": REASONS,
    "DeathReason": model.Reason,
    "DeliveryState": model.State,
    "EndedState": [state for state in model.State if state is not model.State.PENDING],
    "ErrorKind": model.ErrorKind,
    "FailurePattern": Pattern,
    "JitterKind": JITTERS,
    "JobState": ("running", "done", "failed"),
    "KeyScope": model.Scope,
    "NotifyChannel": ("email", "slack", "webhook", "events"),
    "Ordering": model.Ordering,
    "OutboxState": OutboxState,
    "RetryPreset": PRESETS,
    "Signature": model.Signature,
    "Signing": model.Signing,
    "StatusLevel": Severity,
    "WaitingFor": WAITING,
    "WorkerKind": ("serve", "worker", "api", "library"),
    "WorkerState": Condition,
}
_NAME_OF = {tuple(str(word) for word in words): name for name, words in WORDS.items()}

Schema = dict[str, Any]


class Schemas:
    """The schemas under `components`: those of the calls' types, and those that are nested in them."""

    def __init__(self, *, asked: Iterable[type], answered: Iterable[Any]) -> None:
        self._named: dict[str, Schema] = {}
        self._of: dict[Any, Schema] = {}
        found: dict[str, Schema] = {}
        for types, adjust in ((asked, _as_asked), (answered, _as_answered)):
            inside = sorted(types, key=str)
            references, schemas = msgspec.json.schema_components(inside, ref_template=REF)
            self._of |= dict(zip(inside, references, strict=True))
            found |= {name: adjust(schema) for name, schema in schemas.items()}
        for name, schema in sorted(found.items()):
            inner = {key: self.named(value) for key, value in schema.items()}
            self._add(public(name), inner | {"title": public(name)})
        self._of = {kind: self.named(found) for kind, found in self._of.items()}

    def of(self, kind: Any) -> Schema:
        """A reference to the schema of a call's type."""
        return self._of[kind]

    def named(self, schema: Any) -> Any:
        """The schema with references to what has a name."""
        if isinstance(schema, list):
            return [self.named(each) for each in schema]
        if not isinstance(schema, dict):
            return schema
        inner = {key: self.named(value) for key, value in schema.items()}
        if isinstance(reference := inner.get("$ref"), str):
            inner["$ref"] = REF.format(name=public(reference.rpartition("/")[2]))
        if isinstance(words := inner.get("enum"), list) and tuple(words) in _NAME_OF:
            return self._lifted(inner, _NAME_OF[tuple(words)])
        if isinstance(title := inner.get("title"), str) and ("type" in inner or "anyOf" in inner):
            return self._lifted(inner, title)
        return inner

    def example(self, schema: Schema) -> Any:
        """A value of this schema."""
        return example(schema, self._named)

    def all(self) -> dict[str, Schema]:
        """By name."""
        return dict(sorted(self._named.items()))

    def _lifted(self, schema: Schema, name: str) -> Schema:
        """A reference to a schema of this name; what is said of the field stays with the field."""
        about = {key: value for key, value in schema.items() if key == "description"}
        own = {key: value for key, value in schema.items() if key not in ("title", "description")}
        reference: Schema = {"$ref": REF.format(name=name)}
        if isinstance(kinds := schema.get("type"), list):  # such as ["object", "null"]
            own["type"] = kinds[0]
            reference = {"anyOf": [reference, {"type": "null"}]}
        self._add(name, {"title": name, **own})
        return {**about, **reference}

    def _add(self, name: str, schema: Schema) -> None:
        if self._named.setdefault(name, schema) != schema:
            raise ValueError(f"two schemas are called {name}: {self._named[name]} and {schema}")


def public(name: str) -> str:
    """The public name of a type: `Endpoint` for EndpointReport, `EndpointPage` for Page[EndpointReport]."""
    if page := re.fullmatch(r"Page_(\w+)_", name):
        return f"{public(page[1])}Page"
    name = name.removesuffix("Report")
    return _CALLED.get(name, name)


def _as_asked(schema: Schema) -> Schema:
    """Unknown names are refused before a body is decoded. Generators would send a `default: null`, so there is none."""
    fields = {name: _without_null(field) for name, field in schema["properties"].items()}
    return {**schema, "properties": fields, "additionalProperties": False}


def _without_null(field: Schema) -> Schema:
    return {key: value for key, value in field.items() if (key, value) != ("default", None)}


def _as_answered(schema: Schema) -> Schema:
    """Answers write out defaults, so a field that has one is always there."""
    fields, required = schema.get("properties", {}), schema.get("required", [])
    return {
        **schema,
        "properties": {name: {k: v for k, v in f.items() if k != "default"} for name, f in fields.items()},
        "required": [name for name, field in fields.items() if name in required or "default" in field],
    }
