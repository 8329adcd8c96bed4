"""An application that publishes, to be checked for its types: what is ignored here must be an error.

It is not run. mypy is strict: an ignored error that is none is an error itself.
"""

import sqlite3
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TypedDict

import aiosqlite
import msgspec
import psycopg
import pydantic
from django.db import connection, connections
from sqlalchemy import Connection, Engine
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncSession, async_scoped_session
from sqlalchemy.orm import Session, scoped_session

from hookline import outbox


class OrderDict(TypedDict):
    id: int


@dataclass
class OrderDataclass:
    id: int


class OrderStruct(msgspec.Struct):
    id: int


class OrderModel(pydantic.BaseModel):
    id: int


def with_connections(
    one: psycopg.Connection[dict[str, object]],
    two: Connection,
    three: Session,
    four: scoped_session[Session],
    five: sqlite3.Connection,
) -> list[outbox.EventId]:
    ids: list[str] = [
        outbox.publish(one, "order.paid", {"id": 42}),
        outbox.publish(two, "order.paid", {"id": 42}, account="acme", idempotency_key="42"),
        outbox.publish(three, "order.paid", {"id": 42}, deliver_at=datetime(2026, 1, 1, tzinfo=UTC)),
        outbox.publish(four, "order.paid", {"id": 42}, hops=1),
        outbox.publish(five, "order.paid", {"id": 42}, table="events_out"),
    ]
    assert ids
    return outbox.publish_many(one, (outbox.Draft("order.paid", {"id": n}) for n in range(3)))


def with_django() -> list[outbox.EventId]:
    return [
        outbox.publish(connection, "order.paid", {"id": 42}),
        outbox.publish(connections["other"], "order.paid", {"id": 42}),
    ]


async def with_asynchronous_connections(
    one: psycopg.AsyncConnection[tuple[object, ...]],
    two: AsyncConnection,
    three: AsyncSession,
    four: async_scoped_session[AsyncSession],
    five: aiosqlite.Connection,
) -> list[outbox.EventId]:
    await outbox.apublish(one, "order.paid", {"id": 42})
    await outbox.apublish(two, "order.paid", {"id": 42})
    await outbox.apublish(three, "order.paid", {"id": 42})
    await outbox.apublish(four, "order.paid", {"id": 42})
    await outbox.apublish(five, "order.paid", {"id": 42})
    return await outbox.apublish_many(one, [outbox.Draft(type="order.paid", payload=b"{}")])


def with_payloads(connection: sqlite3.Connection, order: OrderDict) -> None:
    outbox.publish(connection, "order.paid", order)
    outbox.publish(connection, "order.paid", OrderDataclass(42))
    outbox.publish(connection, "order.paid", OrderStruct(42))
    outbox.publish(connection, "order.paid", OrderModel(id=42))
    outbox.publish(connection, "order.paid", b'{"id": 42}')
    outbox.publish(connection, "order.paid", [1, "two", None])
    outbox.publish(connection, "order.paid", None)
    outbox.publish(connection, "order.paid", object())  # type: ignore[arg-type]
    outbox.publish(connection, "order.paid", OrderDataclass.__init__)  # type: ignore[arg-type]


async def with_the_wrong_connections(
    one: psycopg.AsyncConnection, two: AsyncSession, three: Session, engine: Engine
) -> None:
    outbox.publish(one, "order.paid", {})  # type: ignore[arg-type]
    outbox.publish(two, "order.paid", {})  # type: ignore[arg-type]
    await outbox.apublish(three, "order.paid", {})  # type: ignore[arg-type]
    outbox.publish(engine, "order.paid", {})  # type: ignore[arg-type]
    outbox.publish("postgresql://", "order.paid", {})  # type: ignore[arg-type]


def with_mistakes(connection: sqlite3.Connection) -> None:
    outbox.publish(connection, "order.paid", {}, acount="acme")  # type: ignore[call-arg]
    outbox.publish(connection, "order.paid")  # type: ignore[call-arg]
    outbox.publish(connection, "order.paid", {}, deliver_at="tomorrow")  # type: ignore[arg-type]
    outbox.publish(connection, 5, {})  # type: ignore[arg-type]
    outbox.publish_many(connection, [{"type": "order.paid"}])  # type: ignore[list-item]
    outbox.ddl("mysql")  # type: ignore[arg-type]
