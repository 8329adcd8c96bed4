"""The table of calls is consistent."""

from pathlib import Path
from typing import Annotated

import msgspec
import pytest
from starlette.requests import Request
from starlette.responses import Response

from hookline.admin.key_cache import caller
from hookline.api.call import CALLER, REQUEST_ID, Call, CallScope
from hookline.api.request.body_fields import converted
from hookline.api.request.parameters import kinds_of
from hookline.api.router import routes
from hookline.api.routes import table
from hookline.api.tenancy import Reach
from hookline.app import Hookline
from hookline.config import Settings
from hookline.errors import Invalid
from hookline.model import Scope as KeyScope
from hookline.store.interactive import current_call


@pytest.fixture
def hookline(tmp_path: Path) -> Hookline:
    return Hookline(f"sqlite:///{tmp_path}/x.db", settings=Settings(dev=True))


@pytest.fixture
def calls(hookline: Hookline) -> list[Call]:
    return table(hookline)


def test_no_call_stands_twice_in_the_table(calls, hookline):
    with pytest.raises(ValueError, match="twice"):
        routes([*calls, calls[-1]], Reach(hookline.store))


@pytest.mark.anyio
async def test_the_store_knows_that_an_api_call_asks_and_that_it_has_no_session_yet(calls, hookline):
    seen = []

    async def handler(asked):
        seen.append(current_call())
        return Response()

    [call] = [each for each in calls if each.path == "/v1/endpoints" and each.method == "GET"]
    [route] = routes([msgspec.structs.replace(call, handler=handler)], Reach(hookline.store))
    scope = {"type": "http", "method": "GET", "path": call.path, "query_string": b"", "headers": []}
    await route.endpoint(
        Request({**scope, "path_params": {}, CALLER: caller(frozenset(KeyScope)), REQUEST_ID: "req_1"})
    )
    assert [each is not None and not each.is_served for each in seen] == [True]
    assert current_call() is None


def test_a_fixed_path_comes_before_one_that_would_take_it_for_an_id(calls):
    paths = [call.path for call in calls]
    for place, path in enumerate(paths):
        for earlier in paths[:place]:
            steps = list(zip(earlier.split("/"), path.split("/"), strict=False))
            hides = len(earlier.split("/")) == len(path.split("/")) and all(
                one == other or (one.startswith("{") and not other.startswith("{")) for one, other in steps
            )
            assert earlier == path or not hides, f"{earlier} hides {path}"


def test_every_parameter_has_a_kind_and_only_probes_are_open(calls):
    for call in calls:
        assert set(kinds_of(call.query)) == set(call.query.__struct_fields__)
        assert (call.scope is CallScope.OPEN) == (call.path in ("/healthz", "/readyz"))
        assert (call.answer is None) == (call.status == 204 or call.media is not None)


class Inner(msgspec.Struct):
    names: list[str]


class Sample(msgspec.Struct):
    count: Annotated[int, msgspec.Meta(ge=1)]
    inner: Inner | None = None


@pytest.mark.parametrize(
    ("fields", "pointer", "detail"),
    [
        ({}, "/count", "The field count is missing."),
        ({"count": "one"}, "/count", "count: expected a whole number, not a string."),
        ({"count": 0}, "/count", "count: expected a whole number >= 1."),
        (
            {"count": 1, "inner": {"names": ["a", 5]}},
            "/inner/names/1",
            "inner.names.1: expected a string, not a whole number.",
        ),
        ({"count": 1, "inner": 5}, "/inner", "inner: expected an object or null, not a whole number."),
    ],
)
def test_a_body_s_field_of_the_wrong_type_is_named(fields, pointer, detail):
    with pytest.raises(Invalid) as caught:
        converted(fields, Sample)
    assert (caught.value.pointer, caught.value.detail) == (pointer, detail)
