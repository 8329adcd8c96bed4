"""Every operation of the API's description has an example that is right: its requests are sent, and work."""

import re
import shlex
from collections.abc import Callable
from typing import Any

import httpx
import jsonschema
import pytest

from hookline.api.description.document import describe, fields_of
from hookline.api.description.samples import KEY as KEY_NAME
from hookline.api.description.samples import SERVER
from hookline.api.routes import table
from hookline.app import Hookline
from hookline.config import Settings
from refused_rows import add_refused_row
from tests.api.conftest import KEY, Service
from tests.api.test_deliveries_api import delivery_of
from tests.api.test_deliveries_api import receiver as receiver  # a fixture

CALLS = [
    call
    for call in table(Hookline("sqlite:///never-opened.db", settings=Settings(dev=True)))
    if call.is_described
]
DOCUMENT = describe(CALLS)
OPERATIONS = {
    operation["operationId"]: operation
    for path in (*DOCUMENT["paths"].values(), *DOCUMENT["webhooks"].values())
    for operation in path.values()
}
SAMPLES = {name: each for name, each in OPERATIONS.items() if "x-codeSamples" in each}
VERBS = "analyse|cancel|create|delete|disable|discard|enable|find|get|list|on|pause|publish|put|replay|reset|resume|retry|rotate|send|update"
COMPARED = ("type", "enum", "const", "properties", "required", "items", "anyOf", "additionalProperties")


def described_values() -> list[tuple[str, dict[str, Any]]]:
    """Every place of the document that has a schema and content: bodies and answers."""
    found = []
    for name, operation in OPERATIONS.items():
        places = [operation.get("requestBody", {})]
        places += [each for status, each in operation["responses"].items() if status.startswith("2")]
        found += [(name, media) for place in places for media in place.get("content", {}).values()]
    return found


@pytest.mark.parametrize("call", CALLS, ids=lambda call: f"{call.method} {call.path}")
def test_a_call_whose_body_has_fields_has_an_example_of_it(call):
    assert (call.example is not None) == (fields_of(call) is not None), (
        f"{call.method} {call.path}: give its Call an `example`, a body that works when it is sent (api/call.py)"
    )


@pytest.mark.parametrize("name", OPERATIONS)
def test_an_operation_is_called_by_what_it_does(name):
    assert re.fullmatch(rf"({VERBS})([A-Z][a-z]*)+", name), (
        f"{name}: a generated client has a method of this name; give the path another one in "
        "api/description/operations.py, that begins with a verb"
    )


@pytest.mark.parametrize(
    ("name", "media"), described_values(), ids=lambda each: each if isinstance(each, str) else ""
)
def test_an_example_is_what_its_schema_says(name, media):
    assert "examples" in media, f"{name} has no example"
    [example] = media["examples"].values()
    schema = {**media["schema"], "components": DOCUMENT["components"]}
    jsonschema.validate(example["value"], schema, format_checker=jsonschema.FormatChecker())


def nested(place: str, value: Any) -> list[tuple[str, dict[str, Any]]]:
    """Every schema below a place, with where it is."""
    if isinstance(value, list):
        return [each for number, inner in enumerate(value) for each in nested(f"{place}/{number}", inner)]
    if not isinstance(value, dict):
        return []
    inside = [each for name, inner in value.items() for each in nested(f"{place}/{name}", inner)]
    return [(place, value), *inside]


def test_generated_clients_get_a_name_for_every_object_and_every_list_of_words():
    for name, schema in DOCUMENT["components"]["schemas"].items():
        for place, inner in nested(name, {key: schema.get(key) for key in COMPARED if key != "enum"}):
            if place != name and not place.endswith("/properties"):
                assert "properties" not in inner, f"{place}: give this object a `title`"
                assert not isinstance(inner.get("enum"), list), (
                    f"{place}: give these words a name in WORDS (api/description/schemas.py)"
                )
    for name, operation in OPERATIONS.items():
        for place, inner in nested(name, operation.get("parameters", [])):
            assert not isinstance(inner.get("enum"), list), f"{place}: name its words in WORDS"


def test_no_field_has_null_as_its_default():
    """A generator would send it, or call the field required."""
    assert [place for place, each in nested("", DOCUMENT) if each.get("default", 1) is None] == []


class Things:
    """What an example names, made for it alone: some delete it."""

    def __init__(self, service: Service, url: str, operation: str) -> None:
        self._service = service
        self._url = url
        self._account = operation
        self._is_pending = operation in ("cancelDelivery", "retryDelivery")
        self._delivery: dict[str, Any] | None = None
        self._makers: dict[str, Callable[[], str]] = {
            "ep": lambda: self.delivery["endpoint_id"],
            "evt": lambda: self.delivery["event_id"],
            "dlv": lambda: self.delivery["id"],
            "rpl": lambda: self._post("/v1/replays", {"filter": {"account": "nobody"}}),
            "dsc": lambda: self._post("/v1/discards", {"filter": {"account": "nobody"}}),
            "key": lambda: self._post("/v1/keys", {"scopes": ["read"]}),
        }
        if operation.endswith("RefusedRow"):
            self._makers["evt"] = lambda: add_refused_row(service.database, account=operation)

    @property
    def delivery(self) -> dict[str, Any]:
        """A dead one, or one that waits."""
        if self._delivery is None:
            self._service.create(account=self._account, url=f"{self._url}/400", paused=self._is_pending)
            event = self._service.publish(account=self._account)
            self._delivery = delivery_of(
                self._service, event, state="pending" if self._is_pending else "dead"
            )
        return self._delivery

    def named(self, text: str) -> str:
        """The text with ids of things that exist."""

        def real(found: re.Match[str]) -> str:
            return self._makers[found[1]]()[: len(found[0])]

        return re.sub(rf"\b({'|'.join(self._makers)})_[0-7][0-9a-v]{{7,25}}\b", real, text)

    def _post(self, path: str, body: dict[str, Any]) -> str:
        made: str = self._service.call("POST", path, body).json()["id"]
        return made


@pytest.mark.parametrize("name", SAMPLES)
def test_the_request_that_is_shown_works_when_it_is_sent(service, receiver, name):
    """A command as /docs shows it; what it names exists."""
    if "EventType" in name:
        put = "/v1/event-types/order.paid"
        assert service.call("PUT", put, {"description": "made before"}).status_code == 200
    [sample] = SAMPLES[name]["x-codeSamples"]
    command = Things(service, receiver, name).named(sample["source"])
    method, url, headers, body = read_curl(
        command.replace(SERVER, service.process.url).replace(KEY_NAME, KEY).replace("\\\n", "")
    )
    answer = httpx.request(method, url, headers=headers, content=body, trust_env=False, timeout=60)
    good = [int(status) for status in SAMPLES[name]["responses"] if status.startswith("2")]
    assert [answer.status_code] == good, answer.text


def read_curl(command: str) -> tuple[str, str, dict[str, str], str | None]:
    """The request that the command makes."""
    program, *words = shlex.split(command)
    assert program == "curl"
    method, body, headers, urls = "GET", None, {}, []
    rest = iter(words)
    for word in rest:
        match word:
            case "-X":
                method = next(rest)
            case "-H":
                name, _, value = next(rest).partition(": ")
                headers[name] = value
            case "-d":
                body = next(rest)
            case _:
                urls.append(word)
    [url] = urls
    return method, url, headers, body
