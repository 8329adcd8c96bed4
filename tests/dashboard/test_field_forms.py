"""A field of an endpoint is filled in and read by its schema, so that a new one appears by itself."""

from typing import Any

import pytest

from hookline.dashboard.pages.endpoints.field_control import Control, filled_in, placed
from hookline.dashboard.pages.endpoints.field_forms import form_of
from hookline.dashboard.pages.endpoints.field_words import label_of, said, sections, waits
from hookline.errors import Invalid
from hookline.rules.retry import DEFAULT_POLICY, PRESETS
from hookline.validate.endpoint_fields import BY_NAME, FIELDS, EndpointField


def a_field(schema: dict[str, Any]) -> EndpointField:
    return EndpointField(name="new_thing", attribute="url", check=str, schema=schema, text="something new")


@pytest.mark.parametrize(
    ("schema", "value", "kind"),
    [
        ({"type": "string"}, "x", "text"),
        ({"type": "string", "enum": ["a", "b"]}, "b", "choice"),
        ({"type": "integer"}, 12, "number"),
        ({"type": "number"}, 0.5, "number"),
        ({"type": "boolean"}, True, "choice"),
        ({"type": "array", "items": {"type": "string"}}, ["a", "b"], "area"),
        ({"type": "object"}, {"a": [1, None]}, "area"),
        ({"anyOf": [{"type": "string"}, {"type": "object"}]}, {"a": 1}, "area"),
    ],
)
def test_a_field_nobody_wrote_a_form_for_has_one(schema, value, kind):
    form = form_of(a_field(schema))
    filled = form.filled(value)
    [control] = form.controls(filled)
    assert (control.name, control.label, control.kind) == ("new_thing", "New thing", kind)
    assert control.help == "Something new."
    assert form.read(filled, None) == value


def test_every_field_is_in_a_section_and_has_a_label():
    listed = [name for _, names in sections() for name in names]
    assert sorted([*listed, "secret"]) == sorted(field.name for field in FIELDS)
    assert label_of("brand_new") == "Brand new"


@pytest.mark.parametrize("name", ["retry", "circuit", "rate_limit", "timeout_ms", "events", "headers"])
def test_a_value_that_would_be_refused_today_is_shown_as_it_is(name: str):
    assert said(name, {"strange": 1}).codes or said(name, {"strange": 1}).text
    form = form_of(BY_NAME[name])
    assert form.controls(form.filled({"strange": 1}))


def test_a_message_is_put_beside_the_nearest_control():
    outer, inner = (Control(name=at, label=at, pointer=at) for at in ("/retry", "/retry/schedule"))
    assert placed([outer, inner], Invalid("No.", pointer="/retry/schedule/3"))
    assert (outer.problem, inner.problem, inner.problem_at) == ("", "No.", "/retry/schedule/3")
    assert not placed([outer, inner], Invalid("No.", pointer="/retry_statuses"))


@pytest.mark.parametrize("preset", PRESETS)
def test_the_table_of_waits_ends_with_the_longest_time(preset: str):
    rows = waits({"preset": preset}, default=DEFAULT_POLICY)
    assert [row.attempt for row in rows] == list(range(1, PRESETS[preset].attempts + 1))


def test_the_waits_of_a_policy_that_is_not_valid_are_unknown():
    assert waits({"preset": "nothing"}, default=DEFAULT_POLICY) == []
    assert len(waits(None, default=DEFAULT_POLICY)) == DEFAULT_POLICY.attempts


def test_a_form_without_the_fields_is_read_as_empty():
    from starlette.datastructures import FormData

    filled = filled_in(FormData([]))
    for field in FIELDS:
        form_of(field).read(filled, None)
        form_of(field).controls(filled)


def test_a_client_certificate_is_filled_in_and_never_shown_again():
    form = form_of(BY_NAME["client_certificate"])
    typed = {"client_certificate": ["-----BEGIN CERTIFICATE-----\r\ncanary"]}
    assert form.read(typed, None) == "-----BEGIN CERTIFICATE-----\ncanary"
    assert form.read({}, {"subject": "CN=a"}) is None
    for filled in (typed, form.filled({"subject": "CN=a"})):
        [control] = form.controls(filled)
        assert (control.kind, control.value) == ("area", "")
    assert said("client_certificate", {"subject": "CN=a", "not_after": "2030-01-02T03:04:05Z"}).text == (
        "CN=a, until 2030-01-02"
    )
