"""How heavy a schema is, and which have no weight at all."""

import pytest

from hookline.validate.schemas.schema_weight import MOST_SUBSCHEMAS, Flaw, weight


def chain(levels):
    """Each definition applies the next one twice."""
    defs = {f"d{n}": {"allOf": [{"$ref": f"#/$defs/d{n + 1}"}] * 2} for n in range(levels)}
    return {"$ref": "#/$defs/d0", "$defs": {**defs, f"d{levels}": {"type": "string"}}}


@pytest.mark.parametrize(
    ("schema", "expected"),
    [
        ({}, 1),
        ({"type": "object", "required": ["id"]}, 1),
        ({"properties": {"a": {}, "b": {"properties": {"c": {}}}}}, 1),
        ({"properties": {"a": {"anyOf": [{}, {}, {}]}, "b": {}}}, 4),
        ({"allOf": [{"properties": {"a": {}}}, {"properties": {"a": {}}}]}, 3),
        ({"properties": {"a": {}}, "patternProperties": {"a": {}, "b": {}}, "additionalProperties": {}}, 4),
        ({"prefixItems": [{}, {}], "items": {}, "contains": {}}, 3),
        ({"not": {}, "if": {}, "then": {}, "else": {}, "dependentSchemas": {"a": {}}}, 6),
        ({"unevaluatedProperties": False}, 2),
        ({"unevaluatedProperties": False, "allOf": [{"unevaluatedItems": False}]}, 6),
        ({"$ref": "#/$defs/a", "$defs": {"a": {}}}, 2),
        ({"$ref": "#a", "$defs": {"x": {"$anchor": "a"}}}, 2),
        ({"$id": "https://a.example/s", "$ref": "https://a.example/s#/$defs/a", "$defs": {"a": {}}}, 2),
        ({"$ref": "#/$defs/a~1b%20c", "$defs": {"a/b c": {}}}, 2),
        ({"properties": {"child": {"$ref": "#"}}}, 2),  # a tree: one more application a place, however deep
        ({"properties": {"a": True, "b": False}}, 1),
        (chain(3), 1 + 1 + 4 * 7),
    ],
)
def test_weights(schema, expected):
    assert weight(schema) == expected


def test_a_schema_that_doubles_with_every_reference_is_heavy_and_soon_weighed():
    assert weight(chain(60)) > 2**60


def test_a_schema_that_doubles_with_every_level_of_the_payload_is_heavy():
    assert weight({"allOf": [{"items": {"$ref": "#"}}, {"items": {"$ref": "#"}}]}) > 2**60


@pytest.mark.parametrize(
    ("schema", "pointer"),
    [
        ({"$ref": "https://elsewhere.example/schema"}, "/$ref"),
        ({"properties": {"a": {"$ref": "file:///etc/passwd"}}}, "/properties/a/$ref"),
        ({"$defs": {"a/b": {"$ref": "other.json#/x"}}}, "/$defs/a~1b/$ref"),
        ({"anyOf": [{}, {"$ref": "#/$defs/none"}]}, "/anyOf/1/$ref"),
        ({"items": {"$dynamicRef": "#x"}}, "/items/$dynamicRef"),
        ({"items": {"$id": "https://a.example"}}, "/items/$id"),
        ({"$ref": "#/x/y", "x": {"y": {"$id": "https://a.example"}}}, "/$ref"),
        ({"$ref": "#"}, ""),
        ({"allOf": [{"anyOf": [{"$ref": "#"}]}]}, ""),
        ({"properties": {"a": {"$ref": "#/$defs/b"}}, "$defs": {"b": {"not": {"$ref": "#/$defs/b"}}}}, ""),
        ({"properties": {str(n): {} for n in range(MOST_SUBSCHEMAS)}}, ""),
    ],
)
def test_flaws_are_named_with_their_place(schema, pointer):
    found = weight(schema)
    assert isinstance(found, Flaw)
    assert found.pointer == pointer
