"""The API is described, for programs and for people."""

import hashlib
import re
from importlib import resources
from pathlib import Path

import httpx
import pytest
from openapi_spec_validator import OpenAPIV31SpecValidator

from hookline.api.calls.docs import SAMPLES, VIEWER
from hookline.api.description.document import operation_id, problems_of
from hookline.api.problem import STATUSES
from hookline.api.routes import table
from hookline.app import Hookline
from hookline.config import Settings
from server_process import ServerProcess
from tests.api.conftest import KEY


@pytest.fixture(scope="module")
def document(service):
    answer = service.call("GET", "/openapi.json")
    assert (answer.status_code, answer.headers["content-type"]) == (200, "application/json")
    return answer.json()


@pytest.fixture
def calls(tmp_path: Path):
    return table(Hookline(f"sqlite:///{tmp_path}/x.db", settings=Settings(dev=True)))


def test_the_description_is_valid_openapi_3_1(document):
    assert document["openapi"] == "3.1.0"
    assert list(OpenAPIV31SpecValidator(document).iter_errors()) == []


def test_every_call_is_described_once(document, calls):
    described = {
        (method.upper(), path, operation["operationId"])
        for path, methods in document["paths"].items()
        for method, operation in methods.items()
    }
    assert described == {(call.method, call.path, operation_id(call)) for call in calls if call.is_described}
    assert len({name for _, _, name in described}) == len(described)


def test_every_problem_that_a_call_names_has_its_status_described(document, calls):
    for call in calls:
        if call.is_described:
            described = document["paths"][call.path][call.method.lower()]["responses"]
            for code in problems_of(call):
                assert f"`{code}`" in described[str(STATUSES.get(code, 422))]["description"]


def test_the_own_events_are_described_with_what_they_show(document):
    named = document["components"]["schemas"]
    references = {
        name: hook["post"]["requestBody"]["content"]["application/json"]["schema"]["$ref"]
        for name, hook in document["webhooks"].items()
    }
    schemas = {name: named[each.rpartition("/")[2]]["properties"] for name, each in references.items()}
    assert {name: (each["type"]["const"], each["data"]["$ref"]) for name, each in schemas.items()} == {
        "delivery.dead": ("delivery.dead", "#/components/schemas/Delivery"),
        "endpoint.disabled": ("endpoint.disabled", "#/components/schemas/Endpoint"),
        "circuit.opened": ("circuit.opened", "#/components/schemas/Endpoint"),
        "circuit.closed": ("circuit.closed", "#/components/schemas/Endpoint"),
        "alert.fired": ("alert.fired", "#/components/schemas/Alert"),
        "alert.resolved": ("alert.resolved", "#/components/schemas/Alert"),
    }


@pytest.mark.parametrize("path", ["/openapi.json", "/docs", f"/docs/{VIEWER}", f"/docs/{SAMPLES}"])
def test_outside_development_the_description_needs_a_key(service, path):
    assert httpx.get(service.process.url + path, trust_env=False, timeout=30).status_code == 401
    assert service.call("GET", path).status_code == 200
    assert service.call("HEAD", path).status_code == 200


def test_a_setting_opens_the_description_and_nothing_else(tmp_path):
    env = {"HOOKLINE_API_KEY": KEY, "HOOKLINE_OPEN_DOCS": "true"}
    with ServerProcess("--database", f"sqlite:///{tmp_path}/x.db", cwd=tmp_path, env=env) as process:
        for path, status in (
            ("/openapi.json", 200),
            ("/docs", 200),
            (f"/docs/{VIEWER}", 200),
            (f"/docs/{SAMPLES}", 200),
            ("/v1/events", 401),
        ):
            assert httpx.get(process.url + path, trust_env=False, timeout=30).status_code == status


def test_the_page_loads_nothing_from_elsewhere_and_may_not(service):
    answer = service.call("GET", "/docs")
    assert answer.headers["content-type"] == "text/html; charset=utf-8"
    policy = answer.headers["content-security-policy"]
    assert policy.startswith("default-src 'none'; script-src 'self';")
    assert "http:" not in policy
    assert "https:" not in policy
    assert re.findall(r'(?:src|href|spec-url)="([^"]*)"', answer.text) == [
        "data:,",  # an empty icon: else the browser asks for one
        f"docs/{VIEWER}",
        f"docs/{SAMPLES}",
        "openapi.json",
        "openapi.json",
    ]
    assert not re.search(r"<script(?![^>]*\bsrc=)", answer.text)


def test_the_vendored_viewer_is_the_one_that_is_written_down(service):
    script = service.call("GET", f"/docs/{VIEWER}")
    assert script.headers["content-type"] == "text/javascript; charset=utf-8"
    vendor = resources.files("hookline.api").joinpath("vendor")
    assert hashlib.sha256(script.content).hexdigest() in vendor.joinpath("README.md").read_text()
    assert "MIT License" in vendor.joinpath("rapidoc", "LICENSE.txt").read_text()


def test_every_query_parameter_is_described(document):
    for path, methods in document["paths"].items():
        for method, operation in methods.items():
            for each in operation.get("parameters", []):
                if each["in"] == "query":
                    assert each["description"], (method, path, each["name"])
    [since] = [
        each["description"]
        for each in document["paths"]["/v1/dead-letters"]["get"]["parameters"]
        if each["name"] == "since"
    ]
    assert since == "only those that died at this time or later"
    [matched] = [
        each["description"]
        for each in document["paths"]["/v1/endpoints"]["get"]["parameters"]
        if each["name"] == "event_type"
    ]
    assert matched == "only those that would get an event of this type"


def test_the_page_asks_for_a_key_only_where_one_is_needed(service, tmp_path):
    hidden = 'allow-authentication="false"'
    assert hidden not in service.call("GET", "/docs").text
    with ServerProcess("--dev", cwd=tmp_path) as server:
        assert hidden in httpx.get(f"{server.url}/docs", trust_env=False, timeout=60).text


def test_without_a_key_nothing_is_answered_but_the_probes(service, calls):
    for call in calls:
        path = re.sub(r"\{\w+\}", "x", call.path)
        answer = httpx.request(call.method, service.process.url + path, trust_env=False, timeout=30)
        # On a busy machine a server is not ready at times.
        expected = {"/healthz": {200}, "/readyz": {200, 503}}.get(call.path, {401})
        assert answer.status_code in expected, (call.method, path)


def test_every_summary_begins_with_what_it_does(document):
    """With the verb that people search for."""
    verbs = {
        "Cancel",
        "Check",
        "Count",
        "Create",
        "Delete",
        "Describe",
        "Disable",
        "Discard",
        "Enable",
        "Get",
    }
    verbs |= {"List", "Pause", "Publish", "Replay", "Reset", "Resume", "Retry", "Revoke", "Rotate", "Show"}
    verbs |= {"Analyse", "Start", "Test", "Update"}
    summaries = [call["summary"] for path in document["paths"].values() for call in path.values()]
    assert [each for each in summaries if each.split()[0].strip(":;") not in verbs] == []
