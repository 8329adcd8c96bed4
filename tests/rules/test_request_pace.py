"""Slow clients have time, and more for what they move; whoever holds a connection with a byte now and then has not."""

import pytest

from hookline.rules.request_pace import BYTES_PER_S, GRACE_S, is_too_slow


@pytest.mark.parametrize(
    ("seconds", "moved_bytes", "expected"),
    [
        (0, 0, False),
        (GRACE_S, 0, False),
        (GRACE_S + 1, 0, True),
        (GRACE_S + 1, int(GRACE_S), True),  # a byte a second
        (GRACE_S + 1, BYTES_PER_S, False),
        (GRACE_S + 1.1, BYTES_PER_S, True),
        (600, 16 << 20, False),
        (1_100, 16 << 20, True),
    ],
)
def test_who_is_too_slow(seconds, moved_bytes, expected):
    assert is_too_slow(seconds, moved_bytes=moved_bytes) is expected
