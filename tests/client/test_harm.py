"""One call is done once, whatever happens to its connections."""

import socket
import subprocess
import sys
import threading
import uuid

import pytest

from hookline.client import ClientError, NewEvent, NotFound, SyncHooklineClient, Unavailable, Unreachable
from hookline.errors import NotRunning
from pipeline.sending.certificates import Authority
from server_process import environment
from tests.client.between import Between, Harm
from tests.client.conftest import KEY, serving

UNAVAILABLE = (
    b"HTTP/1.1 503 No\r\ncontent-type: application/problem+json\r\nretry-after: 0\r\ncontent-length: 36\r\n\r\n"
    b'{"status":503,"code":"unavailable"} '
)


@pytest.fixture
def account() -> str:
    return uuid.uuid4().hex


@pytest.fixture
def endpoint(server, account):
    """An endpoint that the account's events go to, where they stay pending."""
    with SyncHooklineClient(server.url, KEY) as client:
        yield client.create_endpoint("https://hooks.example.com/", ["*"], account=account, paused=True)


def events_to(server, endpoint) -> list[str]:
    """What was published, found by its deliveries."""
    with SyncHooklineClient(server.url, KEY) as client:
        return [each.event_id for each in client.endpoint_deliveries(endpoint.id)]


@pytest.mark.parametrize("harm", [Harm.CUT_UNSEEN, Harm.CUT_DONE, Harm.CUT_HALFWAY])
@pytest.mark.parametrize("key", [None, "mine"])
def test_a_publish_whose_connection_is_cut_is_one_event(connect, server, endpoint, account, harm, key):
    with Between(server.port, harm, harm) as between:
        published = connect(between.url).publish("a", 1, account=account, idempotency_key=key)
    assert events_to(server, endpoint) == [published.id]
    assert len(between.requests) == 3
    assert len(set(between.requests)) == 1  # byte for byte the same, and so under the same key
    assert published.duplicate is (key is not None and harm is not Harm.CUT_UNSEEN)


def test_a_batch_whose_connection_is_cut_is_published_once(connect, server, endpoint, account):
    with Between(server.port, Harm.CUT_DONE) as between:
        batch = [NewEvent(type="a", payload=n, account=account) for n in range(50)]
        results = connect(between.url).publish_many(batch)
    assert events_to(server, endpoint) == [each.id for each in results][::-1]
    assert len(between.requests) == 2


def test_a_publish_is_repeated_while_the_server_is_unavailable(connect, server, endpoint, account):
    with Between(server.port, UNAVAILABLE, UNAVAILABLE) as between:
        published = connect(between.url).publish("a", 1, account=account)
    assert events_to(server, endpoint) == [published.id]
    assert len(set(between.requests)) == 1


def test_what_stays_unavailable_is_given_up(connect):
    with Between(0, *[UNAVAILABLE] * 50) as between, pytest.raises(Unavailable) as raised:
        connect(between.url, retry_for=5.0).publish("a", 1)
    assert raised.value.code == "unavailable"
    assert 1 < len(between.requests) < 50


def test_a_creation_whose_answer_is_lost_is_not_repeated(connect, server, account):
    with Between(server.port, Harm.CUT_DONE) as between, pytest.raises(Unreachable) as raised:
        connect(between.url).create_endpoint("https://hooks.example.com/", ["*"], account=account)
    assert raised.value.may_be_done
    assert len(between.requests) == 1
    with SyncHooklineClient(server.url, KEY) as client:
        assert len(list(client.endpoints(account=account))) == 1


def test_a_deletion_whose_answer_is_lost_is_done(connect, server, endpoint):
    with Between(server.port, Harm.CUT_DONE) as between:
        assert connect(between.url).delete_endpoint(endpoint.id) is None
        with pytest.raises(NotFound):
            connect(between.url).delete_endpoint(endpoint.id)


def test_a_job_whose_answer_is_lost_is_started_once(connect, server, account):
    with Between(server.port, Harm.CUT_DONE) as between:
        client = connect(between.url)
        job = client.discard_dead_letters(account=account)
        assert [each.id for each in client.discard_jobs() if each.filter == {"account": account}] == [job.id]


def test_a_connection_that_was_closed_without_notice_is_replaced(connect, server, account):
    with Between(server.port, *[Harm.HANG_UP_AFTERWARDS] * 3) as between:
        client = connect(between.url)
        ids = {client.publish("a", n, account=account).id for n in range(4)}
    assert len(ids) == 4


def test_nobody_there_is_waited_for_until_the_time_is_over(connect):
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))  # bound but not listening: it refuses, and nobody else gets the port
        url = f"http://127.0.0.1:{closed.getsockname()[1]}"
        with pytest.raises(Unreachable) as raised:
            connect(url, retry_for=0.3).publish("a", 1)
    assert not raised.value.may_be_done
    assert url in str(raised.value)


def test_a_server_that_does_not_answer_is_not_waited_for_longer_than_the_timeout(connect):
    with Between(0, b"") as between, pytest.raises(Unreachable) as raised:
        connect(between.url, timeout=3.0, retry_for=0).publish("a", 1)
    assert raised.value.may_be_done


def test_calls_meanwhile_wait_for_a_server_that_is_restarted(connect, tmp_path):
    database = f"sqlite:///{tmp_path}/hooks.db"
    with Between() as between:
        client = connect(between.url, retry_for=60.0)
        with serving(database, tmp_path) as process:
            between.point_to(process.port)
            first = client.publish("a", 1)
        results = []
        waiting = threading.Thread(target=lambda: results.append(client.publish("a", 2)))
        waiting.start()
        between.wait_for_requests(3)  # the second publish has failed at least once
        with serving(database, tmp_path) as process:
            between.point_to(process.port)
            waiting.join(60)
            assert [client.event(each.id).body for each in (first, *results)] == [b"1", b"2"]


def test_threads_share_a_client_and_its_connections(server, endpoint, account):
    with Between(server.port) as between, SyncHooklineClient(between.url, KEY) as client:
        published = [[] for _ in range(8)]

        def work(found):
            for n in range(20):
                found.append(client.publish("a", n, account=account).id)

        threads = [threading.Thread(target=work, args=(found,)) for found in published]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(60)
    found = {id for each in published for id in each}
    assert len(found) == 160
    assert set(events_to(server, endpoint)) == found
    assert between.connections <= 8


FORKING = """
import os, sys
from hookline import SyncHooklineClient
client = SyncHooklineClient()
client.publish("a", "before", account=sys.argv[1])
child = os.fork()
if child == 0:
    client.publish("a", "in the child", account=sys.argv[1])
    os._exit(0)
assert os.waitpid(child, 0)[1] == 0
client.publish("a", "after", account=sys.argv[1])
"""


def test_a_forked_process_does_not_use_its_parent_s_connections(server, endpoint, account):
    with Between(server.port) as between:
        env = environment({"HOOKLINE_URL": between.url, "HOOKLINE_API_KEY": KEY})
        subprocess.run([sys.executable, "-c", FORKING, account], env=env, check=True, timeout=60)
    assert between.connections == 2  # one of each process: the parent's is still good after the child's end
    assert len(events_to(server, endpoint)) == 3


def test_a_closed_client_refuses_calls(connect, server):
    client = connect(server.url)
    client.publish("a", 1)
    client.close()
    with pytest.raises(ClientError, match="closed") as raised:
        client.publish("a", 1)
    assert isinstance(raised.value, NotRunning)  # as of a hookline within the program that was stopped
    client.close()


def test_a_certificate_is_checked_and_a_wrong_one_not_tried_again(connect, server, tmp_path):
    authority = Authority(tmp_path)
    with Between(server.port, tls=authority.server("127.0.0.1")) as between:
        assert connect(between.url, ssl_context=authority.client()).publish("a", 1).id
        with pytest.raises(Unreachable) as raised:
            connect(between.url).publish("a", 1)
        assert "certificate" in str(raised.value)
        assert (raised.value.may_pass, between.connections) == (False, 2)


def test_a_key_is_not_taken_along_to_where_an_answer_points(connect):
    with Between() as elsewhere:
        moved = f"HTTP/1.1 307 Moved\r\nlocation: {elsewhere.url}/\r\ncontent-length: 0\r\n\r\n".encode()
        with Between(0, moved) as between, pytest.raises(ClientError):
            connect(between.url).publish("a", 1)
        assert elsewhere.connections == 0
