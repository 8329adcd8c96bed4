"""An outbox is late if its rows wait, or if nobody reads it."""

import pytest

from hookline.rules.outbox_state import (
    NOTED_WITHIN,
    OWN,
    is_stale,
    late_since,
    outbox_name,
    state_of,
    why_unread,
)
from hookline.store.contract.outbox import OWN_SOURCE

NOW = 1_000_000.0

LATE = [
    # looked at, oldest row, since
    (NOW, None, None),
    (NOW - 59, None, None),  # the next note is due
    (NOW, NOW - 400, NOW - 400),
    (NOW - 60, NOW - 62, NOW - 2),  # a row that was two seconds old may be moved by now
    (NOW - NOTED_WITHIN, NOW - NOTED_WITHIN - 5, NOW - 5),
    (NOW - NOTED_WITHIN - 1, None, NOW - NOTED_WITHIN - 1),  # nobody reads it
    (NOW - 600, NOW - 900, NOW - 900),
    (None, None, NOW - 7),  # it was never read
]


@pytest.mark.parametrize(("looked_at", "oldest_at", "since"), LATE)
def test_since_when_it_is_late(looked_at, oldest_at, since):
    assert (
        late_since(
            looked_at=looked_at,
            oldest_at=oldest_at,
            known_since=NOW - 7,
            is_unread=is_stale(looked_at, now=NOW),
            now=NOW,
        )
        == since
    )


@pytest.mark.parametrize(
    ("trouble", "state"),
    [
        (None, "ok"),
        ("PostgreSQL cannot be reached: connection refused", "away"),
        ("There is no file /srv/shop.db.", "away"),
        ("There is no table hookline.outbox here: make it.", "missing"),
        ("SQLite refuses: no such table: hookline_outbox", "missing"),
        ("The outbox may not be read or emptied (permission denied): GRANT.", "forbidden"),
        ("SQLite refuses: attempt to write a readonly database", "forbidden"),
    ],
)
def test_its_state_is_known_by_the_error_of_its_database(trouble, state):
    assert state_of(trouble, looked_at=NOW, now=NOW) == state


def test_an_outbox_that_nobody_has_tried_to_read_is_unread():
    assert state_of(None, looked_at=None, now=NOW) == "unread"


def test_an_outbox_that_nobody_reads_any_more_is_unread():
    assert state_of(None, looked_at=NOW - NOTED_WITHIN, now=NOW) == "ok"
    assert state_of(None, looked_at=NOW - NOTED_WITHIN - 1, now=NOW) == "unread"
    assert state_of("no answer", looked_at=NOW - NOTED_WITHIN - 1, now=NOW) == "away"
    assert "`hookline outbox forget shop`" in why_unread("shop", silence="5 min")
    assert "forget" not in why_unread(OWN, silence="5 min")


def test_the_own_outbox_has_a_name_that_people_know():
    assert OWN == OWN_SOURCE
    assert outbox_name(OWN_SOURCE) == "of hookline's own database"
    assert outbox_name("postgresql://shop@db/shop") == "postgresql://shop@db/shop"
