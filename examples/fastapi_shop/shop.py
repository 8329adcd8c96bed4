"""Takes orders, and receives the webhooks about them."""

import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from fastapi import FastAPI, HTTPException, Request
from pydantic import BaseModel, Field
from sqlalchemy import select, update
from sqlalchemy.exc import IntegrityError

from hookline import outbox
from hookline.receiver import VerificationError, verify
from models import Item, Order, Parcel, create_tables, engine, once, sessions

WEBHOOK_SECRET = os.environ["WEBHOOK_SECRET"]  # of the endpoint that hookline sends to


class NewOrder(BaseModel):
    item: str
    quantity: int = Field(ge=1, le=1_000)


class OrderPlaced(BaseModel):
    """The event `order.placed`."""

    order: int
    item: str
    quantity: int


@asynccontextmanager
async def lifespan(_: FastAPI) -> AsyncIterator[None]:
    await create_tables()
    yield
    await engine.dispose()


app = FastAPI(lifespan=lifespan)


@app.post("/orders", status_code=201)
async def place(wanted: NewOrder) -> OrderPlaced:
    try:
        async with sessions.begin() as session:
            order = Order(item=wanted.item, quantity=wanted.quantity)
            session.add(order)
            await session.flush()  # the order has its number now
            placed = OrderPlaced(order=order.number, item=order.item, quantity=order.quantity)
            # The event becomes part of this transaction: it is sent exactly if the order is committed.
            await outbox.apublish(session, "order.placed", placed)
            taken = Item.stock - order.quantity
            await session.execute(update(Item).where(Item.name == order.item).values(stock=taken))
    except IntegrityError:  # no such item, or its stock went below zero: there is no order, and no event
        raise HTTPException(409, "not in stock") from None
    return placed


@app.post("/webhooks", status_code=204)
async def receive(request: Request) -> None:
    body = await request.body()  # the raw bytes: the signature covers these
    try:
        event = verify(WEBHOOK_SECRET, request.headers, body, style="standard")
    except VerificationError as error:
        raise HTTPException(401, error.reason) from None
    placed = OrderPlaced.model_validate_json(event.body)
    # The mark and the parcel share one transaction: both are kept, or neither. A repeat is answered alike.
    async with sessions.begin() as session:
        if await once.mark(session, event.id):
            contents = f"{placed.quantity} x {placed.item}"
            session.add(Parcel(order_number=placed.order, contents=contents))


@app.get("/parcels")
async def parcels() -> list[dict[str, object]]:
    async with sessions() as session:
        found = await session.scalars(select(Parcel))
        return [{"order_number": each.order_number, "contents": each.contents} for each in found]
