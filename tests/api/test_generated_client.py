"""A client generated from the OpenAPI description can publish and read back."""

import subprocess
import sys

from server_process import environment
from tests.api.conftest import KEY

CEILING_S = 120

GENERATE = [
    "generate",
    "--path",
    "openapi.json",
    "--meta",
    "none",
    "--output-path",
    "generated",
    "--config",
    "config.yml",
    "--fail-on-warning",
]

SCRIPT = """
import sys

from generated import AuthenticatedClient
from generated.api.endpoints import create_endpoint, list_endpoints, update_endpoint
from generated.api.events import get_event, list_event_deliveries, list_events, publish_batch, publish_event
from generated.models import Batch, Endpoint, EndpointInput, EndpointPatch, Problem, Publication, Published

client = AuthenticatedClient(base_url=sys.argv[1], token=sys.argv[2])

endpoint = create_endpoint.sync(
    client=client,
    body=EndpointInput(url="https://hooks.example.com/", events=["generated.*"], account="generated", paused=True),
)
assert isinstance(endpoint, Endpoint), endpoint
changed = update_endpoint.sync(
    endpoint.id, client=client, body=EndpointPatch(description="made by a machine", max_in_flight=7)
)
assert (changed.description, changed.max_in_flight, changed.url) == ("made by a machine", 7, endpoint.url)
assert [each.id for each in list_endpoints.sync(client=client, account="generated").data] == [endpoint.id]

event = Publication(type_="generated.event", payload={"id": 42}, account="generated")
published = publish_event.sync(client=client, body=event, idempotency_key="generated-1")
assert isinstance(published, Published), published
assert (published.deliveries, published.duplicate) == (1, False)
assert publish_event.sync(client=client, body=event, idempotency_key="generated-1").duplicate is True
batch = publish_batch.sync(client=client, body=Batch(events=[event, Publication(type_="not a type", payload=1)]))
assert isinstance(batch.results[0], Published), batch

shown = get_event.sync(published.id, client=client)
assert (shown.type_, shown.payload, shown.idempotency_key) == ("generated.event", {"id": 42}, "generated-1")
assert shown.deliveries.pending == 1
listed = list_events.sync(client=client, account="generated", since=published.created_at, limit=1)
assert len(listed.data) == 1 and listed.next_cursor
rest = list_events.sync(
    client=client, account="generated", since=published.created_at, limit=1, cursor=listed.next_cursor
)
assert [each.id for each in rest.data] == [published.id]
(delivery,) = list_event_deliveries.sync(published.id, client=client).data
assert (delivery.endpoint_id, delivery.state, delivery.waiting_for) == (endpoint.id, "pending", "paused")

refused = publish_event.sync(client=client, body=Publication(type_="not a type", payload=1))
assert isinstance(refused, Problem) and refused.code == "invalid_field", refused
print("published and read back")
"""


def test_a_client_generated_from_the_description_publishes_and_reads_back(service, tmp_path):
    (tmp_path / "openapi.json").write_bytes(service.call("GET", "/openapi.json").content)
    (tmp_path / "config.yml").write_text("post_hooks: []\n")  # not formatted: nobody reads it
    (tmp_path / "script.py").write_text(SCRIPT)
    generated = subprocess.run(
        [sys.executable, "-m", "openapi_python_client", *GENERATE],
        cwd=tmp_path,
        env=environment(),
        capture_output=True,
        text=True,
        timeout=CEILING_S,
        check=False,
    )
    assert generated.returncode == 0, generated.stdout + generated.stderr
    used = subprocess.run(
        [sys.executable, "script.py", service.process.url, KEY],
        cwd=tmp_path,
        env=environment({"NO_PROXY": "*"}),
        capture_output=True,
        text=True,
        timeout=CEILING_S,
        check=False,
    )
    assert used.returncode == 0, used.stderr
    assert used.stdout == "published and read back\n"
