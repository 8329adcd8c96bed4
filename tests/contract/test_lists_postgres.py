"""The lists that we encode ourselves mean the same as the driver's."""

import pytest

from hookline.store.postgres.driver import arrays, session

pytestmark = pytest.mark.anyio

ID, OTHER_ID = bytes(range(16)), bytes(range(16, 32))

COLUMNS = {
    "id_list": ("uuid", [[], [ID], [ID, OTHER_ID, ID]]),
    "number_list": (
        "float8",
        [[], [0], [1, -2.5, 1e300, 2**53], [None, 0.1, None], [None], [1_789_000_000.123456]],
    ),
    "text_list": ("text", [[], [""], ["a", "naïve", "\U0001f600", "{},\"\\'"], [None, "NULL"], [None]]),
    "bytes_list": ("bytea", [[], [b""], [b"\0\xff", bytes(70_000)], [None, b"x"]]),
}


@pytest.fixture
async def connection(postgres_url):
    made = await session.connect(postgres_url, role="accept", settings=session.HOT, unsafe=False, lists=True)
    yield made
    await made.close()


@pytest.mark.parametrize("domain", list(COLUMNS))
async def test_a_list_is_read_as_it_was_written(connection, domain):
    element, columns = COLUMNS[domain]
    for column in columns:
        # Unpacked, since a domain's values are never read; beside the driver's own array, element by element.
        rows = await connection.fetch(
            f"SELECT * FROM unnest($1::{domain}, $2::{element}[]) AS t (ours, theirs)", column, column
        )
        assert [row["ours"] for row in rows] == column
        assert [row["theirs"] for row in rows] == column


@pytest.mark.parametrize("domain", list(COLUMNS))
async def test_a_missing_list_is_null(connection, domain):
    assert await connection.fetchval(f"SELECT $1::{domain} IS NULL", None)


async def test_every_codec_is_in_use(connection):
    """They are reached by no public way: with another driver this test says that lists have become slow."""
    assert await arrays.use_lists(connection, schema=session.SCHEMA)
    found = await connection.fetch(arrays.READ_DOMAINS, session.SCHEMA, list(arrays.CODECS))
    assert {row["typname"] for row in found} == set(arrays.CODECS)
    for domain in arrays.CODECS:
        with pytest.raises(Exception, match="in its own codec"):
            await connection.fetch(f"SELECT $1::{domain} IS NULL", Unwritable())


async def test_without_the_codecs_the_driver_writes_the_lists(postgres_url, connection):
    plain = await session.connect(postgres_url, role="accept", settings=session.HOT, unsafe=False)
    try:
        for domain, (_, columns) in COLUMNS.items():
            for column in columns:
                rows = await plain.fetch(f"SELECT * FROM unnest($1::{domain}) AS t (ours)", column)
                assert [row["ours"] for row in rows] == column
        assert not await arrays.use_lists(_Stranger(plain), schema=session.SCHEMA)
    finally:
        await plain.close()


class Unwritable(list):
    """A column that tells which codec read it: ours asks for its nulls or its length, the driver's for its elements."""

    def __contains__(self, value):
        raise ValueError("in its own codec")

    def __bool__(self):
        raise ValueError("in its own codec")


class _Stranger:
    """A driver that is built in another way."""

    def __init__(self, connection):
        self.fetch = connection.fetch
