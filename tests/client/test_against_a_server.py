"""The clients and a real server understand each other."""

import re
import uuid
from datetime import UTC, datetime

import pytest

from answering import eventually, receiving
from hookline.client import (
    AlertTest,
    ApiError,
    ClientError,
    NewEvent,
    NotFound,
    Notify,
    PortalLink,
    Published,
)
from server_process import ServerProcess

ODD_BYTES = '{ "b" : 1.50e+00, "a":"\\u00e9é",  "big": 123456789012345678901234567890 }'.encode()


@pytest.fixture
def client(connect, server: ServerProcess):
    return connect(server.url)


@pytest.fixture
def account() -> str:
    """An account that no other test uses: they share a server."""
    return uuid.uuid4().hex


def test_an_event_is_published_delivered_and_read_back_byte_for_byte(client, account):
    with receiving() as receiver:
        client.create_endpoint(f"{receiver.url}/200/a", ["order.*"], account=account)
        published = client.publish("order.paid", ODD_BYTES, account=account)
        assert (published.type, published.account) == ("order.paid", account)
        assert (published.deliveries, published.duplicate) == (1, False)
        received = eventually(lambda: receiver.requests[0] if receiver.requests else None)
        assert (received.event_id, received.body) == (published.id, ODD_BYTES)
        event = client.event(published.id)
        assert (event.body, event.json()["a"], event.created_at) == (ODD_BYTES, "éé", published.created_at)
        (delivery,) = client.event_deliveries(published.id)
        eventually(lambda: True if client.delivery(delivery.id).state == "delivered" else None)
        (attempt,) = client.attempts(delivery.id)
        assert (attempt.number, attempt.status, attempt.error) == (1, 200, None)


def test_a_key_of_ones_own_makes_a_second_publish_a_duplicate(client, account):
    first = client.publish("a", 1, account=account, idempotency_key="k")
    assert not first.duplicate
    again = client.publish("a", 1, account=account, idempotency_key="k")
    assert (again.id, again.duplicate) == (first.id, True)
    with pytest.raises(ApiError) as raised:
        client.publish("a", 2, account=account, idempotency_key="k")
    assert (raised.value.status, raised.value.code) == (422, "idempotency_conflict")


def test_events_are_listed_and_large_payloads_are_only_in_the_event_itself(client, account):
    small = client.publish("a", ODD_BYTES, account=account)
    large = client.publish("b", b'"%s"' % (b"x" * 900_000), account=account, idempotency_key="large")
    listed = {each.id: each for each in client.events(account=account)}
    assert list(listed) == [large.id, small.id]
    assert listed[small.id].body == ODD_BYTES
    with pytest.raises(ClientError, match="900,002 bytes"):
        _ = listed[large.id].body
    assert len(client.event(large.id).body) == 900_002
    assert [each.id for each in client.events(account=account, type="a")] == [small.id]
    assert [each.id for each in client.events(account=account, idempotency_key="large")] == [large.id]
    assert list(client.events(account=account, until=small.created_at)) == []


def test_a_batch_comes_back_in_order_with_errors_in_their_places(client, account):
    events = [
        NewEvent(type="a", payload={"n": 1}, account=account),
        NewEvent(type="not a type", payload={"n": 2}, account=account),
        NewEvent(type="b", payload=b"[3]", account=account),
    ]
    first, refused, third = client.publish_many(events)
    assert isinstance(first, Published)
    assert isinstance(third, Published)
    assert [client.event(each.id).body for each in (first, third)] == [b'{"n":1}', b"[3]"]
    assert isinstance(refused, ApiError)
    assert (refused.code, refused.errors[0].pointer) == ("invalid_field", "/events/1/type")


def test_a_large_batch_is_sent_whole(client, account):
    payload = b'"%s"' % (b"x" * 900_000)
    events = [NewEvent(type="a", payload=payload, account=account) for _ in range(5)]
    results = client.publish_many(events)
    assert [client.event(each.id).body == payload for each in results] == [True] * 5


@pytest.mark.parametrize("number", [20, 60])  # more than the server accepts; more than it reads to be polite
def test_what_is_too_large_is_refused_in_the_server_s_words(client, account, number):
    events = [NewEvent(type="a", payload="x" * 1_000_000, account=account) for _ in range(number)]
    with pytest.raises(ApiError) as raised:
        client.publish_many(events)
    assert (raised.value.status, raised.value.code) == (413, "too_large")
    assert client.publish("a", 1, account=account).id


def test_an_endpoint_goes_through_its_life(client, account):
    created = client.create_endpoint(
        "https://hooks.example.com/a", ["order.*"], account=account, headers={"x-token": "hidden"}
    )
    assert created.secret.startswith("whsec_")
    assert created.secret not in repr(created)
    shown = client.endpoint(created.id)
    assert (shown.secret, shown.headers, shown.circuit_state.state) == (None, {"x-token": "***"}, "closed")
    changed = client.update_endpoint(
        created.id, description="ours", rate_limit={"per_second": 5, "burst": 10}
    )
    assert (changed.description, changed.rate_limit) == ("ours", {"per_second": 5.0, "burst": 10})
    assert client.pause_endpoint(created.id).paused
    assert not client.resume_endpoint(created.id).paused
    assert not client.disable_endpoint(created.id).enabled
    assert client.enable_endpoint(created.id).enabled
    assert client.reset_circuit(created.id).id == created.id
    assert [each.id for each in client.endpoints(account=account, enabled=True)] == [created.id]
    assert client.delete_endpoint(created.id) is None
    with pytest.raises(NotFound) as raised:
        client.endpoint(created.id)
    assert raised.value.request_id.startswith("req_")


def test_a_list_is_read_page_by_page(client, account):
    endpoint = client.create_endpoint("https://hooks.example.com/", ["*"], account=account, paused=True)
    events = [NewEvent(type="a", payload=n, account=account) for n in range(250)]
    published = [each.id for each in client.publish_many(events)]
    assert [each.event_id for each in client.endpoint_deliveries(endpoint.id)] == published[::-1]
    listing = client.deliveries(account=account)
    first = listing.page(limit=100)
    second = listing.page(limit=200, cursor=first.next_cursor)
    assert [each.event_id for each in first.data + second.data] == published[::-1]
    assert second.next_cursor is None
    assert list(client.deliveries(account=account, state="dead")) == []


def test_dead_letters_are_replayed_and_discarded(client, account):
    with receiving() as receiver:
        client.create_endpoint(f"{receiver.url}/400/a", ["*"], account=account)
        results = client.publish_many([NewEvent(type="a", payload=n, account=account) for n in range(4)])
        dead = eventually(
            lambda: found if len(found := list(client.dead_letters(account=account))) == 4 else None
        )
        assert {each.event_id for each in dead} == {each.id for each in results}
        assert {(each.state, each.reason, each.last_status) for each in dead} == {("dead", "rejected", 400)}
        tried = client.replay_dead_letters(account=account, dry_run=True)
        assert (tried.id, tried.matched, tried.done) == (None, 4, 0)
        assert client.discard_dead_letter(dead[0].id).state == "cancelled"
        assert client.replay_dead_letter(dead[1].id).state == "pending"
        job = client.discard_dead_letters(ids=[dead[2].id], idempotency_key=account)
        assert client.discard_dead_letters(ids=[dead[2].id], idempotency_key=account).id == job.id
        eventually(lambda: True if client.discard_job(job.id).state == "done" else None)
        assert job.id in {each.id for each in client.discard_jobs()}
        assert client.delivery(dead[2].id).state == "cancelled"
        assert client.replay_event(dead[3].event_id, states=["dead"]).replayed == 1
        with pytest.raises(ApiError) as raised:
            client.discard_dead_letter(dead[0].id)
        assert (raised.value.status, raised.value.code) == (409, "wrong_state")


def test_a_pending_delivery_is_cancelled(client, account):
    client.create_endpoint("https://hooks.example.com/", ["*"], account=account, paused=True)
    published = client.publish("a", 1, account=account)
    (delivery,) = client.event_deliveries(published.id)
    assert client.retry_delivery(delivery.id).state == "pending"
    assert client.cancel_delivery(delivery.id).state == "cancelled"
    assert client.event(published.id).deliveries["cancelled"] == 1


@pytest.mark.parametrize("key", [None, "hlk_wrong"])
def test_a_wrong_key_is_refused_and_never_shown(connect, server, key):
    client = connect(server.url, key)
    with pytest.raises(ApiError) as raised:
        client.endpoints().page()
    assert (raised.value.status, raised.value.code) == (401, "unauthenticated")
    assert "hlk_" not in f"{raised.value} {raised.value!r} {client!r}"


def test_a_secret_is_rotated(client, account):
    created = client.create_endpoint("https://hooks.example.com/", ["*"], account=account)
    assert client.endpoint_secret(created.id).secret == created.secret
    rotated = client.rotate_secret(created.id, overlap_s=60)
    assert rotated.secret != created.secret
    assert rotated.old.secret == created.secret
    assert (rotated.old.valid_until - datetime.now(UTC)).total_seconds() < 61
    assert client.endpoint_secret(created.id) == rotated
    assert not {rotated.secret, created.secret} & set(re.findall(r"whsec_[^']+", repr(rotated)))


def test_a_test_event_goes_to_one_endpoint_alone(client, account):
    with receiving() as receiver:
        tried = client.create_endpoint(f"{receiver.url}/200/tried", ["never.asked"], account=account)
        client.create_endpoint(f"{receiver.url}/200/other", ["*"], account=account)
        sent = client.test_endpoint(tried.id)
        assert (sent.endpoint_id, sent.account) == (tried.id, account)
        eventually(lambda: True if client.delivery(sent.id).state == "delivered" else None)
        assert [(each.path, each.event_id) for each in receiver.requests] == [("/200/tried", sent.event_id)]


def test_event_types_are_described_and_their_schemas_enforced(client, account):
    name = f"order_{account}.paid"
    schema = {"type": "object", "required": ["id"]}
    described = client.put_event_type(name, description="An order was paid.", schema=schema)
    assert (described.name, described.description, described.schema) == (name, "An order was paid.", schema)
    assert client.event_type(name) == described
    assert described in list(client.event_types())
    assert client.publish(name, {"id": 42}, account=account).type == name
    with pytest.raises(ApiError) as raised:
        client.publish(name, {}, account=account)
    assert (raised.value.status, raised.value.code) == (422, "schema_mismatch")
    assert client.delete_event_type(name) is None
    with pytest.raises(NotFound):
        client.event_type(name)


def test_an_account_is_told_of_trouble_where_it_says(client, account):
    assert client.account(account).notify == Notify()
    notify = {"email": "ops@example.com", "slack": "https://chat.example.com/hooks/s3cret"}
    changed = client.put_account(account, notify=notify)
    assert (changed.id, changed.notify) == (
        account,
        Notify(email="ops@example.com", slack="https://chat.example.com/***"),
    )
    assert client.account(account) == changed
    kept = client.put_account(account, notify={"slack": changed.notify.slack})
    assert kept.notify == Notify(slack="https://chat.example.com/***")
    assert client.put_account(account).notify == Notify()
    assert client.test_alert(account) == AlertTest(account=account, results=[])


def test_a_portal_link_is_created_and_its_token_is_not_shown_by_chance(server, client, account):
    link = client.portal_link(account, expires_in_s=60, visit_s=120, may_act=False)
    assert link == PortalLink(
        url=server.url + link.path, path=link.path, account=account, expires_at=link.expires_at, visit_s=120
    )
    assert isinstance(link.expires_at, datetime)
    assert link.path.startswith("/portal/enter?token=")
    assert link.path.rpartition("=")[2] not in repr(link)
    with pytest.raises(ApiError) as raised:
        client.portal_link(account, visit_s=1)
    assert (raised.value.status, raised.value.code) == (422, "invalid_field")


def test_a_key_of_its_own_publishes_for_one_account_until_it_is_revoked(connect, server, client, account):
    made = client.create_key(["publish"], name="the shop", account=account)
    assert made.key.startswith("hlk_")
    assert made.key not in repr(made)
    assert (made.scopes, made.name, made.account) == (["publish"], "the shop", account)
    shop = connect(server.url, made.key)
    assert shop.publish("a", 1).account == account
    with pytest.raises(ApiError) as raised:
        shop.endpoints().page()
    assert (raised.value.status, raised.value.code) == (403, "forbidden")
    with pytest.raises(ApiError) as raised:
        shop.publish("a", 1, account="another")
    assert (raised.value.status, raised.value.code) == (422, "account_mismatch")
    assert client.key(made.id).key is None
    listed = client.keys()
    assert made.id in {each.id for each in listed}
    assert client.revoke_key(made.id) is None
    with pytest.raises(ApiError) as raised:
        eventually(lambda: shop.publish("a", 1) and None)
    assert (raised.value.status, raised.value.code) == (401, "unauthenticated")
