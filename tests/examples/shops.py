"""Runs each shop as its README says, and looks at what became of its orders."""

import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path
from typing import Any

import httpx
import psycopg

from examples.following import CEILING_S, Following, until

PROGRAMS = Path(__file__).parent


class Shop:
    """A shop with a hookline beside it, which has an endpoint for what the shop publishes."""

    killed: str  # the program that is the shop, killed after a commit
    outbox: str  # the table
    orders_of: str
    breaks: str  # a statement after which no parcel can be stored
    mends: str

    def __init__(self, following: Following) -> None:
        self.following = following
        start, self.order, self.show, self.order_too_much = following.blocks
        _, export, migrate, serve, run, subscribe = start.splitlines()
        following.export(export)
        following.run(migrate)
        following.env["HOOKLINE_URL"] = following.start(serve)
        self.url = following.start(run.replace("8000", "0"))
        following.replaced["http://127.0.0.1:8000"] = self.url
        following.run(subscribe)

    def call(self, method: str, path: str, **parameters: str) -> Any:
        """A call of hookline's API."""
        url = self.following.env["HOOKLINE_URL"] + path
        answer = httpx.request(method, url, params=parameters, timeout=CEILING_S)
        return answer.raise_for_status().json()

    def place(self, quantity: int, *, url: str | None = None) -> httpx.Response:
        """An order, at this address of the shop."""
        raise NotImplementedError

    def run(self, statement: str) -> list[tuple[Any, ...]]:
        """Run it in the shop's database."""
        raise NotImplementedError

    def orders(self) -> list[int]:
        return [number for (number,) in self.run(self.orders_of)]

    def parcels(self) -> list[int]:
        """The number of the order of each."""
        raise NotImplementedError

    def deliveries(self, **filters: str) -> list[dict[str, Any]]:
        return list(self.call("GET", "/v1/deliveries", **filters)["data"])

    def settle(self) -> None:
        """Return when everything has left the outbox and arrived."""
        until(lambda: not self.run(f"SELECT 1 FROM {self.outbox}"))
        until(lambda: not self.deliveries(state="pending"))

    def started_to_be_killed(self) -> tuple["subprocess.Popen[bytes]", str]:
        """Another process of the shop, which ends when it has committed an order; with its address."""
        return self.following.listening([sys.executable, str(PROGRAMS / self.killed)])


class DjangoShop(Shop):
    killed = "killed_django.py"
    outbox = "hookline_outbox"
    orders_of = "SELECT id FROM orders_order ORDER BY id"
    breaks = "CREATE TRIGGER broken BEFORE INSERT ON orders_parcel BEGIN SELECT RAISE(FAIL, 'broken'); END"
    mends = "DROP TRIGGER broken"

    def place(self, quantity: int, *, url: str | None = None) -> httpx.Response:
        form = {"item": "lamp", "quantity": quantity}
        return httpx.post(f"{url or self.url}/orders", data=form, timeout=CEILING_S)

    def run(self, statement: str) -> list[tuple[Any, ...]]:
        with closing(sqlite3.connect(self.following.folder / "shop.db", timeout=CEILING_S)) as connection:
            return connection.execute(statement).fetchall()

    def parcels(self) -> list[int]:
        found = httpx.get(f"{self.url}/parcels", timeout=CEILING_S).json()["parcels"]
        return sorted(each["order_number"] for each in found)


class FastapiShop(Shop):
    killed = "killed_fastapi.py"
    outbox = "hookline.outbox"
    orders_of = "SELECT number FROM orders ORDER BY number"
    breaks = "ALTER TABLE parcels ADD CONSTRAINT broken CHECK (false) NOT VALID"
    mends = "ALTER TABLE parcels DROP CONSTRAINT broken"

    def place(self, quantity: int, *, url: str | None = None) -> httpx.Response:
        body = {"item": "lamp", "quantity": quantity}
        return httpx.post(f"{url or self.url}/orders", json=body, timeout=CEILING_S)

    def run(self, statement: str) -> list[tuple[Any, ...]]:
        with psycopg.connect(self.following.env["HOOKLINE_DATABASE"]) as connection:
            cursor = connection.execute(statement)
            return cursor.fetchall() if cursor.description else []

    def parcels(self) -> list[int]:
        found = httpx.get(f"{self.url}/parcels", timeout=CEILING_S).json()
        return sorted(each["order_number"] for each in found)
