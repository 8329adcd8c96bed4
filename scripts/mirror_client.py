"""Writes the parts of the client that follow from something else.

The synchronous client is the asynchronous one without the awaiting. The types of an endpoint's fields follow from the
table of them (`hookline.validate.endpoint_fields`), the type of an endpoint from its view in the API, the words of
states and kinds from the server's own.

Run it after a change of these. With `--check` it writes nothing and exits with 1 if a file is not as it would be
written.
"""

import re
import subprocess
import sys
from collections.abc import Iterable
from enum import StrEnum
from pathlib import Path
from types import NoneType
from typing import Annotated, Any, get_args, get_origin

import msgspec

from hookline import model
from hookline.reports import views, waiting
from hookline.reports.views import EndpointReport, Moment
from hookline.rules.death_pattern import Pattern
from hookline.rules.liveness import Condition
from hookline.rules.status_sentence import Severity
from hookline.store.contract import JobState
from hookline.validate.api_schema import or_null
from hookline.validate.endpoint_fields import BY_NAME, FIELDS, EndpointField

ROOT = Path(__file__).parents[1]
CLIENT = ROOT / "src/hookline/client"
FROM, TO = CLIENT / "aio", CLIENT / "blocking"
MARK = "# Generated from client/aio by scripts/mirror_client.py: change that, and run it.\n"
NOT_MIRRORED = {"client.py", "__init__.py"}  # each does its own I/O
ENDPOINT = CLIENT / "endpoint.py"
ENDPOINT_MARK = (
    "# Generated from validate/endpoint_fields.py and reports/views.py by scripts/mirror_client.py: "
    "change those, and run it.\n"
)
WORDS = CLIENT / "words.py"
WORDS_MARK = "# Generated from model.py and other enums of the server by scripts/mirror_client.py: change those, and run it.\n"
# The words of the answers: the client's name of each set, what it says, and the server's words.
WORD_SETS: tuple[tuple[str, str, type[StrEnum] | tuple[str, ...]], ...] = (
    ("DeliveryState", "The state of a delivery.", model.State),
    ("Reason", "Why a delivery is dead or cancelled.", model.Reason),
    ("WaitingFor", "What a pending delivery waits for.", waiting.WORDS),
    ("ErrorKind", "Why an attempt was not accepted.", model.ErrorKind),
    ("CircuitState", "Whether an endpoint's circuit lets requests through.", model.CircuitState),
    ("Signing", "The style of an endpoint's signatures.", model.Signing),
    ("Signature", "How the signatures of the standard style are made.", model.Signature),
    ("Ordering", "Whether deliveries to an endpoint may overtake each other.", model.Ordering),
    ("DeathPattern", "What the dead letters of an endpoint have in common.", Pattern),
    ("JobState", "The progress of a bulk replay or discard.", JobState),
    ("AlertKind", "A condition that somebody should know of.", model.AlertKind),
    ("AlertState", "Whether an alert's condition still holds.", ("firing", "resolved")),
    ("StatusLevel", "How bad it is.", Severity),
    ("WorkerState", "The condition of a process, as of its last heartbeat.", Condition),
    ("WorkerKind", "What a process was started as.", views.KINDS),
    ("Scope", "What a key may do.", model.Scope),
    ("AuditAction", "What somebody did.", model.AuditAction),
    ("ActorKind", "What somebody acted with.", model.ActorKind),
    ("Via", "The way in that somebody took.", model.Via),
    ("Channel", "A way on which an account is told of trouble.", ("email", "slack", "webhook", "events")),
)

_WORDS = (
    (r"\basync (?=def |for |with )", ""),
    (r"\bawait ", ""),
    (r"\bAsync(?=[A-Z])", ""),
    (r"\b__aiter__\b", "__iter__"),
    (r"for (\w+) in (\S+):\n +yield \1\n", r"yield from \2\n"),
    (r"\bhookline\.client\.aio\b", "hookline.client.blocking"),
)


def files() -> dict[Path, str]:
    """Each file that is generated, and what it holds."""
    found = sorted(path for path in FROM.glob("*.py") if path.name not in NOT_MIRRORED)
    return {TO / path.name: mirrored(path.read_text()) for path in found} | {
        ENDPOINT: endpoint_types(),
        WORDS: word_sets(),
    }


def mirrored(source: str) -> str:
    """The module without the awaiting, marked as generated."""
    for pattern, replacement in _WORDS:
        source = re.sub(pattern, replacement, source)
    return MARK + _formatted(source)


def word_sets() -> str:
    """The module with the words of states and kinds."""
    sets = "".join(
        f"""

class {name}(OpenWord):
    \"\"\"{says}\"\"\"

{_members(words)}
"""
        for name, says, words in WORD_SETS
    )
    source = f"""
\"\"\"The words of states and kinds in the answers.\"\"\"

from hookline.client.open_word import OpenWord
{sets}"""
    return WORDS_MARK + _formatted(source)


def _members(words: Iterable[str]) -> str:
    return "\n".join(f'    {word.upper().replace(".", "_")} = "{word}"' for word in map(str, words))


def endpoint_types() -> str:
    """The module with the types of an endpoint and of its fields."""
    positional = [field for field in FIELDS if field.is_required]  # of `create_endpoint`
    changeable = [field for field in FIELDS if field.in_patch and not field.fixed]
    both = [field for field in changeable if field not in positional]
    source = f"""
\"\"\"An endpoint, and the fields that it is created and changed with.

The types of the fields are for type checkers and editors: the server checks the values, and refuses invalid ones by
name.
\"\"\"

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Literal, TypedDict

import msgspec

from hookline.client.answers import ApiObject, Circuit, without_secrets
from hookline.client.words import Ordering, Signature, Signing
from hookline.validate.payload_encoding import JsonValue


class _Settings(TypedDict, total=False):
{_given(both)}


class EndpointFields(_Settings, total=False):
    \"\"\"The fields of a new endpoint, besides its URL and its events.\"\"\"

{_given(field for field in FIELDS if field not in changeable)}


class EndpointChanges(_Settings, total=False):
    \"\"\"Changes to an existing endpoint; None resets a field to its default.\"\"\"

{_given(positional)}


class Endpoint(ApiObject, frozen=True, kw_only=True):
    \"\"\"An endpoint; `secret` is only in the answer to its creation.\"\"\"

{_answered()}

    def __repr__(self) -> str:
        return without_secrets(self, "secret")
"""
    return ENDPOINT_MARK + _formatted(source)


def _given(fields: Iterable[EndpointField]) -> str:
    """The lines of these fields in a request."""
    return "\n".join(
        f"    {field.name}: {_type_of(field.schema if field.is_required else or_null(field.schema))}"
        for field in fields
    )


_TYPES = {"string": "str", "integer": "int", "number": "float", "boolean": "bool", "null": "None"}
_EMPTY = {"bool": "False", "str": '""', "int": "0", "float": "0.0"} | {
    kind: f"msgspec.field(default_factory={kind})" for kind in ("list", "dict")
}
_IN_EVERY_ANSWER = {"id", "account", "created_at", "updated_at"}


_ANNOTATED = (
    (Moment, "datetime"),
    (views.SigningWord, "Signing"),
    (views.SignatureWord, "Signature"),
    (views.OrderingWord, "Ordering"),
)


def _type_of(schema: dict[str, Any]) -> str:
    """The type of a field with this JSON Schema."""
    return _union(_types_of(schema))


def _types_of(schema: dict[str, Any]) -> list[str]:
    if "anyOf" in schema:
        return [kind for each in schema["anyOf"] for kind in _types_of(each)]
    if "enum" in schema:
        sets = [name for name, _, words in WORD_SETS if [str(word) for word in words] == schema["enum"]]
        return [*sets, f"Literal[{', '.join(map(repr, schema['enum']))}]"]
    kinds = schema["type"] if isinstance(schema["type"], list) else [schema["type"]]
    return [_type_of_one(schema, kind) for kind in kinds]


def _type_of_one(schema: dict[str, Any], kind: str) -> str:
    if kind == "array":
        return f"Sequence[{_type_of(schema['items'])}]"
    if kind != "object":
        return _TYPES[kind]
    values = [*schema.get("properties", {}).values(), schema.get("additionalProperties")]
    types = {kind for each in values if isinstance(each, dict) for kind in _types_of(each)}
    return f"Mapping[str, {_union(types) if types and types <= set(_TYPES.values()) else 'object'}]"


def _union(types: Iterable[str]) -> str:
    """One of these types, None last; type checkers take a whole number for a float."""
    found = dict.fromkeys(types)
    if "float" in found:
        found.pop("int", None)
    return " | ".join(sorted(found, key=lambda each: each == "None"))


def _answered() -> str:
    """The lines of the fields in an answer. A server that lacks a field is older, and does what the default says."""
    return "\n".join(
        f"    {field.name}: {_answer(BY_NAME.get(field.name), field.name, _answer_of(field.type))}"
        for field in msgspec.structs.fields(EndpointReport)
    )


def _answer(field: EndpointField | None, name: str, kind: str) -> str:
    """The type of a field in an answer, and its default."""
    if name in _IN_EVERY_ANSWER or (field is not None and field.is_required):
        return kind
    if kind.endswith("| None"):
        return f"{kind} = None"
    default = None if field is None else field.default if field.show is None else field.show(field.default)
    if isinstance(default, str) and kind != "str":
        return f"{kind} = {kind}({str(default)!r})"
    if isinstance(default, str | int | float):
        return f"{kind} = {default!r}"
    empty = _EMPTY.get(kind.partition("[")[0])
    return f"{kind} | None = None" if empty is None else f"{kind} = {empty}"


def _answer_of(kind: Any) -> str:
    """The type of a field that the server shows as this type."""
    origin, of = get_origin(kind), get_args(kind)
    if origin is Annotated:
        return next((name for shown, name in _ANNOTATED if kind == shown), None) or _answer_of(of[0])
    if kind is Any:
        return "JsonValue"
    if origin is tuple:
        return f"list[{_answer_of(of[0])}]"
    if origin is dict:
        return f"dict[{_answer_of(of[0])}, {_answer_of(of[1])}]"
    if of:
        return _union(_answer_of(each) for each in of)
    if kind in (NoneType, msgspec.UnsetType):
        return "None"
    if isinstance(kind, type) and issubclass(kind, msgspec.Struct):
        values = {field.type for field in msgspec.structs.fields(kind)}
        if values <= {str, int, float}:
            return f"dict[str, {_union(each.__name__ for each in values)}]"
        return kind.__name__.removesuffix("Report")
    return str(kind.__name__)


def _formatted(source: str) -> str:
    for command in (["check", "--quiet", "--select", "I,F401", "--fix"], ["format", "--quiet"]):
        source = subprocess.run(
            [sys.executable, "-m", "ruff", *command, "--stdin-filename", str(TO / "any.py"), "-"],
            input=source,
            capture_output=True,
            text=True,
            check=True,
        ).stdout
    return source


def main() -> int:
    stale = {path: text for path, text in files().items() if not path.exists() or path.read_text() != text}
    if "--check" in sys.argv[1:]:
        for path in stale:
            print(f"{path.relative_to(ROOT)} is not what scripts/mirror_client.py writes: run it")
        return 1 if stale else 0
    for path, text in stale.items():
        path.write_text(text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
