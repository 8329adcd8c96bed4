"""What is the row's fault has a code; what is not leaves the row where it is."""

import pytest

from hookline.errors import (
    AcceptFailed,
    IdempotencyConflict,
    Invalid,
    Overloaded,
    RowRefused,
    SchemaMismatch,
    StorageFull,
    StoreRefused,
    StoreUnavailable,
    TooLarge,
    Unreadable,
)
from hookline.rules.outbox_refusal import code_of, may_be_a_row


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (SchemaMismatch("a.b", (("/x", "wrong"),)), "schema_mismatch"),
        (Invalid("", pointer="/type", code="fanout_limit"), "fanout_limit"),
        (Invalid("", code="loop_detected"), "loop_detected"),
        (Invalid("", pointer="/type"), "invalid_type"),
        (Invalid("", pointer="/deliver_at"), "invalid_deliver_at"),
        (Invalid(""), "invalid_row"),
        (IdempotencyConflict("k"), "idempotency_conflict"),
        (TooLarge("A payload", limit_bytes=1), "too_large"),
        (Unreadable(""), "invalid_payload"),
        (StoreUnavailable(""), None),
        (StorageFull(""), None),
        (StoreRefused(""), None),
        (RowRefused(""), None),
        (Overloaded(""), None),
        (AcceptFailed(""), None),
    ],
)
def test_the_code_of_a_refusal(error, code):
    assert code_of(error) == code


@pytest.mark.parametrize("error", [AcceptFailed(""), RowRefused(""), Invalid("")])
def test_one_row_may_be_to_blame(error):
    assert may_be_a_row(error)


@pytest.mark.parametrize("error", [StoreUnavailable(""), StorageFull(""), StoreRefused(""), Overloaded("")])
def test_no_row_is_to_blame(error):
    assert not may_be_a_row(error)
