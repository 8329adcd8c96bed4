"""What is published as JSON: what has no JSON is refused, and never sent as something else."""

import math
from dataclasses import dataclass
from typing import Any

import msgspec
import pydantic
import pytest

from hookline.errors import Invalid
from hookline.validate.payload_encoding import encoded


@dataclass
class Measured:
    value: float | None


class Kept(msgspec.Struct):
    raw: msgspec.Raw
    value: float | None


class Modelled(pydantic.BaseModel):
    value: float | None


@pytest.mark.parametrize("number", [math.nan, math.inf, -math.inf])
@pytest.mark.parametrize(
    "within", [lambda x: x, lambda x: {"a": [1, (x,)]}, Measured, lambda x: Modelled(value=x)]
)
def test_a_number_that_json_does_not_have_is_refused(number: float, within: Any) -> None:
    with pytest.raises(Invalid, match=r"not JSON: it has no number for -?(nan|inf)") as refused:
        encoded(within(number))
    assert refused.value.pointer == "/payload"


@pytest.mark.parametrize(
    ("payload", "body"),
    [
        (None, b"null"),
        ({"a": None, "b": [1.5, None]}, b'{"a":null,"b":[1.5,null]}'),
        (Measured(None), b'{"value":null}'),
        (Modelled(value=None), b'{"value":null}'),
        (Kept(msgspec.Raw(b'{"x": null}'), 1.0), b'{"raw":{"x": null},"value":1.0}'),
        (b" [null] ", b" [null] "),
    ],
)
def test_nothing_is_null(payload: Any, body: bytes) -> None:
    assert encoded(payload) == body
