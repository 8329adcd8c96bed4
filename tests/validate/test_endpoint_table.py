"""Everything that spells out the fields of an endpoint agrees with the table of them."""

import msgspec
import pytest

from hookline.api.request.endpoint_fields import ChangedEndpoint, NewEndpoint
from hookline.model import CircuitPolicy, Endpoint
from hookline.reports.views import EndpointReport
from hookline.validate.endpoint_fields import BY_NAME, FIELDS, EndpointField
from hookline.validate.limits import CIRCUIT_SCHEMA

ITS_OWN = {"id", "created_at", "updated_at"}  # given by hookline, to every endpoint
STORED_ONLY = {"old_secret", "old_secret_until", "disabled_reason", "unread"}
SHOWN_ONLY = {"disabled_reason", "circuit_state", "slow", "counts", "problems"}


def test_each_field_has_one_row():
    assert len({field.name for field in FIELDS}) == len({field.attribute for field in FIELDS}) == len(FIELDS)


def test_the_model_has_the_fields_of_the_table():
    in_table = {field.attribute for field in FIELDS}
    assert in_table | ITS_OWN | STORED_ONLY == set(Endpoint.__struct_fields__)


def test_the_view_has_the_fields_of_the_table():
    assert BY_NAME.keys() | ITS_OWN | SHOWN_ONLY == set(EndpointReport.__struct_fields__)


def test_a_new_endpoint_needs_a_url_and_events_only():
    required = {field.name for field in msgspec.structs.fields(NewEndpoint) if field.required}
    assert required == {field.name for field in FIELDS if field.is_required} == {"url", "events"}


def test_a_patch_takes_every_field_but_the_secret():
    assert BY_NAME.keys() - set(ChangedEndpoint.__struct_fields__) == {"secret"}


PLAIN = [field for field in FIELDS if not field.is_required and field.show is None]


@pytest.mark.parametrize(
    "field", [each for each in PLAIN if each.default is not None], ids=lambda each: each.name
)
def test_a_default_is_valid(field: EndpointField):
    assert field.check(msgspec.to_builtins(field.default)) == field.default


def test_the_description_of_a_circuit_has_its_fields():
    assert set(CIRCUIT_SCHEMA["properties"]) == set(CircuitPolicy.__struct_fields__)
