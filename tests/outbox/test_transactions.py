"""An event is in the outbox exactly if the application's transaction committed, whatever the driver."""

from datetime import UTC, datetime

import psycopg
import pytest
from psycopg.rows import dict_row

from hookline.errors import Invalid
from hookline.outbox import Draft, publish
from outbox.applications import (
    ON_POSTGRES,
    ON_SQLITE,
    Application,
    Nested,
    Order,
    Psycopg,
    Publish,
    PublishMany,
)
from outbox.database import Database, Kept

EVENT = Publish()


@pytest.fixture(
    params=[*(f"{each} (postgres)" for each in ON_POSTGRES), *(f"{each} (sqlite)" for each in ON_SQLITE)]
)
def both(request: pytest.FixtureRequest) -> tuple[Application, Database]:
    """An application with its database."""
    name, _, dialect = request.param.rpartition(" (")
    database = request.getfixturevalue(dialect.rstrip(")"))
    if dialect == "postgres)":
        return ON_POSTGRES[name](database.url), database
    return ON_SQLITE[name](database.path), database


def test_what_commits_is_there_with_its_event(both):
    application, database = both
    [id] = application.play(Order(42), EVENT)
    assert database.orders() == [42]
    assert database.kept() == [Kept(id, "default", "order.paid", None, None, 0, b'{"id": 42}')]


def test_what_is_rolled_back_leaves_no_event(both):
    application, database = both
    application.play(Order(42), EVENT, keep=False)
    assert (database.orders(), database.kept()) == ([], [])


def test_a_savepoint_that_is_rolled_back_takes_its_events_along(both):
    application, database = both
    first, _, last = application.play(
        Order(1), EVENT, Nested((Order(2), EVENT), keep=False), Nested((Order(3), EVENT), keep=True)
    )
    assert database.orders() == [1, 3]
    assert [each.id for each in database.kept()] == [first, last]


def test_every_field_is_kept(both):
    application, database = both
    due = datetime(2020, 2, 3, 4, 5, 6, 789_012, tzinfo=UTC)
    [id] = application.play(
        Publish(
            "a.b_C",
            {"x": [1, None, "ä"]},
            {"account": "acme-1", "idempotency_key": "k%s:1?", "deliver_at": due, "hops": 3},
        )
    )
    assert database.kept() == [
        Kept(id, "acme-1", "a.b_C", "k%s:1?", due.timestamp(), 3, '{"x":[1,null,"ä"]}'.encode())
    ]


BYTES = b' {"b": 1.00000000000000000001, "a" : "\\u00e9\xc3\xa9%s:x?$1 \\\\x00 \'"}\n'


def test_bytes_are_kept_as_they_are(both):
    application, database = both
    application.play(Publish(payload=BYTES), PublishMany([Draft("a", BYTES), Draft("a", b"1")]))
    assert [each.payload for each in database.kept()] == [BYTES, BYTES, b"1"]


def test_many_events_are_kept_in_their_order(both):
    application, database = both
    due = datetime(2020, 2, 3, tzinfo=UTC)
    drafts = [
        Draft(
            "a", n, idempotency_key=f"k{n}" if n % 2 else None, deliver_at=due if n % 3 else None, hops=n % 4
        )
        for n in range(1_000)
    ]
    [ids] = application.play(PublishMany(drafts))
    assert database.kept() == [
        Kept(
            id,
            "default",
            "a",
            draft.idempotency_key,
            None if draft.deliver_at is None else due.timestamp(),
            draft.hops,
            str(draft.payload).encode(),
        )
        for id, draft in zip(ids, drafts, strict=True)
    ]
    assert len(set(ids)) == 1_000


def test_many_events_in_a_transaction_that_is_rolled_back_leave_nothing(both):
    application, database = both
    application.play(PublishMany([Draft("a", n) for n in range(9)]), keep=False)
    assert database.kept() == []


def test_one_invalid_event_of_many_leaves_none_and_the_transaction_goes_on(both):
    application, database = both
    drafts = [Draft("a", 1), Draft("a b", 2), Draft("a", 3)]

    def publishes_what_is_invalid() -> None:
        application.play(Order(1), PublishMany(drafts))

    with pytest.raises(Invalid, match=r"^drafts\[1\]: An event type is 1 to 128 characters") as caught:
        publishes_what_is_invalid()
    assert (caught.value.pointer, caught.value.code) == ("/1/type", "invalid_field")
    assert (database.orders(), database.kept()) == ([], [])


def test_no_events_need_nothing(both):
    application, database = both
    assert application.play(Order(1), PublishMany([])) == [[]]
    assert database.kept() == []


def test_a_statement_that_is_repeated_is_found_again(both):
    application, database = both
    ids = application.play(*[EVENT] * 12)  # psycopg prepares the sixth
    assert [each.id for each in database.kept()] == ids


# --- PostgreSQL's own ---


@pytest.mark.parametrize("end", ["COMMIT", "ROLLBACK"])
def test_a_prepared_transaction_decides_later(postgres, end):
    with psycopg.connect(postgres.url) as connection:
        xid = connection.xid(1, "mine", "orders")
        connection.tpc_begin(xid)
        connection.execute(Order(1).statement)
        publish(connection, "order.paid", {})
        connection.tpc_prepare()
        assert (postgres.orders(), postgres.kept()) == ([], [])
        connection.tpc_commit() if end == "COMMIT" else connection.tpc_rollback()
    assert (len(postgres.orders()), len(postgres.kept())) == ((1, 1) if end == "COMMIT" else (0, 0))


def test_psycopg2_prepares_transactions_too(postgres):
    import psycopg2

    connection = psycopg2.connect(postgres.url)
    connection.tpc_begin(connection.xid(1, "mine", "orders"))
    publish(connection, "order.paid", {})
    connection.tpc_prepare()
    assert postgres.kept() == []
    connection.tpc_commit()
    connection.close()
    assert len(postgres.kept()) == 1


def test_transactions_that_publish_side_by_side_do_not_fail_each_other_when_serializable(postgres):
    options = {"options": "-c default_transaction_isolation=serializable"}
    with psycopg.connect(postgres.url, **options) as one, psycopg.connect(postgres.url, **options) as two:
        for connection in (one, two):
            connection.execute(Order(1).statement)
            publish(connection, "order.paid", {})
            publish(connection, "order.paid", {})
        one.commit()
        two.commit()
    assert len(postgres.kept()) == 4


def test_publishers_of_one_key_do_not_wait_for_each_other(postgres):
    options = {"options": "-c lock_timeout=30s"}  # what would wait forever fails instead
    with psycopg.connect(postgres.url, **options) as one, psycopg.connect(postgres.url, **options) as two:
        publish(one, "order.paid", {}, idempotency_key="order-42")
        publish(two, "order.paid", {}, idempotency_key="order-42")
        two.commit()
        one.rollback()
    assert [each.idempotency_key for each in postgres.kept()] == ["order-42"]


def test_nothing_is_sent_but_one_insert(postgres):
    with psycopg.connect(postgres.url, autocommit=True) as connection:
        connection.execute("SET log_statement = 'all'")
        notices: list[str] = []
        connection.add_notice_handler(lambda notice: notices.append(str(notice.message_primary)))
        connection.execute("SET client_min_messages = 'log'")
        with connection.transaction():
            notices.clear()
            publish(connection, "order.paid", {})
            sent = [each for each in notices if each.startswith(("statement:", "execute "))]
    assert len(sent) == 1
    assert "INSERT INTO hookline.outbox" in sent[0]
    assert not any(word in sent[0] for word in ("RETURNING", "ON CONFLICT", "SELECT", "NOTIFY"))


def test_a_role_that_may_only_insert_can_publish(postgres):
    postgres.run(
        "DO $$ BEGIN IF to_regrole('shop') IS NULL THEN CREATE ROLE shop LOGIN; END IF; END $$;"
        "GRANT USAGE ON SCHEMA hookline TO shop; GRANT INSERT ON hookline.outbox TO shop; GRANT INSERT ON orders TO shop"
    )
    application = Psycopg(postgres.url.replace("postgres@", "shop@"))
    application.play(Order(1), EVENT, PublishMany([Draft("a", 1), Draft("a", 2)]))
    assert len(postgres.kept()) == 3


def test_rows_of_another_kind_do_not_matter(postgres):
    Psycopg(postgres.url, row_factory=dict_row).play(EVENT)
    assert len(postgres.kept()) == 1
