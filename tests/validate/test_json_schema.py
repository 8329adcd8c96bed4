"""Which schemas are accepted, and which payloads match them."""

import contextlib
import json
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hookline.errors import Invalid
from hookline.validate.schemas.json_schema import DRAFT, MAX_BYTES, MOST_ERRORS, Schema, checked

ORDER = {
    "$schema": DRAFT,
    "type": "object",
    "required": ["id"],
    "properties": {"id": {"type": "integer"}, "lines": {"type": "array", "items": {"$ref": "#/$defs/line"}}},
    "$defs": {"line": {"type": "object", "properties": {"sku": {"pattern": "^[A-Z]+$"}}}},
}
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=20,
)


def test_a_payload_that_fits_has_no_errors():
    assert Schema(checked(ORDER)).errors({"id": 1, "lines": [{"sku": "AB"}]}, 40) == ()


def test_each_error_points_into_the_payload_and_never_repeats_its_values():
    found = Schema(checked(ORDER)).errors({"lines": [{"sku": "AB"}, {"sku": "confidential"}], "a/b": 1}, 80)
    assert found == (
        ("/payload", '"id" is a required property.'),
        ("/payload/lines/1/sku", 'The value does not match "^[A-Z]+$".'),
    )


def test_a_payload_that_is_wrong_all_over_is_told_so_often_and_no_more():
    schema = Schema(checked({"items": {"type": "string"}}))
    assert len(schema.errors([1] * 1_000, 2_001)) == MOST_ERRORS


def test_of_a_large_payload_the_first_error_is_told_and_soon_whatever_else_is_wrong_with_it():
    payload = ["x", *[1] * 500_000]
    began = time.process_time()
    for schema, expected in (
        ({"items": {"type": "string"}}, "/payload/1"),
        ({"anyOf": [{"items": {"type": "string"}}] * 90}, "/payload"),
        ({"items": {"oneOf": [{"type": "string"}] * 90}}, "/payload"),
    ):
        [(pointer, _)] = Schema(checked(schema)).errors(payload, 1_000_005)
        assert pointer == expected
    assert time.process_time() - began < 5.0  # with every error made it takes minutes, and gigabytes


@pytest.mark.parametrize(
    ("schema", "pointer"),
    [
        ([], "/schema"),
        (True, "/schema"),
        ({"type": "objct"}, "/schema/type"),
        ({"properties": {"a/b": {"minimum": "1"}}}, "/schema/properties/a~1b/minimum"),
        ({"pattern": "("}, "/schema/pattern"),
        ({"pattern": "(?=a)b"}, "/schema/pattern"),  # would need a matcher that tries again
        ({"pattern": "a{1000}{1000}"}, "/schema/pattern"),
        ({"$ref": "https://elsewhere.example/s"}, "/schema/$ref"),
        ({"$ref": "#"}, "/schema"),
        ({"$ref": "#nowhere"}, "/schema"),
        ({"$schema": "http://json-schema.org/draft-07/schema#"}, "/schema/$schema"),
        ({"$schema": 7}, "/schema/$schema"),
        ({"description": "x" * MAX_BYTES}, "/schema"),
        ({"allOf": [{"items": {"$ref": "#"}}, {"items": {"$ref": "#"}}]}, "/schema"),
        ({"oneOf": [{}] * 100}, "/schema"),
        ({"const": 10**5_000}, "/schema"),
        ({"properties": []}, "/schema/properties"),
        ({"allOf": {}}, "/schema/allOf"),
        ({"$ref": 7}, "/schema/$ref"),
        ({"$id": 7}, "/schema/$id"),
        ({"dependentSchemas": 7}, "/schema/dependentSchemas"),
    ],
)
def test_a_schema_that_will_not_do_is_refused_with_its_place(schema, pointer):
    with pytest.raises(Invalid) as refused:
        checked(schema)
    assert (refused.value.pointer, refused.value.code) == (pointer, "invalid_field")


def test_nothing_is_fetched_however_it_is_asked_for(monkeypatch):
    """Draws no attention to itself: a name that is looked up would be one already."""
    import socket

    def fail(*_, **__):
        raise AssertionError("a name was looked up")

    monkeypatch.setattr(socket, "getaddrinfo", fail)
    for schema in (
        {"$ref": "http://127.0.0.1:1/s"},
        {"$id": "http://127.0.0.1:1/", "$ref": "s"},
        {"$ref": "//127.0.0.1:1/s"},
        {"$ref": "#/x", "x": {"$ref": "http://127.0.0.1:1/s"}},
    ):
        with pytest.raises(Invalid):
            checked(schema)


@given(value=JSON)
@settings(deadline=None, max_examples=300)
def test_whatever_is_offered_as_a_schema_is_taken_or_refused_and_nothing_else(value):
    with contextlib.suppress(Invalid):
        Schema(checked(value))


@given(payload=JSON, size=st.sampled_from([10, 1_000_000]))
@settings(deadline=None, max_examples=300)
def test_whatever_is_published_fits_or_has_errors_with_pointers_that_lead_somewhere(payload, size):
    for pointer, detail in Schema(checked(ORDER)).errors(payload, size):
        assert pointer.startswith("/payload")
        assert detail.endswith(".")
        json.dumps([pointer, detail])
