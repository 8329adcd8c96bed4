"""Defines what the shop stores, and opens its database."""

import os

from sqlalchemy import CheckConstraint, ForeignKey, make_url
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.ext.asyncio import async_sessionmaker, create_async_engine
from sqlalchemy.orm import DeclarativeBase, Mapped, mapped_column

from hookline.receiver import AsyncProcessOnce

# hookline keeps its own tables in the same database, in a schema of their own.
URL = make_url(os.environ["HOOKLINE_DATABASE"]).set(drivername="postgresql+asyncpg")

engine = create_async_engine(URL)
sessions = async_sessionmaker(engine, expire_on_commit=False)
once = AsyncProcessOnce()


class Base(DeclarativeBase):
    pass


class Item(Base):
    """Something to sell."""

    __tablename__ = "items"
    __table_args__ = (CheckConstraint("stock >= 0"),)
    name: Mapped[str] = mapped_column(primary_key=True)
    stock: Mapped[int]


class Order(Base):
    """What a customer ordered."""

    __tablename__ = "orders"
    number: Mapped[int] = mapped_column(primary_key=True)
    item: Mapped[str] = mapped_column(ForeignKey(Item.name))
    quantity: Mapped[int]


class Parcel(Base):
    """What the warehouse packs: one for each order."""

    __tablename__ = "parcels"
    number: Mapped[int] = mapped_column(primary_key=True)
    order_number: Mapped[int]
    contents: Mapped[str]


async def create_tables() -> None:
    """Create what is not there, with ten lamps. A larger application has migrations for this."""
    async with sessions.begin() as session:
        await once.setup(session)
        await (await session.connection()).run_sync(Base.metadata.create_all)
        await session.execute(insert(Item).values(name="lamp", stock=10).on_conflict_do_nothing())
