"""Each shop takes orders, is killed and rolls back: the webhook of an order arrives exactly if the order is there."""

import signal

import httpx
import pytest

from examples.following import CEILING_S, until


def test_an_order_is_processed_once_although_its_webhook_arrives_twice(shop):
    shop.following.run(shop.order)
    shop.settle()
    assert shop.parcels() == shop.orders() == [1]
    assert "1 x lamp" in shop.following.run(shop.show)
    [delivery] = shop.deliveries()
    shop.call("POST", f"/v1/events/{delivery['event_id']}/replay")
    shop.settle()
    attempts = shop.call("GET", f"/v1/deliveries/{delivery['id']}/attempts")["data"]
    assert [each["status"] for each in attempts] == [204, 204]
    assert shop.parcels() == [1]


def test_the_webhook_arrives_although_the_shop_is_killed_after_the_commit(shop):
    before = shop.orders()
    process, url = shop.started_to_be_killed()
    with pytest.raises(httpx.TransportError):  # nobody was told that the order was taken
        shop.place(1, url=url)
    assert process.wait(CEILING_S) == -signal.SIGKILL
    shop.settle()
    assert len(shop.orders()) == len(before) + 1
    assert shop.parcels() == shop.orders()
    assert len(shop.deliveries()) == len(shop.orders())


def test_an_order_that_is_rolled_back_sends_nothing(shop):
    before = shop.orders()
    shop.following.run(shop.order_too_much)
    assert shop.place(100).status_code == 409
    assert shop.place(0).status_code == 422
    assert shop.orders() == before
    assert (
        shop.place(1).status_code == 201
    )  # the next event: what was published before it would have come first
    shop.settle()
    assert len(shop.orders()) == len(before) + 1
    assert shop.parcels() == shop.orders()
    assert len(shop.deliveries()) == len(shop.orders())


def test_a_receiver_that_fails_processes_the_order_once_when_it_is_sent_again(shop):
    before = shop.parcels()
    shop.run(shop.breaks)
    assert shop.place(1).status_code == 201
    [delivery] = until(lambda: [each for each in shop.deliveries(state="pending") if each["attempts"]])
    assert shop.parcels() == before
    shop.run(shop.mends)
    shop.call("POST", f"/v1/deliveries/{delivery['id']}/retry")
    shop.settle()
    assert shop.parcels() == shop.orders()
    assert len(shop.parcels()) == len(before) + 1
    assert len(shop.deliveries()) == len(shop.orders())


def test_a_webhook_without_a_signature_is_refused(shop):
    before = shop.parcels()
    answer = httpx.post(
        f"{shop.url}/webhooks", json={"order": 1, "item": "lamp", "quantity": 1}, timeout=CEILING_S
    )
    assert answer.status_code == 401
    assert shop.parcels() == before
