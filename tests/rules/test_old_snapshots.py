"""When a session that keeps dead rows from being cleaned up deserves a warning."""

import pytest

from hookline.rules.old_snapshots import (
    LONG_LOG_BYTES,
    OLD_S,
    OLD_TRANSACTIONS,
    is_long,
    is_old,
)


@pytest.mark.parametrize(
    ("seconds", "transactions", "verdict"),
    [
        (0.0, 0, False),
        (OLD_S - 0.1, OLD_TRANSACTIONS, False),  # much was done in a short time: nothing is wrong with that
        (OLD_S, 0, True),
        (None, OLD_TRANSACTIONS - 1, False),
        (None, OLD_TRANSACTIONS, True),
    ],
)
def test_a_snapshot_is_old_by_its_age_or_where_that_is_hidden_by_what_was_done_since(
    seconds, transactions, verdict
):
    assert is_old(seconds=seconds, transactions=transactions) is verdict


@pytest.mark.parametrize(
    ("log_bytes", "verdict"), [(None, False), (LONG_LOG_BYTES - 1, False), (LONG_LOG_BYTES, True)]
)
def test_a_log_is_long_when_it_is_far_beyond_what_it_is_cut_back_to(log_bytes, verdict):
    assert is_long(log_bytes) is verdict
