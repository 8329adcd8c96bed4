"""A program with mistakes. It is not run: each marked line must be refused by type checkers, and no other."""

import asyncio
from dataclasses import dataclass
from datetime import datetime

import msgspec
import pydantic

from hookline import (
    Hookline,
    HooklineClient,
    HooklineError,
    NewEvent,
    Published,
    SyncHookline,
    SyncHooklineClient,
    errors,
)
from hookline.client import Delivery, DeliveryState, WaitingFor


@dataclass
class OrderDataclass:
    id: int


class OrderStruct(msgspec.Struct):
    id: int


class OrderModel(pydantic.BaseModel):
    id: int


async def library(hooks: Hookline | HooklineClient, when: str) -> None:
    endpoint = await hooks.create_endpoint("https://example.com/", ["order.*"], rate_limit={"per_second": 5})
    await hooks.create_endpoint(urll="https://example.com/", events=["order.*"])  # wrong
    await hooks.create_endpoint("https://example.com/", ["order.*"], urll="https://example.com/")  # wrong
    await hooks.update_endpoint(endpoint.id, urll="https://example.com/")  # wrong
    await hooks.update_endpoint(endpoint.id, ordering="sideways")  # wrong
    await hooks.update_endpoint(endpoint.id, ordering=endpoint.ordering, retry={"preset": "quick"})
    since: datetime = endpoint.created_at
    text: str = endpoint.created_at  # wrong
    event = await hooks.publish("order.paid", {"id": 42}, acount="acme")  # wrong
    await hooks.publish("order.paid", {"id": 42}, deliver_at=when)  # wrong
    await hooks.publish("order.paid", object())  # wrong
    await hooks.publish("order.paid")  # wrong
    await hooks.publish_many([{"type": "order.paid"}])  # wrong
    await hooks.publish_many([NewEvent(type="order.paid", paylod={})])  # wrong
    async for delivery in hooks.event_deliveries(event.id, state=DeliveryState.DEAD):
        waiting: WaitingFor | None = delivery.waiting_for
        number: int = delivery.state  # wrong
        print(waiting, number, delivery.stat)  # wrong
    for each in hooks.deliveries(state="dead", since=since):  # wrong
        print(each, text)
    json: int = (await hooks.event(event.id)).json()  # wrong
    print(json)


def payloads(hooks: SyncHookline | SyncHooklineClient) -> None:
    hooks.publish("order.paid", OrderDataclass(42))
    hooks.publish("order.paid", OrderStruct(42))
    hooks.publish("order.paid", OrderModel(id=42))
    hooks.publish("order.paid", b'{"id": 42}')
    hooks.publish("order.paid", [1, "two", None])
    hooks.publish("order.paid", OrderDataclass.__init__)  # wrong


def synchronous(hooks: SyncHookline | SyncHooklineClient) -> None:
    for result in hooks.publish_many([NewEvent(type="order.paid", payload=OrderModel(id=42))]):
        if isinstance(result, HooklineError):
            print(result.code, result.detail, result.errors[0].pointer)
            print(result.id)  # wrong
        else:
            known: Published = result
            print(known.created_at.isoformat())
    dead: list[Delivery] = list(hooks.dead_letters(reason="gone"))
    hooks.replay_dead_letters(acount="acme")  # wrong
    hooks.deliveries(state=5)  # wrong
    try:
        hooks.endpoint(5)  # wrong
    except errors.NotFound as error:
        print(error.noun, error.code, dead)
    except errors.Invalid as error:
        print(error.pointer)


asyncio.run(library(Hookline("sqlite:///a.db"), "tomorrow"))
payloads(SyncHookline(database="sqlite:///a.db", databse=""))  # wrong
