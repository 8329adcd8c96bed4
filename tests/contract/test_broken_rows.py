"""An endpoint's row that cannot be read does not keep the others from being read."""

import psycopg
import pytest

from factories import NOW, an_endpoint
from hookline.model import CircuitPolicy, Endpoint

pytestmark = pytest.mark.anyio

BOTH = {
    "headers": ("'no json'", {}),
    "metadata": ("'[1]'", {}),
    "rate_limit": ("'{}'", None),
    "retry": ("'7'", None),
    "retry_statuses": ("'{}'", ("5xx", 408, 425, 429)),
    "circuit": ("'[]'", CircuitPolicy()),
    "signing": ("'mystic'", "standard"),
    "signature": ("'v9'", "v1"),
    "ordering": ("'random'", "parallel"),
}
SQLITE = {
    "url": ("x'ff'", ""),
    "account": ("x'ff'", ""),
    "events": ("'\"*\"'", ()),
    "secret": ("x'00'", ""),
    "timeout": ("'soon'", 10.0),
    "max_in_flight": ("'few'", 5),
    "enabled": ("7", True),
    "old_secret_until": ("'later'", None),
}
POSTGRES = {"events": ("'{a,NULL}'::text[]", ())}


async def read_all(store) -> list[list[Endpoint]]:
    listed = await store.list_endpoints(account=None, enabled=None, after=None, limit=10)
    everything = list((await store.catalogue()).endpoints)
    by_id = await store.endpoints_by_id([each.id for each in everything])
    return [everything, by_id, listed[::-1]]


@pytest.fixture
async def opened(bare):
    store = bare.new_store()
    await store.migrate()
    await store.open(serve=True)
    yield store
    await store.close()


async def test_what_cannot_be_read_is_named_and_a_stand_in_is_in_its_place(bare, opened, store_kind):
    whole, broken = an_endpoint(), an_endpoint()
    for endpoint in (whole, broken):
        await opened.create_endpoint(endpoint, now=NOW)
    for column, (value, stand_in) in {**BOTH, **(SQLITE if store_kind == "sqlite" else POSTGRES)}.items():
        id = f"x'{broken.id.hex()}'" if store_kind == "sqlite" else f"'{broken.id.hex()}'"
        bare.execute(f"UPDATE endpoints SET {column} = {value} WHERE id = {id}")
        for found in await read_all(opened):
            first, second = sorted(found, key=lambda each: each.id != whole.id)
            assert first == whole
            assert column in second.unread
            assert getattr(second, column) == stand_in, column
    assert set((await opened.endpoints_by_id([broken.id]))[0].unread) >= BOTH.keys()


async def test_a_text_that_is_no_text_and_a_row_without_an_id_keep_nobody_from_being_read(
    bare, opened, store_kind
):
    if store_kind != "sqlite":  # PostgreSQL cannot hold such a text, nor such an id
        for value in ("convert_from('\\x68ff', 'UTF8')", "'nobody'::uuid"):
            with pytest.raises(psycopg.DataError):
                bare.execute(f"SELECT {value}")
        return
    whole, broken, nameless = an_endpoint(), an_endpoint(), an_endpoint()
    for endpoint in (whole, broken, nameless):
        await opened.create_endpoint(endpoint, now=NOW)
    bare.execute(f"UPDATE endpoints SET url = CAST(x'68ff' AS TEXT) WHERE id = x'{broken.id.hex()}'")
    bare.execute(f"UPDATE endpoints SET id = 'nobody' WHERE id = x'{nameless.id.hex()}'")
    for found in await read_all(opened):
        assert {each.id: each.url for each in found} == {whole.id: whole.url, broken.id: "h\ufffd"}
