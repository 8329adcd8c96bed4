"""Where a redirect points."""

import pytest

from hookline.rules.redirect import next_url


@pytest.mark.parametrize(
    ("status", "location", "expected"),
    [
        (301, "https://b.example/x", "https://b.example/x"),
        (307, "/other?y=1", "https://a.example/other?y=1"),
        (308, "next", "https://a.example/hooks/next"),
        (302, "//c.example/z", "https://c.example/z"),
        (300, "/other", None),
        (304, "/other", None),
        (200, "/other", None),
        (302, "", None),
        (302, None, None),
        (302, "http://[", None),
    ],
)
def test_a_redirect_points_somewhere_or_nowhere(status, location, expected):
    assert next_url(status, location, current="https://a.example/hooks/in") == expected
