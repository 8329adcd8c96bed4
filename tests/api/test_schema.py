"""The API does what its own description says.

Requests are generated from the description, valid and invalid ones, and sent to a real server on each store. None may
be answered by an error of the server, by a status or a media type that is not described, or in another shape. Invalid
ones are refused, and so is every request without a key.
"""

import json
import re
import tempfile
from typing import Any

import hypothesis
import msgspec
import pytest
import schemathesis
from schemathesis.checks import CHECKS, load_all_checks

from hookline.api.description.document import describe
from hookline.api.routes import table
from hookline.app import Hookline
from hookline.config import Settings
from tests.api.conftest import KEY, Service
from tests.api.test_deliveries_api import delivery_of
from tests.api.test_deliveries_api import receiver as receiver  # a fixture

EXAMPLES = 15

load_all_checks()
# Not checked: whether valid data is accepted, because a schema cannot say everything (which addresses are public), and
# whether a key is needed, because that check removes a key that it did not add.
NOT_ASKED = ("positive_data_acceptance", "ignored_auth")
checks = [CHECKS.get_one(name) for name in CHECKS.get_all_names() if name not in NOT_ASKED]
REJECTION = CHECKS.get_one("negative_data_rejection")


def document() -> Any:
    with tempfile.TemporaryDirectory() as folder:
        calls = table(Hookline(f"sqlite:///{folder}/x.db", settings=Settings(dev=True)))
        described = json.loads(msgspec.json.encode(describe(calls)))
    del described["security"]  # every request gets the key, also those that are meant to lack something
    return described


schema = schemathesis.openapi.from_dict(document())


@pytest.fixture(scope="module")
def real(service: Service, receiver: str) -> dict[str, str]:
    """Ids of things that exist."""
    endpoint = service.create(account="real", url=f"{receiver}/400")
    event = service.publish(account="real")
    delivery = delivery_of(service, event, state="dead")
    found = {"endpoint_id": endpoint["id"], "event_id": event["id"], "delivery_id": delivery["id"]}
    for noun in ("replay", "discard"):
        order = {"filter": {"account": "nobody"}}
        found[f"{noun}_id"] = service.call("POST", f"/v1/{noun}s", order).json()["id"]
    found["key_id"] = service.call("POST", "/v1/keys", {"scopes": ["read"]}).json()["id"]
    return found


@schema.parametrize()
@hypothesis.settings(
    max_examples=EXAMPLES,
    deadline=None,
    derandomize=True,
    database=None,
    suppress_health_check=list(hypothesis.HealthCheck),
)
def test_every_answer_is_as_described(service, real, case):
    for name, value in (case.path_parameters or {}).items():
        if isinstance(value, str) and re.fullmatch(r"[a-z]+_[0-7][0-9a-v]{25}", value):
            short_lived = case.method == "DELETE" and name == "endpoint_id"
            case.path_parameters[name] = service.create()["id"] if short_lived else real.get(name, value)
    case.call_and_validate(
        base_url=service.process.url,
        headers={"authorization": f"Bearer {KEY}"},
        timeout=60,
        # An invalid event in a batch does not stop the others: the batch is accepted.
        checks=[each for each in checks if each is not REJECTION or case.path != "/v1/events/batch"],
    )
